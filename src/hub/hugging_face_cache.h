// The Hugging Face hub cache: models--owner--name/{refs/<revision>, snapshots/<commit>/}.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace vedette::hub {

// HF_HUB_CACHE, else HF_HOME/hub, else XDG_CACHE_HOME/huggingface/hub, else ~/.cache/huggingface/hub.
std::string hugging_face_cache_root();

// Folder of a snapshot; revision is a branch, a tag or a commit. Nothing if it is not in the cache.
std::optional<std::string> find_snapshot(const std::string& owner, const std::string& name,
                                         const std::string& revision);

// owner and name of every model that has a folder in the cache, in the order of the folder.
std::vector<std::pair<std::string, std::string>> cached_repositories();

// The user's home folder: HOME, else the password file, else "".
std::string home_folder();

}  // namespace vedette::hub
