#include "hub/download.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <optional>
#include <thread>

#include "base/error.h"
#include "base/json.h"
#include "hub/checksum.h"
#include "hub/hub_client.h"
#include "hub/hugging_face_cache.h"
#include "hub/model_source.h"
#include "hub/repository.h"

namespace vedette::hub {
namespace fs = std::filesystem;
namespace {

constexpr int64_t kRoomToSpare = int64_t{64} << 20;

Error system_error(const std::string& path, int number) {
  if (number == ENOSPC || number == EDQUOT)
    return unavailable(
        "", "{}: the disk is full; make room, then start the download again: it goes on where it stopped", path);
  return unavailable("", "{}: cannot be written: {}", path, std::strerror(number));
}

// A file descriptor that is closed; -1: none.
class Descriptor {
 public:
  explicit Descriptor(int descriptor) : descriptor_(descriptor) {}
  ~Descriptor() {
    if (descriptor_ >= 0) close(descriptor_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int get() const { return descriptor_; }

 private:
  int descriptor_;
};

// Waits for the lock of one model. It goes with the descriptor.
Status take_lock(const Descriptor& file, const std::string& path, const DownloadRequest& request) {
  if (file.get() < 0) return system_error(path, errno);
  bool told = false;
  while (flock(file.get(), LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK && errno != EINTR) return system_error(path, errno);
    if (!told && request.notice)
      request.notice(fmt::format("another process is fetching {}; waiting for it", request.repo_id));
    told = true;
    if (request.stop.stop_requested()) return cancelled("", "the download of {} was cancelled", request.repo_id);
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
  }
  return ok_status();
}

// Whether a file is whole by size, and by sum where the hub tells one.
Result<bool> is_whole(const fs::path& path, const RepositoryFile& file) {
  std::error_code error;
  if (!fs::is_regular_file(path, error)) return false;
  const auto size = static_cast<int64_t>(fs::file_size(path, error));
  if (error || (file.size >= 0 && size != file.size)) return false;
  if (file.sha256.empty() && file.blob_id.empty()) return file.size >= 0;
  const bool large = !file.sha256.empty();
  VEDETTE_ASSIGN_OR_RETURN(
      const std::string sum,
      file_checksum(path.string(), large ? Checksum::Kind::kSha256 : Checksum::Kind::kGitBlob, size));
  return sum == (large ? file.sha256 : file.blob_id);
}

// Where the files of a model that is on its way lie.
fs::path staging_folder(const fs::path& store, const std::string& repo_id) {
  const size_t slash = repo_id.find('/');
  return store / ".downloads" / (repo_id.substr(0, slash) + "--" + repo_id.substr(slash + 1));
}

class Download {
 public:
  explicit Download(const DownloadRequest& request)
      : request_(request), client_(request.hub, request.repo_id, request.revision, request.stop) {
    const size_t slash = request.repo_id.find('/');
    owner_ = request.repo_id.substr(0, slash);
    name_ = request.repo_id.substr(slash + 1);
    store_ = store_root(request.store);
    // A folder given with a slash at its end has an empty last part.
    const fs::path given = fs::path(request.local_dir).lexically_normal();
    std::error_code error;
    target_ = request.local_dir.empty() ? store_ / owner_ / name_
                                        : fs::absolute(given.has_filename() ? given : given.parent_path(), error);
    staging_ = request.local_dir.empty() ? staging_folder(store_, request.repo_id) : target_ / ".download";
  }

  Result<DownloadReport> run() {
    VEDETTE_ASSIGN_OR_RETURN(const Repository repository, client_.list());
    VEDETTE_ASSIGN_OR_RETURN(FileChoice choice, choose_files(repository, request_.include, request_.exclude));
    report_.commit = repository.commit;
    report_.files = static_cast<int64_t>(choice.files.size());
    for (const RepositoryFile& file : choice.files) report_.bytes += std::max<int64_t>(0, file.size);
    if (in_cache(choice.files)) return std::move(report_);
    VEDETTE_RETURN_IF_ERROR(make_folder(staging_.parent_path()));
    const std::string lock_path = staging_.string() + ".lock";
    const Descriptor lock(open(lock_path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644));
    VEDETTE_RETURN_IF_ERROR(take_lock(lock, lock_path, request_));
    if (!choice.note.empty()) notice(choice.note);
    VEDETTE_RETURN_IF_ERROR(fetch_missing(choice.files));
    report_.path = target_.string();
    return std::move(report_);
  }

 private:
  void notice(const std::string& line) const {
    if (request_.notice) request_.notice(line);
  }

  static Status make_folder(const fs::path& path) {
    std::error_code error;
    fs::create_directories(path, error);
    if (error) return unavailable("", "{}: the folder cannot be made: {}", path.string(), error.message());
    return ok_status();
  }

  // The Hugging Face cache's snapshot of this commit has every file in its size.
  bool in_cache(const std::vector<RepositoryFile>& files) {
    if (request_.force || !request_.local_dir.empty() || report_.commit.empty()) return false;
    std::error_code error;
    if (fs::exists(target_, error)) return false;
    const auto snapshot = find_snapshot(owner_, name_, report_.commit);
    if (!snapshot) return false;
    for (const RepositoryFile& file : files) {
      const auto size = fs::file_size(fs::path(*snapshot) / file.path, error);
      if (error || (file.size >= 0 && static_cast<int64_t>(size) != file.size)) return false;
    }
    report_.path = *snapshot;
    report_.from_cache = true;
    return true;
  }

  Status fetch_missing(const std::vector<RepositoryFile>& files) {
    std::vector<RepositoryFile> missing;
    int64_t missing_bytes = 0;
    for (const RepositoryFile& file : files) {
      if (!request_.force) {
        VEDETTE_ASSIGN_OR_RETURN(const bool there, is_whole(target_ / file.path, file));
        if (there) {
          done_ += file.size;
          continue;
        }
      }
      missing.push_back(file);
      missing_bytes += std::max<int64_t>(0, file.size);
    }
    if (missing.empty()) return finish_folder(files, target_);
    VEDETTE_RETURN_IF_ERROR(make_folder(staging_));
    VEDETTE_RETURN_IF_ERROR(check_room(missing_bytes));
    notice(fmt::format("fetching {} from {}: {} files, {:.1f} MB", request_.repo_id, request_.hub.endpoint,
                       missing.size(), static_cast<double>(missing_bytes) / 1e6));
    tell_progress();
    for (const RepositoryFile& file : missing) VEDETTE_RETURN_IF_ERROR(fetch(file));
    report_.fetched_files = static_cast<int64_t>(missing.size());
    return move_into_place(files, missing);
  }

  void tell_progress() const {
    if (request_.progress) request_.progress(done_, std::max(report_.bytes, done_));
  }

  Status check_room(int64_t bytes) const {
    struct statvfs disk{};
    if (statvfs(staging_.c_str(), &disk) != 0) return ok_status();  // the write will tell
    std::error_code error;
    int64_t begun = 0;
    for (const auto& entry : fs::recursive_directory_iterator(staging_, error)) {
      std::error_code ignored;
      if (entry.is_regular_file(ignored)) begun += static_cast<int64_t>(entry.file_size(ignored));
    }
    const int64_t free = static_cast<int64_t>(disk.f_bavail) * static_cast<int64_t>(disk.f_frsize);
    if (bytes - begun + kRoomToSpare <= free) return ok_status();
    return unavailable("",
                       "{} more bytes are needed in {}, its disk has {} free; make room or name another with "
                       "--models-dir",
                       bytes - begun, staging_.string(), free);
  }

  // Of one version of a file, so that a part is never continued with another version's bytes.
  fs::path part_path(const RepositoryFile& file) const {
    const std::string& sum = file.sha256.empty() ? file.blob_id : file.sha256;
    const std::string mark = sum.empty() ? report_.commit.substr(0, 16) : sum.substr(0, 16);
    return staging_ / (file.path + (mark.empty() ? "" : "." + mark) + ".part");
  }

  Status fetch(const RepositoryFile& file) {
    const fs::path whole = staging_ / file.path;
    VEDETTE_RETURN_IF_ERROR(make_folder(whole.parent_path()));
    VEDETTE_ASSIGN_OR_RETURN(const bool there, is_whole(whole, file));
    if (there) {
      done_ += file.size;
      tell_progress();
      return ok_status();
    }
    constexpr int kTries = 2;  // a part kept from before may be the broken one
    for (int attempt = 1;; ++attempt) {
      const fs::path part = part_path(file);
      const int64_t before = done_;
      VEDETTE_RETURN_IF_ERROR(fetch_part(file, part));
      VEDETTE_ASSIGN_OR_RETURN(const bool good, sums_hold(part, file));
      std::error_code error;
      if (good) {
        fs::rename(part, whole, error);
        if (error) return unavailable("", "{}: cannot be renamed: {}", part.string(), error.message());
        return ok_status();
      }
      fs::remove(part, error);
      done_ = before;
      if (attempt == kTries)
        return corrupt_file("",
                            "{} of {}: what came differs from the hub's size or sum ({}); it was thrown away, try "
                            "again later",
                            file.path, request_.repo_id, file.sha256.empty() ? file.blob_id : file.sha256);
    }
  }

  static Result<bool> sums_hold(const fs::path& part, const RepositoryFile& file) {
    if (file.size < 0 && file.sha256.empty() && file.blob_id.empty()) return true;  // the hub tells nothing
    return is_whole(part, file);
  }

  Status fetch_part(const RepositoryFile& file, const fs::path& part) {
    const Descriptor out(open(part.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0644));
    if (out.get() < 0) return system_error(part.string(), errno);
    const auto begun = static_cast<int64_t>(lseek(out.get(), 0, SEEK_END));
    const int64_t before = done_;
    done_ = before + begun;
    if (file.size == 0 || (file.size > 0 && begun == file.size)) return ok_status();
    const int64_t offset = file.size > 0 && begun > file.size ? 0 : begun;
    auto write_piece = [&](int64_t place, std::string_view piece) -> Status {
      if (file.size >= 0 && place + static_cast<int64_t>(piece.size()) > file.size)
        return corrupt_file("", "{} of {}: more bytes came than the {} that the hub told", file.path, request_.repo_id,
                            file.size);
      if (lseek(out.get(), 0, SEEK_CUR) != place) {  // the hub began anew
        if (ftruncate(out.get(), place) != 0 || lseek(out.get(), place, SEEK_SET) != place)
          return system_error(part.string(), errno);
      }
      while (!piece.empty()) {
        const ssize_t written = write(out.get(), piece.data(), piece.size());
        if (written < 0 && errno == EINTR) continue;
        if (written < 0) return system_error(part.string(), errno);
        piece.remove_prefix(static_cast<size_t>(written));
        place += written;
        report_.fetched_bytes += written;
      }
      done_ = before + place;
      tell_progress();
      return ok_status();
    };
    VEDETTE_RETURN_IF_ERROR(client_.fetch(file, offset, write_piece));
    if (fsync(out.get()) != 0) return system_error(part.string(), errno);
    return ok_status();
  }

  // Notes what the folder holds, and drops what an earlier revision had and this one does not.
  Status finish_folder(const std::vector<RepositoryFile>& files, const fs::path& folder) const {
    if (!request_.local_dir.empty()) return ok_status();
    std::error_code error;
    for (const std::string& path : read_source(folder.string()).files) {
      if (std::ranges::none_of(files, [&](const RepositoryFile& file) { return file.path == path; }))
        fs::remove(folder / path, error);
    }
    ModelSource source{request_.revision, report_.commit, {}};
    for (const RepositoryFile& file : files) source.files.push_back(file.path);
    return write_source(folder.string(), source);
  }

  // A new model appears by one rename; into a folder that exists, each file by its own.
  Status move_into_place(const std::vector<RepositoryFile>& all, const std::vector<RepositoryFile>& files) {
    std::error_code error;
    VEDETTE_RETURN_IF_ERROR(make_folder(target_.parent_path()));
    if (request_.local_dir.empty() && !fs::exists(fs::symlink_status(target_, error))) {
      drop_leftovers(files);
      VEDETTE_RETURN_IF_ERROR(finish_folder(all, staging_));
      fs::rename(staging_, target_, error);
      if (!error) return ok_status();
      return unavailable("", "{}: cannot be moved to {}: {}", staging_.string(), target_.string(), error.message());
    }
    const fs::path root = fs::canonical(target_, error);
    for (const RepositoryFile& file : files) {
      const fs::path destination = target_ / file.path;
      VEDETTE_RETURN_IF_ERROR(make_folder(destination.parent_path()));
      const fs::path parent = fs::canonical(destination.parent_path(), error);
      const auto [end, ignored] = std::ranges::mismatch(root, parent);
      if (error || end != root.end())
        return unavailable("", "{}: a link leads out of {}; remove it", destination.string(), target_.string());
      fs::rename(staging_ / file.path, destination, error);
      if (error) return unavailable("", "{}: cannot be written: {}", destination.string(), error.message());
    }
    fs::remove_all(staging_, error);
    return finish_folder(all, target_);
  }

  // Parts of other versions, and files that this one does not have.
  void drop_leftovers(const std::vector<RepositoryFile>& files) const {
    std::vector<fs::path> surplus;
    std::error_code error;
    for (const auto& entry : fs::recursive_directory_iterator(staging_, error)) {
      std::error_code ignored;
      if (entry.is_directory(ignored)) continue;
      const std::string path = fs::relative(entry.path(), staging_, ignored).string();
      if (std::ranges::none_of(files, [&](const RepositoryFile& file) { return file.path == path; }))
        surplus.push_back(entry.path());
    }
    for (const fs::path& path : surplus) fs::remove(path, error);
  }

  const DownloadRequest& request_;
  HubClient client_;
  std::string owner_, name_;
  fs::path store_, target_, staging_;
  DownloadReport report_;
  int64_t done_ = 0;
};

}  // namespace

Result<DownloadReport> download_model(const DownloadRequest& request) {
  if (!is_repo_id(request.repo_id))
    return invalid_request("", "'{}': expected OWNER/NAME with letters, digits and . _ - in each part",
                           request.repo_id.substr(0, 200));
  if (request.revision.empty() || request.revision.size() > 255)
    return invalid_request("--revision", "--revision: expected a branch, tag or commit");
  return Download(request).run();
}

Status discard_download(const std::string& repo_id, const StoreSettings& store) {
  if (!is_repo_id(repo_id)) return ok_status();
  const fs::path staging = staging_folder(store_root(store), repo_id);
  std::error_code error;
  fs::remove_all(staging, error);
  if (error) return unavailable("", "{}: cannot be removed: {}", staging.string(), error.message());
  return ok_status();
}

}  // namespace vedette::hub
