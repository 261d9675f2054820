#include "cli/logits_file.h"

#include <fmt/format.h>

#include <bit>
#include <cerrno>
#include <cstring>

#include "base/checked.h"
#include "base/error.h"

namespace vedette::cli {
namespace {

static_assert(std::endian::native == std::endian::little, "safetensors is little-endian");

Error write_error(const std::string& path) {
  return unavailable("--logits-out", "--logits-out: {}: cannot be written: {}; name a writable file", path,
                     std::strerror(errno));
}

}  // namespace

LogitsFile::~LogitsFile() {
  if (file_ != nullptr) std::remove(path_.c_str());
}

Result<LogitsFile> LogitsFile::create(const std::string& path, int64_t tokens, int64_t vocab) {
  LogitsFile out;
  out.path_ = path;
  out.rows_left_ = tokens;
  out.vocab_ = vocab;
  out.file_.reset(std::fopen(path.c_str(), "wb"));
  if (out.file_ == nullptr) return write_error(path);
  std::string header = fmt::format(R"({{"logits":{{"dtype":"F32","shape":[{},{}],"data_offsets":[0,{}]}}}})", tokens,
                                   vocab, tokens * vocab * 4);
  header.resize(round_up<size_t>(header.size(), 8), ' ');
  const uint64_t size = header.size();
  if (std::fwrite(&size, sizeof size, 1, out.file_.get()) != 1 ||
      std::fwrite(header.data(), 1, header.size(), out.file_.get()) != header.size())
    return write_error(path);
  return out;
}

Status LogitsFile::append(std::span<const float> row) {
  if (rows_left_ <= 0 || static_cast<int64_t>(row.size()) != vocab_)
    return internal_error("--logits-out", "{}: a row of {} logits where {} rows of {} were still expected", path_,
                          row.size(), rows_left_, vocab_);
  if (std::fwrite(row.data(), sizeof(float), row.size(), file_.get()) != row.size()) return write_error(path_);
  --rows_left_;
  return ok_status();
}

Status LogitsFile::close() {
  if (rows_left_ != 0) return internal_error("--logits-out", "{}: {} rows were not written", path_, rows_left_);
  if (std::fclose(file_.release()) != 0) return write_error(path_);
  return ok_status();
}

}  // namespace vedette::cli
