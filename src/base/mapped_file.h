// A read-only mapped file that survives truncation.
//
// A fault inside a mapping (the file shrank under us) is caught: the page is replaced by zeros and the mapping marked,
// so the process lives and the reader finds out through intact().
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>

#include "base/result.h"

namespace vedette {

// Immutable; any thread may read. Bytes stay valid for the object's life.
class MappedFile {
 public:
  // Errors: kNotFound (missing, unreadable), kInvalidRequest (a folder or a special file).
  static Result<std::shared_ptr<const MappedFile>> open(const std::string& path);
  ~MappedFile();
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  std::span<const std::byte> bytes() const { return {data_, size_}; }
  const std::string& path() const { return path_; }
  bool intact() const;  // false once a fault was caught

 private:
  MappedFile() = default;
  std::string path_;
  const std::byte* data_ = nullptr;
  size_t size_ = 0;
  int slot_ = -1;  // index into the fault handler's table
};

// Lets go of the memory under the pages that touch `bytes` and those close by, where they lie in a mapped file;
// elsewhere nothing happens. What is read there afterwards comes from the file again: any thread may call this at any
// time.
void release_mapped_pages(std::span<const std::byte> bytes);

// Whole small text file. Errors: kNotFound, kCorruptFile when larger than max_bytes.
Result<std::string> read_text_file(const std::string& path, size_t max_bytes);

}  // namespace vedette
