// Builders of Error with formatted text (fmt syntax): `return invalid_request("temperature", "...{}", x);`
#pragma once

#include <fmt/core.h>

#include <string>
#include <utility>

#include "base/result.h"

namespace vedette {

template <typename... Args>
Error make_error(ErrorKind kind, std::string field, fmt::format_string<Args...> format, Args&&... args) {
  return Error{kind, fmt::format(format, std::forward<Args>(args)...), std::move(field)};
}

#define VEDETTE_ERROR_BUILDER(name, kind)                                             \
  template <typename... Args>                                                         \
  Error name(std::string field, fmt::format_string<Args...> format, Args&&... args) { \
    return make_error(kind, std::move(field), format, std::forward<Args>(args)...);   \
  }
VEDETTE_ERROR_BUILDER(invalid_request, ErrorKind::kInvalidRequest)
VEDETTE_ERROR_BUILDER(not_found, ErrorKind::kNotFound)
VEDETTE_ERROR_BUILDER(unsupported, ErrorKind::kUnsupported)
VEDETTE_ERROR_BUILDER(corrupt_file, ErrorKind::kCorruptFile)
VEDETTE_ERROR_BUILDER(out_of_budget, ErrorKind::kOutOfBudget)
VEDETTE_ERROR_BUILDER(unavailable, ErrorKind::kUnavailable)
VEDETTE_ERROR_BUILDER(cancelled, ErrorKind::kCancelled)
VEDETTE_ERROR_BUILDER(internal_error, ErrorKind::kInternal)
#undef VEDETTE_ERROR_BUILDER

}  // namespace vedette
