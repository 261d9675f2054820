#include "cli/logits_file.h"

#include <fmt/format.h>
#include <unistd.h>

#include <bit>
#include <cerrno>
#include <cstring>
#include <filesystem>

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
  if (file_ != nullptr && !partial_.empty()) std::remove(partial_.c_str());
}

Result<LogitsFile> LogitsFile::create(const std::string& path, int64_t tokens, int64_t vocab, TidyEnd& end) {
  LogitsFile out;
  out.path_ = path;
  out.rows_left_ = tokens;
  out.vocab_ = vocab;
  std::error_code error;
  if (std::filesystem::exists(path, error) && !std::filesystem::is_regular_file(path, error)) {
    out.file_.reset(std::fopen(path.c_str(), "wb"));
  } else {
    const std::filesystem::path target = std::filesystem::weakly_canonical(path, error);  // a link stays a link
    if (!error) out.path_ = target.string();
    out.partial_ = fmt::format("{}.{}.partial", out.path_, getpid());
    end.set_unfinished(out.partial_);
    out.file_.reset(std::fopen(out.partial_.c_str(), "wbx"));
  }
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
  const bool written = std::fclose(file_.release()) == 0;
  if (partial_.empty()) return written ? ok_status() : Status(write_error(path_));
  if (written && std::rename(partial_.c_str(), path_.c_str()) == 0) return ok_status();
  const Error error = write_error(path_);
  std::remove(partial_.c_str());
  return error;
}

}  // namespace vedette::cli
