// Writing files in order or at offsets, with errors as Status.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace vedette::weights {

// A file being written; closed by its destructor, complete only after finish(). One thread.
class FileOutput {
 public:
  static Result<FileOutput> create(const std::string& path);
  FileOutput(FileOutput&& other) noexcept;
  FileOutput& operator=(FileOutput&&) = delete;
  ~FileOutput();

  Status write_at(int64_t offset, std::span<const std::byte> bytes);
  Status finish();  // flushes to the disk

 private:
  FileOutput(std::string path, int fd) : path_(std::move(path)), fd_(fd) {}
  std::string path_;
  int fd_ = -1;
};

// Collects consecutive bytes of one region and writes them in large pieces.
class RegionOutput {
 public:
  RegionOutput(FileOutput& file, int64_t offset) : file_(file), offset_(offset) {}
  Status append(std::span<const std::byte> bytes);
  Status flush();

 private:
  FileOutput& file_;
  int64_t offset_;
  std::vector<std::byte> pending_;
};

Status write_text_file(const std::string& path, std::string_view text);

}  // namespace vedette::weights
