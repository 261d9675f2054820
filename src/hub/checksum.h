// Sums of files, fed piece by piece: SHA-256 as Git LFS has it, SHA-1 of a Git blob.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "base/result.h"

namespace vedette::hub {

class Checksum {
 public:
  enum class Kind : uint8_t { kSha256, kGitBlob };

  // size: of the whole content, which a Git blob's sum begins with.
  Checksum(Kind kind, int64_t size);
  ~Checksum();
  void add(std::string_view piece);
  std::string finish();  // lower-case hexadecimal; once, last

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// Of a whole file. Errors: kUnavailable (cannot be read).
Result<std::string> file_checksum(const std::string& path, Checksum::Kind kind, int64_t size);

}  // namespace vedette::hub
