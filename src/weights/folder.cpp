// A model folder: config.json, safetensors (one file or shards), or one GGUF model.
#include <algorithm>
#include <filesystem>
#include <set>

#include "base/error.h"
#include "base/log.h"
#include "weights/message_text.h"
#include "weights/readers.h"

namespace vedette::weights {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMaxConfigBytes = 16u << 20;
constexpr size_t kMaxIndexBytes = 128u << 20;
constexpr size_t kMaxFiles = 4096;
constexpr size_t kMaxFileName = 255;  // of any file system in use
constexpr const char* kIndexName = "model.safetensors.index.json";

std::string join(const std::string& folder, std::string_view name) {
  return (fs::path(folder) / name).string();
}

// Names of the folder's files that end in `suffix`, sorted.
std::vector<std::string> files_with(const std::string& folder, std::string_view suffix) {
  std::vector<std::string> names;
  std::error_code error;
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
    std::string name = it->path().filename().string();
    if (name.ends_with(suffix) && names.size() < kMaxFiles) names.push_back(std::move(name));
  }
  std::ranges::sort(names);
  return names;
}

std::string listing(const std::vector<std::string>& names) {
  std::string out;
  for (size_t i = 0; i < names.size() && i < 4; ++i) out += (i ? ", " : "") + shown(names[i]);
  return names.size() > 4 ? out + fmt::format(", ... ({} in all)", names.size()) : out;
}

// The index: shard of each tensor.
struct Index {
  std::string path;
  std::vector<std::pair<std::string, std::string>> shard_of;  // tensor, file name
  std::vector<std::string> shards;
};

Result<Index> read_index(const std::string& path) {
  VEDETTE_ASSIGN_OR_RETURN(const std::string text, read_text_file(path, kMaxIndexBytes));
  VEDETTE_ASSIGN_OR_RETURN(const Json json, parse_json(text, path, {.max_bytes = kMaxIndexBytes, .max_depth = 8}));
  const Json* map = json.find("weight_map");
  if (!map || !map->is_object())
    return corrupt_file("weight_map", "{}: 'weight_map' must be an object of file names, found {}", path,
                        map ? map->type_name() : "nothing");
  Index index{path, {}, {}};
  std::set<std::string> shards;
  for (const auto& [tensor, file] : map->as_object()) {
    const bool plain = file.is_string() && !file.as_string().empty() && file.as_string().size() <= kMaxFileName &&
                       !file.as_string().starts_with('.') && !has_control_characters(file.as_string()) &&
                       file.as_string().find_first_of(std::string_view("/\\\0", 3)) == std::string::npos;
    if (!plain)
      return corrupt_file("weight_map", "{}: shard of tensor '{}' is {}, expected a file name in the same folder", path,
                          shown(tensor), shown(file.dump()));
    index.shard_of.emplace_back(tensor, file.as_string());
    shards.insert(file.as_string());
  }
  if (shards.size() > kMaxFiles)
    return corrupt_file("weight_map", "{}: {} shards, the limit is {}", path, shards.size(), kMaxFiles);
  index.shards.assign(shards.begin(), shards.end());
  return index;
}

// Files to load, and the index that must agree with them (none: whatever they hold).
struct Plan {
  std::vector<std::string> names;
  std::optional<Index> index;
};

Result<Plan> plan_from_index(const std::string& folder) {
  VEDETTE_ASSIGN_OR_RETURN(auto index, read_index(join(folder, kIndexName)));
  std::vector<std::string> missing;
  for (const std::string& shard : index.shards)
    if (!may_exist(join(folder, shard))) missing.push_back(shard);
  if (missing.empty()) {
    Plan plan{index.shards, std::nullopt};
    plan.index = std::move(index);
    return plan;
  }
  if (may_exist(join(folder, "model.safetensors"))) {
    log::warning("{}: names {} shards that are not there ({}); model.safetensors is loaded instead", index.path,
                 missing.size(), listing(missing));
    return Plan{{"model.safetensors"}, std::nullopt};
  }
  return not_found("", "{}: {} of {} shards are missing: {}", index.path, missing.size(), index.shards.size(),
                   listing(missing));
}

Result<Plan> plan_files(const std::string& folder) {
  if (may_exist(join(folder, kIndexName))) return plan_from_index(folder);
  if (may_exist(join(folder, "model.safetensors"))) return Plan{{"model.safetensors"}, std::nullopt};
  auto names = files_with(folder, ".safetensors");
  const bool shards = names.size() > 1 && std::ranges::all_of(names, [](const std::string& name) {
                        return name.starts_with("model-") && name.find("-of-") != std::string::npos;
                      });
  if (names.empty()) return not_found("", "{}: holds config.json, but no .safetensors file", folder);
  if (names.size() > 1 && !shards)
    return not_found("", "{}: {} .safetensors files ({}), but no model.safetensors and no {}", folder, names.size(),
                     listing(names), kIndexName);
  if (shards) {
    const std::string& last = names.back();
    const size_t of = last.find("-of-") + 4;
    const int64_t stated = std::atoll(last.c_str() + of);
    if (stated != static_cast<int64_t>(names.size()))
      return not_found("", "{}: {} shards are there ({}), their names say {}", folder, names.size(), listing(names),
                       stated);
  }
  return Plan{std::move(names), std::nullopt};
}

Status check_index(const Index& index, const std::vector<SafetensorsShard>& shards, const std::string& folder) {
  std::set<std::pair<std::string_view, std::string_view>> stored;
  for (const SafetensorsShard& shard : shards)
    for (const SafetensorsEntry& entry : shard.entries) stored.emplace(entry.name, shard.file);
  for (const auto& [tensor, file] : index.shard_of) {
    const std::string path = join(folder, file);
    if (!stored.contains({tensor, path}))
      return corrupt_file(tensor,
                          "{}: tensor '{}' should be in {}, which does not hold it ({} tensors in all, {} named)",
                          index.path, shown(tensor), file, stored.size(), index.shard_of.size());
  }
  return ok_status();
}

Status read_tensors(const std::string& folder, const QuantizationConfig& quantization, Checkpoint& checkpoint) {
  VEDETTE_ASSIGN_OR_RETURN(const auto plan, plan_files(folder));
  auto storage = std::make_shared<Storage>();
  std::vector<SafetensorsShard> shards;
  for (const std::string& name : plan.names) {
    const std::string path = join(folder, name);
    VEDETTE_ASSIGN_OR_RETURN(const auto file, MappedFile::open(path));
    storage->files.push_back(file);
    SafetensorsShard shard{path, {}};
    VEDETTE_ASSIGN_OR_RETURN(shard.entries, parse_safetensors(file->bytes(), path));
    shards.push_back(std::move(shard));
  }
  if (plan.index) VEDETTE_RETURN_IF_ERROR(check_index(*plan.index, shards, folder));
  VEDETTE_RETURN_IF_ERROR(add_safetensors(shards, quantization, *storage, checkpoint));
  checkpoint.storage = std::move(storage);
  return storage_intact(checkpoint);
}

// The one GGUF model of a folder without config.json (all parts of a split are one model).
Result<Checkpoint> open_only_gguf(const std::string& folder, const OpenOptions& options) {
  const auto names = files_with(folder, ".gguf");
  if (names.empty())
    return not_found("", "{}: holds neither config.json nor a .gguf file; expected a model folder", folder);
  const bool split = names.size() > 1 && std::ranges::all_of(names, [&](const std::string& name) {
                       const std::string tail = fmt::format("-of-{:05}.gguf", names.size());
                       return name.ends_with(tail) && name.substr(0, name.size() - tail.size() - 5) ==
                                                          names[0].substr(0, names[0].size() - tail.size() - 5);
                     });
  if (names.size() > 1 && !split)
    return invalid_request("", "{}: {} .gguf files ({}); give the path of one", folder, names.size(), listing(names));
  return open_gguf(join(folder, names[0]), options);
}

}  // namespace

Result<Checkpoint> open_folder(const std::string& path, const OpenOptions& options) {
  const std::string config_path = join(path, "config.json");
  if (!may_exist(config_path)) return open_only_gguf(path, options);
  Checkpoint checkpoint;
  checkpoint.path = path;
  VEDETTE_ASSIGN_OR_RETURN(const std::string text, read_text_file(config_path, kMaxConfigBytes));
  VEDETTE_ASSIGN_OR_RETURN(checkpoint.config, parse_json(text, config_path, {.max_bytes = kMaxConfigBytes}));
  if (!checkpoint.config.is_object())
    return corrupt_file("", "{}: expected a JSON object, found {}", config_path, checkpoint.config.type_name());
  VEDETTE_ASSIGN_OR_RETURN(const auto quantization, QuantizationConfig::parse(checkpoint.config, config_path));
  checkpoint.format = quantization.present() ? "mlx" : "safetensors";
  if (options.tensors) VEDETTE_RETURN_IF_ERROR(read_tensors(path, quantization, checkpoint));
  VEDETTE_RETURN_IF_ERROR(read_tokenizer_files(path, checkpoint));
  return checkpoint;
}

}  // namespace vedette::weights
