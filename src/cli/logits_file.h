// Logits on disk: safetensors with one tensor `logits` [tokens, vocab] f32.
#pragma once

#include <cstdint>
#include <cstdio>
#include <memory>
#include <span>
#include <string>

#include "base/result.h"

namespace vedette::cli {

// Rows are written as they come, so the file is never held in memory. A file that was not closed is removed.
class LogitsFile {
 public:
  LogitsFile() = default;
  LogitsFile(LogitsFile&&) = default;
  LogitsFile& operator=(LogitsFile&&) = default;
  ~LogitsFile();
  static Result<LogitsFile> create(const std::string& path, int64_t tokens, int64_t vocab);
  Status append(std::span<const float> row);
  Status close();  // errors if a row is missing or the disk is full

 private:
  struct Closer {
    void operator()(FILE* file) const { std::fclose(file); }
  };
  std::string path_;
  int64_t rows_left_ = 0, vocab_ = 0;
  std::unique_ptr<FILE, Closer> file_;
};

}  // namespace vedette::cli
