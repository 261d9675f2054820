#include "weights/file_output.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "base/error.h"

namespace vedette::weights {
namespace {

constexpr size_t kPieceBytes = 4u << 20;

}  // namespace

Result<FileOutput> FileOutput::create(const std::string& path) {
  const int fd = ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
  if (fd < 0) return unavailable("", "{}: cannot create: {}", path, std::strerror(errno));
  return FileOutput(path, fd);
}

FileOutput::FileOutput(FileOutput&& other) noexcept
    : path_(std::move(other.path_)), fd_(std::exchange(other.fd_, -1)) {}

FileOutput::~FileOutput() {
  if (fd_ >= 0) ::close(fd_);
}

Status FileOutput::write_at(int64_t offset, std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t n = ::pwrite(fd_, bytes.data(), bytes.size(), offset);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0)
      return unavailable("", "{}: cannot write {} bytes at {}: {}", path_, bytes.size(), offset, std::strerror(errno));
    offset += n;
    bytes = bytes.subspan(static_cast<size_t>(n));
  }
  return ok_status();
}

Status FileOutput::finish() {
  if (::fsync(fd_) != 0) return unavailable("", "{}: cannot flush to disk: {}", path_, std::strerror(errno));
  return ok_status();
}

Status RegionOutput::append(std::span<const std::byte> bytes) {
  pending_.insert(pending_.end(), bytes.begin(), bytes.end());
  return pending_.size() < kPieceBytes ? ok_status() : flush();
}

Status RegionOutput::flush() {
  VEDETTE_RETURN_IF_ERROR(file_.write_at(offset_, pending_));
  offset_ += static_cast<int64_t>(pending_.size());
  pending_.clear();
  return ok_status();
}

Status write_text_file(const std::string& path, std::string_view text) {
  VEDETTE_ASSIGN_OR_RETURN(auto file, FileOutput::create(path));
  VEDETTE_RETURN_IF_ERROR(file.write_at(0, std::as_bytes(std::span(text.data(), text.size()))));
  return file.finish();
}

}  // namespace vedette::weights
