// Logits on disk: safetensors with one tensor `logits` [tokens, vocab] f32.
#pragma once

#include <cstdint>
#include <cstdio>
#include <memory>
#include <span>
#include <string>

#include "base/result.h"
#include "cli/tidy_end.h"

namespace vedette::cli {

// Rows are written as they come, so the file is never held in memory. They go into a new file beside the one named,
// which takes its place when closed; an unfinished one is removed. What is no regular file (a pipe) is written
// directly.
class LogitsFile {
 public:
  LogitsFile() = default;
  LogitsFile(LogitsFile&&) = default;
  LogitsFile& operator=(LogitsFile&&) = default;
  ~LogitsFile();
  static Result<LogitsFile> create(const std::string& path, int64_t tokens, int64_t vocab, TidyEnd& end);
  Status append(std::span<const float> row);
  Status close();  // errors if a row is missing or the disk is full

 private:
  struct Closer {
    void operator()(FILE* file) const { std::fclose(file); }
  };
  std::string path_, partial_;  // partial_ is empty if path_ is written directly
  int64_t rows_left_ = 0, vocab_ = 0;
  std::unique_ptr<FILE, Closer> file_;
};

}  // namespace vedette::cli
