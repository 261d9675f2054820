#include "hub/model_store.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <chrono>
#include <filesystem>

#include "base/error.h"
#include "hub/hugging_face_cache.h"
#include "hub/model_source.h"

namespace vedette::hub {
namespace fs = std::filesystem;
namespace {

std::string lower(std::string_view text) {
  std::string out(text);
  std::ranges::transform(out, out.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return out;
}

bool has_suffix(const fs::path& file, std::string_view suffix) {
  return lower(file.filename().string()).ends_with(suffix);
}

// The second and later files of a split GGUF: name-00002-of-00005.gguf.
bool is_later_split(const std::string& name) {
  const size_t at = name.rfind("-of-");
  if (at == std::string::npos || at < 6) return false;
  const std::string_view number = std::string_view(name).substr(at - 5, 5);
  return std::ranges::all_of(number, [](unsigned char c) { return std::isdigit(c) != 0; }) && number != "00001";
}

// A folder with config.json is a checkpoint itself; a folder with one GGUF file stands for that file.
Result<std::string> checkpoint_in_folder(const fs::path& folder) {
  std::error_code error;
  if (fs::exists(folder / "config.json", error)) return folder.string();
  std::vector<std::string> files;
  for (const auto& entry : fs::directory_iterator(folder, error)) {
    if (has_suffix(entry.path(), ".gguf") && !is_later_split(entry.path().filename().string()))
      files.push_back(entry.path().string());
  }
  if (error) return not_found("model", "{}: cannot be read: {}", folder.string(), error.message());
  if (files.size() == 1) return files.front();
  std::ranges::sort(files);
  if (files.empty()) {
    return not_found("model", "{}: expected config.json or a .gguf file, found neither; name a model's own folder",
                     folder.string());
  }
  return invalid_request("model", "{}: holds {} .gguf files ({}); name one of them", folder.string(), files.size(),
                         fmt::join(files, ", "));
}

bool is_name_part(std::string_view part) {
  if (part.empty() || part == "." || part == ".." || part.size() > 128) return false;
  return std::ranges::all_of(part,
                             [](unsigned char c) { return std::isalnum(c) != 0 || c == '.' || c == '_' || c == '-'; });
}

struct RepoId {
  std::string owner, name;
  std::string text() const { return owner + "/" + name; }
};

std::optional<RepoId> parse_repo_id(const std::string& argument, const std::string& default_org) {
  RepoId id;
  const size_t slash = argument.find('/');
  id.owner = slash == std::string::npos ? default_org : argument.substr(0, slash);
  id.name = slash == std::string::npos ? argument : argument.substr(slash + 1);
  if (!is_name_part(id.owner) || !is_name_part(id.name)) return std::nullopt;
  return id;
}

bool looks_like_path(const std::string& argument) {
  return argument.starts_with('/') || argument.starts_with('.') || argument.starts_with('~') ||
         lower(argument).ends_with(".gguf") || lower(argument).ends_with(".safetensors") ||
         std::ranges::count(argument, '/') > 1 || argument.ends_with('/');
}

Result<ResolvedModel> resolve_path(const std::string& argument, const StoreSettings& settings) {
  if (settings.revision && *settings.revision != "main") {
    return invalid_request("--revision", "--revision {}: '{}' is a path, which has no revisions; leave --revision out",
                           *settings.revision, argument);
  }
  std::error_code error;
  if (fs::is_directory(argument, error)) {
    VEDETTE_ASSIGN_OR_RETURN(std::string path, checkpoint_in_folder(argument));
    return ResolvedModel{path, argument, "path"};
  }
  if (!has_suffix(argument, ".gguf")) {
    return unsupported("model", "{}: expected a folder or a .gguf file, found another kind of file; {}", argument,
                       has_suffix(argument, ".safetensors") ? "name the folder it lies in" : "name a checkpoint");
  }
  return ResolvedModel{argument, argument, "path"};
}

// Store entries with the same last part, as a hint.
std::string same_name_hint(const RepoId& id, const std::string& root) {
  for (const StoreEntry& entry : list_store(root)) {
    if (lower(entry.repo_id).ends_with("/" + lower(id.name))) return fmt::format("; the store has {}", entry.repo_id);
  }
  return "";
}

Error nowhere(const RepoId& id, const StoreSettings& settings, const std::string& revision) {
  const std::string root = store_root(settings);
  const std::string fetch =
      id.text() == kDefaultModel
          ? std::string("fetch it with tools/fetch_models.py")
          : fmt::format("fetch it with `vedette download {}`, or put its files into {}/{}", id.text(), root, id.text());
  return not_found("model", "model {} (revision {}): not in ./models, the store {} or the Hugging Face cache {}{}; {}",
                   id.text(), revision, root, hugging_face_cache_root(), same_name_hint(id, root), fetch);
}

int64_t seconds_since_epoch(fs::file_time_type time) {
  return std::chrono::duration_cast<std::chrono::seconds>(std::chrono::file_clock::to_sys(time).time_since_epoch())
      .count();
}

// Sizes and times of the files in a folder and in those right below it; links to files are followed (cache snapshots
// are links to blobs).
std::optional<StoreEntry> measure(const fs::path& folder, std::string repo_id) {
  StoreEntry entry{std::move(repo_id), folder.string(), 0, std::nullopt};
  std::error_code error;
  for (fs::recursive_directory_iterator it(folder, fs::directory_options::skip_permission_denied, error), end;
       !error && it != end; it.increment(error)) {
    std::error_code ignored;
    if (it.depth() >= 1) it.disable_recursion_pending();
    if (!fs::is_regular_file(it->path(), ignored)) continue;
    entry.size_bytes += static_cast<int64_t>(fs::file_size(it->path(), ignored));
    const int64_t modified = seconds_since_epoch(fs::last_write_time(it->path(), ignored));
    if (!ignored) entry.modified = std::max(entry.modified.value_or(modified), modified);
  }
  if (!entry.modified) return std::nullopt;
  return entry;
}

}  // namespace

std::string store_root(const StoreSettings& settings) {
  if (!settings.models_dir.empty()) return settings.models_dir;
  const fs::path cache =
      settings.cache_dir.empty() ? fs::path(home_folder()) / ".cache" / "vedette" : fs::path(settings.cache_dir);
  return (cache / "models").string();
}

namespace {

// The model, or nothing where a name is fit but nowhere.
Result<std::optional<ResolvedModel>> locate(const std::string& argument, const StoreSettings& settings,
                                            std::optional<RepoId>& id) {
  using Found = std::optional<ResolvedModel>;
  if (argument.empty())
    return invalid_request("model", "no model named: give a folder, a .gguf file or owner/name (see `vedette list`)");
  if (argument.find('\0') != std::string::npos)
    return invalid_request("model", "the model's name holds a zero byte; give a folder, a .gguf file or owner/name");
  std::error_code error;
  if (fs::exists(argument, error)) {
    VEDETTE_ASSIGN_OR_RETURN(ResolvedModel model, resolve_path(argument, settings));
    return Found(std::move(model));
  }
  if (looks_like_path(argument))
    return not_found("model", "{}: no such file or folder; `vedette list` shows the models in the store", argument);

  id = parse_repo_id(argument, settings.default_org);
  if (!id) {
    return invalid_request("model", "'{}': expected owner/name with letters, digits and . _ - in each part, or a path",
                           argument);
  }
  const std::string revision = settings.revision.value_or("main");
  const fs::path in_store = fs::path(store_root(settings)) / id->owner / id->name;
  if (revision == "main") {
    for (const fs::path& local : {fs::path("models") / id->owner / id->name, fs::path("models") / id->name}) {
      if (!fs::is_directory(local, error)) continue;
      VEDETTE_ASSIGN_OR_RETURN(std::string path, checkpoint_in_folder(local));
      return Found({path, id->text(), "./models"});
    }
    if (fs::is_directory(in_store, error)) {
      VEDETTE_ASSIGN_OR_RETURN(std::string path, checkpoint_in_folder(in_store));
      return Found({path, id->text(), "store"});
    }
  } else if (fs::is_directory(in_store, error)) {
    const ModelSource source = read_source(in_store.string());
    if (revision == source.revision || revision == source.commit) {
      VEDETTE_ASSIGN_OR_RETURN(std::string path, checkpoint_in_folder(in_store));
      return Found({path, id->text(), "store"});
    }
    return invalid_request("--revision",
                           "--revision {}: the store already holds another revision of {} and keeps no revisions "
                           "apart; give that revision "
                           "a --models-dir of its own",
                           revision, id->text());
  }
  if (auto snapshot = find_snapshot(id->owner, id->name, revision)) {
    VEDETTE_ASSIGN_OR_RETURN(std::string path, checkpoint_in_folder(*snapshot));
    return Found({path, id->text(), "Hugging Face cache"});
  }
  return Found();
}

}  // namespace

Result<ResolvedModel> resolve_model(const std::string& argument, const StoreSettings& settings) {
  std::optional<RepoId> id;
  VEDETTE_ASSIGN_OR_RETURN(auto found, locate(argument, settings, id));
  if (found) return std::move(*found);
  return nowhere(*id, settings, settings.revision.value_or("main"));
}

std::string missing_model(const std::string& argument, const StoreSettings& settings) {
  std::optional<RepoId> id;
  const auto found = locate(argument, settings, id);
  return found.ok() && !*found && id ? id->text() : "";
}

bool is_repo_id(const std::string& text) {
  const size_t slash = text.find('/');
  return slash != std::string::npos && is_name_part(text.substr(0, slash)) && is_name_part(text.substr(slash + 1));
}

std::vector<StoreEntry> list_store(const std::string& root) {
  std::vector<StoreEntry> entries;
  std::error_code error;
  const fs::path absolute = fs::absolute(root, error);
  for (const auto& owner : fs::directory_iterator(absolute, error)) {
    std::error_code inner;
    const std::string owner_name = owner.path().filename().string();
    // Names with a leading dot are this program's own (unfinished downloads).
    if (!owner.is_directory(inner) || !is_name_part(owner_name) || owner_name.starts_with('.')) continue;
    for (const auto& model : fs::directory_iterator(owner.path(), inner)) {
      std::error_code ignored;
      const std::string name = model.path().filename().string();
      if (!model.is_directory(ignored) || !is_name_part(name)) continue;
      if (auto entry = measure(model.path(), fmt::format("{}/{}", owner_name, name)))
        entries.push_back(std::move(*entry));
    }
  }
  std::ranges::sort(entries, {}, &StoreEntry::repo_id);
  return entries;
}

std::vector<StoreEntry> list_hugging_face_cache() {
  std::vector<StoreEntry> entries;
  for (const auto& [owner, name] : cached_repositories()) {
    if (!is_name_part(owner) || !is_name_part(name)) continue;
    const auto snapshot = find_snapshot(owner, name, "main");
    if (!snapshot) continue;
    if (auto entry = measure(*snapshot, fmt::format("{}/{}", owner, name))) entries.push_back(std::move(*entry));
  }
  std::ranges::sort(entries, {}, &StoreEntry::repo_id);
  return entries;
}

std::vector<ModelFolder> model_folders(const StoreSettings& settings) {
  std::vector<ModelFolder> folders = {
      {"./models", "models", false, list_store("models")},
      {"store", store_root(settings), false, list_store(store_root(settings))},
      {"Hugging Face cache", hugging_face_cache_root(), false, list_hugging_face_cache()}};
  for (ModelFolder& folder : folders) {
    std::error_code error;
    folder.path = fs::absolute(folder.path, error).string();
    folder.exists = fs::is_directory(folder.path, error);
  }
  return folders;
}

}  // namespace vedette::hub
