#include "hub/hugging_face_cache.h"

#include <pwd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string_view>

namespace vedette::hub {
namespace fs = std::filesystem;
namespace {

std::string environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

// A commit is a folder name; anything else in a refs file is not followed.
bool is_commit(std::string_view text) {
  return !text.empty() && text.size() <= 64 &&
         std::ranges::all_of(text, [](unsigned char c) { return std::isxdigit(c) != 0; });
}

// A branch may hold slashes, but must not leave refs/.
bool is_plain_revision(const std::string& revision) {
  if (revision.empty() || revision.size() > 255 || revision.front() == '/') return false;
  return std::ranges::none_of(fs::path(revision), [](const fs::path& part) { return part == ".." || part == "."; });
}

std::string read_ref(const fs::path& file) {
  std::ifstream in(file);
  std::string line;
  std::getline(in, line);
  while (!line.empty() && std::isspace(static_cast<unsigned char>(line.back())) != 0) line.pop_back();
  return line;
}

}  // namespace

std::string home_folder() {
  if (std::string home = environment("HOME"); !home.empty()) return home;
  std::array<char, 4096> buffer{};
  passwd entry{};
  passwd* found = nullptr;
  if (getpwuid_r(getuid(), &entry, buffer.data(), buffer.size(), &found) == 0 && found != nullptr) return found->pw_dir;
  return "";
}

std::string hugging_face_cache_root() {
  if (std::string root = environment("HF_HUB_CACHE"); !root.empty()) return root;
  if (std::string home = environment("HF_HOME"); !home.empty()) return (fs::path(home) / "hub").string();
  if (std::string cache = environment("XDG_CACHE_HOME"); !cache.empty())
    return (fs::path(cache) / "huggingface" / "hub").string();
  return (fs::path(home_folder()) / ".cache" / "huggingface" / "hub").string();
}

std::optional<std::string> find_snapshot(const std::string& owner, const std::string& name,
                                         const std::string& revision) {
  const fs::path repo = fs::path(hugging_face_cache_root()) / ("models--" + owner + "--" + name);
  if (!is_plain_revision(revision)) return std::nullopt;
  std::error_code error;
  std::string commit = read_ref(repo / "refs" / revision);
  if (!is_commit(commit)) commit = is_commit(revision) ? revision : "";
  if (commit.empty()) return std::nullopt;
  fs::path folder = repo / "snapshots" / commit;
  if (!fs::is_directory(folder, error)) return std::nullopt;
  return folder.string();
}

std::vector<std::pair<std::string, std::string>> cached_repositories() {
  constexpr std::string_view kPrefix = "models--";
  std::vector<std::pair<std::string, std::string>> out;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(hugging_face_cache_root(), error)) {
    std::string name = entry.path().filename().string();
    if (!name.starts_with(kPrefix)) continue;
    name.erase(0, kPrefix.size());
    const size_t mark = name.find("--");
    if (mark == std::string::npos || mark == 0 || mark + 2 == name.size()) continue;
    out.emplace_back(name.substr(0, mark), name.substr(mark + 2));
  }
  return out;
}

}  // namespace vedette::hub
