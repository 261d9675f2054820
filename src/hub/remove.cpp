#include "hub/remove.h"

#include <filesystem>

#include "base/error.h"
#include "hub/hugging_face_cache.h"

namespace vedette::hub {
namespace fs = std::filesystem;
namespace {

Error nothing_there(const std::string& repo_id, const fs::path& path, const StoreSettings& settings) {
  const size_t slash = repo_id.find('/');
  const std::string revision = settings.revision.value_or("main");
  if (const auto snapshot = find_snapshot(repo_id.substr(0, slash), repo_id.substr(slash + 1), revision))
    return not_found("",
                     "{} is not in the store ({}); the Hugging Face cache has it at {}, which is left alone: remove "
                     "it with that cache's own tools",
                     repo_id, path.string(), *snapshot);
  return not_found("", "{} is not in the store ({}); `vedette list` shows what is", repo_id, path.string());
}

}  // namespace

Result<RemovalPlan> plan_removal(const std::string& repo_id, const StoreSettings& settings) {
  if (!is_repo_id(repo_id))
    return invalid_request("", "'{}': expected OWNER/NAME with letters, digits and . _ - in each part",
                           repo_id.substr(0, 200));
  std::error_code error;
  const fs::path given = fs::path(store_root(settings)) / repo_id;
  const fs::file_status status = fs::symlink_status(given, error);
  if (!fs::exists(status)) return nothing_there(repo_id, given, settings);
  if (!fs::is_directory(status))
    return invalid_request("", "{}: expected a folder, found {}; it is left alone, remove it by hand", given.string(),
                           fs::is_symlink(status) ? "a link" : "a file");
  // The store itself may be reached by a link; below it nothing may.
  const fs::path root = fs::canonical(store_root(settings), error);
  if (error) return unavailable("", "{}: cannot be read: {}", store_root(settings), error.message());
  const fs::path real = fs::canonical(given, error);
  if (error || real != root / repo_id)
    return invalid_request("", "{}: a link leads out of the store; it is left alone, remove it by hand",
                           given.string());
  RemovalPlan plan{repo_id, real.string(), 0, 0};
  for (fs::recursive_directory_iterator it(real, error), end; !error && it != end; it.increment(error)) {
    std::error_code ignored;
    if (it->is_directory(ignored) && !it->is_symlink(ignored)) continue;
    ++plan.files;
    if (!it->is_symlink(ignored)) plan.size_bytes += static_cast<int64_t>(it->file_size(ignored));
  }
  return plan;
}

Status remove_model(const RemovalPlan& plan) {
  std::error_code error;
  fs::remove_all(plan.path, error);
  if (error) return unavailable("", "{}: cannot be removed: {}", plan.path, error.message());
  fs::remove(fs::path(plan.path).parent_path(), error);  // fails where other models are left
  return ok_status();
}

}  // namespace vedette::hub
