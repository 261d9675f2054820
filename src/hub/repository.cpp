#include "hub/repository.h"

#include <fmt/format.h>
#include <fnmatch.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <map>

#include "base/error.h"
#include "base/json.h"

namespace vedette::hub {
namespace {

constexpr size_t kMostFiles = 100'000;
constexpr size_t kLongestPath = 1024;

std::string lower(std::string_view text) {
  std::string out(text);
  std::ranges::transform(out, out.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return out;
}

bool is_hex(std::string_view text, size_t length) {
  return text.size() == length && std::ranges::all_of(text, [](unsigned char c) { return std::isxdigit(c) != 0; });
}

std::string hex_member(const Json& object, std::string_view key, size_t length) {
  const Json* value = object.find(key);
  return value != nullptr && value->is_string() && is_hex(value->as_string(), length) ? lower(value->as_string()) : "";
}

int64_t size_member(const Json& object) {
  const Json* value = object.find("size");
  return value != nullptr && value->is_int() && value->as_int() >= 0 ? value->as_int() : -1;
}

Result<RepositoryFile> parse_file(const Json& entry, const std::string& id) {
  const Json* name = entry.find("rfilename");
  if (name == nullptr || !name->is_string())
    return corrupt_file("", "the hub's list of {}: an entry without rfilename", id);
  RepositoryFile file;
  file.path = name->as_string();
  if (!is_safe_path(file.path))
    return corrupt_file("",
                        "the hub's list of {}: the file name '{}' leads out of the model's folder; nothing was "
                        "fetched",
                        id, file.path.substr(0, 200));
  file.size = size_member(entry);
  if (const Json* lfs = entry.find("lfs"); lfs != nullptr && lfs->is_object()) {
    file.sha256 = hex_member(*lfs, "sha256", 64);
    if (file.sha256.empty()) file.sha256 = hex_member(*lfs, "oid", 64);
    if (const int64_t size = size_member(*lfs); size >= 0) file.size = size;
  } else {
    file.blob_id = hex_member(entry, "blobId", 40);
  }
  return file;
}

bool matches_any(const std::string& path, std::span<const std::string> patterns) {
  return std::ranges::any_of(
      patterns, [&](const std::string& pattern) { return fnmatch(pattern.c_str(), path.c_str(), 0) == 0; });
}

bool has_suffix(const RepositoryFile& file, std::string_view suffix) {
  return lower(file.path).ends_with(suffix);
}

bool in_subfolder(const RepositoryFile& file) {
  return file.path.find('/') != std::string::npos;
}

// Small files beside the weights that a checkpoint's readers may open.
bool is_companion(const RepositoryFile& file) {
  if (file.path.starts_with("additional_chat_templates/")) return has_suffix(file, ".jinja");
  if (in_subfolder(file)) return false;
  const std::string name = lower(file.path);
  for (const std::string_view suffix : {".json", ".jinja", ".tiktoken"}) {
    if (name.ends_with(suffix)) return true;
  }
  return name == "tokenizer.model" || name == "merges.txt" || name == "vocab.txt" || name == "spiece.model" ||
         name == "license" || name == "license.txt" || name == "license.md";
}

// "name-Q4_K_M" of name-Q4_K_M.gguf and of name-Q4_K_M-00001-of-00003.gguf.
std::string gguf_stem(const std::string& path) {
  std::string stem = path.substr(0, path.size() - 5);
  const size_t of = stem.rfind("-of-");
  if (of == std::string::npos || of < 6 || stem.size() - of != 9) return stem;
  return stem.substr(0, of - 6);
}

std::vector<RepositoryFile> safetensors_of(const Repository& repository) {
  std::vector<RepositoryFile> all, named;
  for (const RepositoryFile& file : repository.files) {
    if (in_subfolder(file) || !has_suffix(file, ".safetensors")) continue;
    all.push_back(file);
    if (file.path.starts_with("model")) named.push_back(file);
  }
  return named.empty() ? all : named;  // consolidated.safetensors holds the same weights again
}

// One quantization of those there are, best first by what is usual for a CPU.
FileChoice choose_gguf(const Repository& repository) {
  std::map<std::string, std::vector<RepositoryFile>> groups;
  for (const RepositoryFile& file : repository.files) {
    const std::string name = lower(file.path.substr(file.path.rfind('/') + 1));
    if (!name.ends_with(".gguf") || name.starts_with("mmproj") || name.find("imatrix") != std::string::npos) continue;
    groups[gguf_stem(file.path)].push_back(file);
  }
  if (groups.empty()) return {};
  if (groups.size() == 1) return {groups.begin()->second, ""};
  constexpr std::array<std::string_view, 9> kOrder = {"q4_k_m", "q4_k_s", "q4_0", "q5_k_m", "q8_0",
                                                      "q6_k",   "q4_1",   "bf16", "f16"};
  auto chosen = groups.begin();
  for (const std::string_view kind : kOrder) {
    const auto found = std::ranges::find_if(
        groups, [&](const auto& group) { return lower(group.first).find(kind) != std::string::npos; });
    if (found == groups.end()) continue;
    chosen = found;
    break;
  }
  return {chosen->second, fmt::format("{} of {} GGUF variants was chosen; --include '*NAME*' takes another",
                                      chosen->second.front().path, groups.size())};
}

}  // namespace

bool is_safe_path(std::string_view path) {
  if (path.empty() || path.size() > kLongestPath || path.front() == '/') return false;
  if (std::ranges::any_of(path, [](unsigned char c) { return c < 0x20 || c == 0x7f || c == '\\'; })) return false;
  while (true) {
    const std::string_view part = path.substr(0, path.find('/'));
    if (part.empty() || part == "." || part == ".." || part.size() > 255) return false;
    if (part.size() == path.size()) return true;
    path.remove_prefix(part.size() + 1);
  }
}

Result<Repository> parse_repository(const std::string& id, std::string_view json) {
  const auto parsed = parse_json(json, "the hub's list of " + id);
  if (!parsed.ok()) return parsed.error();
  const Json* siblings = parsed->find("siblings");
  if (siblings == nullptr || !siblings->is_array() || siblings->as_array().size() > kMostFiles)
    return corrupt_file("", "the hub's list of {}: expected a list `siblings` of files, found {}", id,
                        siblings == nullptr ? "nothing" : siblings->type_name());
  Repository out;
  out.id = id;
  if (const Json* sha = parsed->find("sha"); sha != nullptr && sha->is_string() &&
                                             is_hex(sha->as_string(), sha->as_string().size()) &&
                                             sha->as_string().size() <= 64)
    out.commit = sha->as_string();
  for (const Json& entry : siblings->as_array()) {
    VEDETTE_ASSIGN_OR_RETURN(RepositoryFile file, parse_file(entry, id));
    out.files.push_back(std::move(file));
  }
  return out;
}

Result<FileChoice> choose_files(const Repository& repository, std::span<const std::string> include,
                                std::span<const std::string> exclude) {
  FileChoice out;
  if (!include.empty()) {
    for (const RepositoryFile& file : repository.files)
      if (matches_any(file.path, include)) out.files.push_back(file);
  } else {
    out.files = safetensors_of(repository);
    if (out.files.empty()) out = choose_gguf(repository);
    if (out.files.empty())
      return not_found("", "{} holds neither safetensors nor GGUF files at its top; name its files with --include",
                       repository.id);
    for (const RepositoryFile& file : repository.files)
      if (is_companion(file)) out.files.push_back(file);
  }
  std::erase_if(out.files, [&](const RepositoryFile& file) { return matches_any(file.path, exclude); });
  if (out.files.empty())
    return not_found("", "no file of {} matches --include and --exclude; it has {} files, the first is {}",
                     repository.id, repository.files.size(),
                     repository.files.empty() ? "none" : repository.files.front().path);
  return out;
}

}  // namespace vedette::hub
