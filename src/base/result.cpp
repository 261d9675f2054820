#include "base/result.h"

namespace vedette {

const char* to_string(ErrorKind kind) {
  switch (kind) {
    case ErrorKind::kInvalidRequest:
      return "invalid_request";
    case ErrorKind::kNotFound:
      return "not_found";
    case ErrorKind::kUnsupported:
      return "unsupported";
    case ErrorKind::kCorruptFile:
      return "corrupt_file";
    case ErrorKind::kOutOfBudget:
      return "out_of_budget";
    case ErrorKind::kUnavailable:
      return "unavailable";
    case ErrorKind::kCancelled:
      return "cancelled";
    case ErrorKind::kInternal:
      return "internal";
  }
  return "internal";
}

}  // namespace vedette
