#include "base/mapped_file.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <mutex>

#include "base/error.h"

namespace vedette {
namespace {

// The table that the SIGBUS handler walks: lock-free to read, because a handler may not lock.
struct Region {
  std::atomic<uintptr_t> begin{0};
  std::atomic<uintptr_t> end{0};
  std::atomic<bool> faulted{false};
};
constexpr size_t kMaxRegions = 4096;
std::array<Region, kMaxRegions> g_regions;  // process-wide because signal disposition is
std::mutex g_regions_mutex;                 // writers only
struct sigaction g_previous;

void on_sigbus(int signal, siginfo_t* info, void* context) {
  const auto address = reinterpret_cast<uintptr_t>(info->si_addr);
  for (Region& region : g_regions) {
    const uintptr_t begin = region.begin.load(std::memory_order_acquire);
    if (begin == 0 || address < begin || address >= region.end.load(std::memory_order_acquire)) continue;
    const auto page = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
    void* const at = reinterpret_cast<void*>(address & ~(page - 1));
    if (mmap(at, page, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == MAP_FAILED) break;
    region.faulted.store(true, std::memory_order_release);
    return;
  }
  // Not ours: hand over to whoever was there before.
  if ((g_previous.sa_flags & SA_SIGINFO) != 0 && g_previous.sa_sigaction != nullptr) {
    g_previous.sa_sigaction(signal, info, context);
  } else {
    sigaction(SIGBUS, &g_previous, nullptr);
  }
}

int add_region(const std::byte* data, size_t size) {
  const std::lock_guard lock(g_regions_mutex);
  static const bool installed = [] {
    struct sigaction action = {};
    action.sa_sigaction = on_sigbus;
    action.sa_flags = SA_SIGINFO | SA_NODEFER;
    sigemptyset(&action.sa_mask);
    return sigaction(SIGBUS, &action, &g_previous) == 0;
  }();
  if (!installed) return -1;
  for (size_t i = 0; i < kMaxRegions; ++i) {
    Region& region = g_regions[i];
    if (region.begin.load(std::memory_order_relaxed) != 0) continue;
    region.faulted.store(false, std::memory_order_relaxed);
    region.end.store(reinterpret_cast<uintptr_t>(data) + size, std::memory_order_release);
    region.begin.store(reinterpret_cast<uintptr_t>(data), std::memory_order_release);
    return static_cast<int>(i);
  }
  return -1;
}

}  // namespace

Result<std::shared_ptr<const MappedFile>> MappedFile::open(const std::string& path) {
  // Without O_NONBLOCK, opening a pipe waits for its writer; reading a regular file is the same with it.
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) return not_found("", "{}: cannot open: {}", path, std::strerror(errno));
  struct stat info = {};
  if (fstat(fd, &info) != 0 || !S_ISREG(info.st_mode)) {
    ::close(fd);
    return invalid_request("", "{}: not a regular file; give the path of a file on disk", path);
  }
  std::shared_ptr<MappedFile> file(new MappedFile());
  file->path_ = path;
  file->size_ = static_cast<size_t>(info.st_size);
  if (file->size_ > 0) {
    void* const mapped = mmap(nullptr, file->size_, PROT_READ, MAP_PRIVATE, fd, 0);
    const int error = errno;
    ::close(fd);
    if (mapped == MAP_FAILED)
      return not_found("", "{}: cannot map {} bytes: {}", path, file->size_, std::strerror(error));
    file->data_ = static_cast<const std::byte*>(mapped);
    file->slot_ = add_region(file->data_, file->size_);
    if (file->slot_ < 0) return internal_error("", "{}: more than {} mapped files at once", path, kMaxRegions);
  } else {
    ::close(fd);
  }
  return std::shared_ptr<const MappedFile>(std::move(file));
}

MappedFile::~MappedFile() {
  if (slot_ >= 0) {
    const std::lock_guard lock(g_regions_mutex);
    Region& region = g_regions[static_cast<size_t>(slot_)];
    region.begin.store(0, std::memory_order_release);
    region.end.store(0, std::memory_order_release);
  }
  if (data_ != nullptr) munmap(const_cast<std::byte*>(data_), size_);
}

bool MappedFile::intact() const {
  return slot_ < 0 || !g_regions[static_cast<size_t>(slot_)].faulted.load(std::memory_order_acquire);
}

void release_mapped_pages(std::span<const std::byte> bytes) {
  if (bytes.empty()) return;
  // Linux maps what it has of so many bytes at one fault: neighbours of what was read are there, too.
  constexpr uintptr_t kAround = uintptr_t{64} << 10;
  const auto first = reinterpret_cast<uintptr_t>(bytes.data());
  const uintptr_t last = first + bytes.size();
  for (const Region& region : g_regions) {
    const uintptr_t begin = region.begin.load(std::memory_order_acquire);
    const uintptr_t end = region.end.load(std::memory_order_acquire);
    if (begin == 0 || first < begin || last > end) continue;
    const uintptr_t from = std::max(begin, first & ~(kAround - 1));
    const uintptr_t to = std::min(end, (last + kAround - 1) & ~(kAround - 1));
    madvise(reinterpret_cast<void*>(from), to - from, MADV_DONTNEED);
    return;
  }
}

Result<std::string> read_text_file(const std::string& path, size_t max_bytes) {
  VEDETTE_ASSIGN_OR_RETURN(const auto file, MappedFile::open(path));
  const auto bytes = file->bytes();
  if (bytes.size() > max_bytes)
    return corrupt_file("", "{}: {} bytes, the limit for this file is {}", path, bytes.size(), max_bytes);
  std::string text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  if (!file->intact()) return corrupt_file("", "{}: truncated while it was read", path);
  return text;
}

}  // namespace vedette
