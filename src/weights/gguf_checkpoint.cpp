// A GGUF file, or all parts of a split one, as a checkpoint.
#include <charconv>
#include <filesystem>

#include "base/error.h"
#include "weights/gguf_config.h"
#include "weights/gguf_tensors.h"
#include "weights/readers.h"

namespace vedette::weights {
namespace {

constexpr int kMaxParts = 1024;

// "model-00002-of-00003.gguf" -> stem "model", part 2 of 3.
struct SplitName {
  std::string stem;
  int part = 0;
  int count = 0;
};

std::optional<int> five_digits(std::string_view text) {
  int value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (text.size() != 5 || error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

std::optional<SplitName> parse_split_name(const std::string& path) {
  constexpr std::string_view kTail = "-00000-of-00000.gguf";
  if (path.size() <= kTail.size() || !path.ends_with(".gguf")) return std::nullopt;
  const std::string_view tail = std::string_view(path).substr(path.size() - kTail.size());
  if (tail[0] != '-' || tail.substr(6, 4) != "-of-") return std::nullopt;
  const auto part = five_digits(tail.substr(1, 5));
  const auto count = five_digits(tail.substr(10, 5));
  if (!part || !count) return std::nullopt;
  return SplitName{path.substr(0, path.size() - kTail.size()), *part, *count};
}

Result<std::vector<std::string>> part_paths(const std::string& path) {
  const auto split = parse_split_name(path);
  if (!split) return std::vector<std::string>{path};
  if (split->count < 1 || split->count > kMaxParts || split->part < 1 || split->part > split->count)
    return invalid_request("", "{}: the name says part {} of {}, expected 1 to at most {} parts", path, split->part,
                           split->count, kMaxParts);
  std::vector<std::string> paths;
  std::string missing;
  int n_missing = 0;
  for (int i = 1; i <= split->count; ++i) {
    paths.push_back(fmt::format("{}-{:05}-of-{:05}.gguf", split->stem, i, split->count));
    if (may_exist(paths.back())) continue;
    ++n_missing;
    if (n_missing <= 3)
      missing += (missing.empty() ? "" : ", ") + std::filesystem::path(paths.back()).filename().string();
  }
  if (n_missing > 0)
    return not_found("", "{}: {} of {} parts are missing: {}{}", path, n_missing, split->count, missing,
                     n_missing > 3 ? ", ..." : "");
  return paths;
}

// split.no and split.count against the part's place among `count` files.
Status check_split(const GgufFile& gguf, size_t index, size_t count, const std::string& file) {
  const int64_t stated = gguf.integer("split.count").value_or(0);
  if (count == 1) {
    if (stated <= 1) return ok_status();
    return corrupt_file("split.count",
                        "{}: is one of {} parts, but 1 file was given; parts are found by names ending in "
                        "-00001-of-{:05}.gguf",
                        file, stated, stated);
  }
  if (stated != static_cast<int64_t>(count))
    return corrupt_file("split.count", "{}: 'split.count' is {}, the file name says {}", file, stated, count);
  const int64_t number = gguf.integer("split.no").value_or(-1);
  if (number != static_cast<int64_t>(index))
    return corrupt_file("split.no", "{}: 'split.no' is {}, the file name says part {} (number {})", file, number,
                        index + 1, index);
  return ok_status();
}

Status check_total(const GgufFile& first, size_t found, const std::string& file) {
  const auto stated = first.integer("split.tensors.count");
  if (!stated || *stated == static_cast<int64_t>(found)) return ok_status();
  return corrupt_file("split.tensors.count", "{}: 'split.tensors.count' is {}, all parts together hold {} tensors",
                      file, *stated, found);
}

// Tensors of the later parts join the first's, which alone has the metadata.
Status merge(GgufFile& first, GgufFile&& next) {
  for (GgufTensor& tensor : next.tensors) first.tensors.push_back(std::move(tensor));
  first.unreadable.merge(next.unreadable);
  return ok_status();
}

Status fill(GgufFile& gguf, const std::string& file, Storage& storage, bool tensors, Checkpoint& checkpoint) {
  VEDETTE_ASSIGN_OR_RETURN(const GgufArchitecture* architecture, find_architecture(gguf, file));
  GgufConfig config(gguf, *architecture, file);
  VEDETTE_ASSIGN_OR_RETURN(checkpoint.config, config.finish());
  checkpoint.generation_config = gguf_generation_config(gguf);
  if (const std::string* text = gguf.string("tokenizer.chat_template")) checkpoint.chat_template = *text;
  if (tensors) {
    const GgufHeads heads{config.heads, config.kv_heads, config.head_dim, config.layers};
    VEDETTE_RETURN_IF_ERROR(add_gguf_tensors(gguf, *architecture, heads, file, storage, checkpoint));
    if (architecture->name == "apertus")
      VEDETTE_RETURN_IF_ERROR(add_xielu_tensors(gguf, heads, file, storage, checkpoint));
  }
  VEDETTE_ASSIGN_OR_RETURN(checkpoint.tokenizer, gguf_tokenizer(gguf, file));
  return ok_status();
}

}  // namespace

Result<Checkpoint> open_gguf(const std::string& path, const OpenOptions& options) {
  VEDETTE_ASSIGN_OR_RETURN(const auto paths, part_paths(path));
  auto storage = std::make_shared<Storage>();
  GgufFile gguf;
  size_t n_tensors = 0;
  for (size_t i = 0; i < paths.size(); ++i) {
    VEDETTE_ASSIGN_OR_RETURN(const auto file, MappedFile::open(paths[i]));
    storage->files.push_back(file);
    VEDETTE_ASSIGN_OR_RETURN(auto part, parse_gguf(file->bytes(), paths[i]));
    release_mapped_pages(file->bytes());  // metadata is copied
    VEDETTE_RETURN_IF_ERROR(check_split(part, i, paths.size(), paths[i]));
    n_tensors += part.tensors.size() + part.unreadable.size();
    if (i == 0)
      gguf = std::move(part);
    else
      VEDETTE_RETURN_IF_ERROR(merge(gguf, std::move(part)));
  }
  VEDETTE_RETURN_IF_ERROR(check_total(gguf, n_tensors, paths[0]));
  Checkpoint checkpoint;
  checkpoint.path = path;
  checkpoint.format = "gguf";
  VEDETTE_RETURN_IF_ERROR(fill(gguf, paths[0], *storage, options.tensors, checkpoint));
  checkpoint.storage = std::move(storage);
  VEDETTE_RETURN_IF_ERROR(storage_intact(checkpoint));
  return checkpoint;
}

Result<Checkpoint> read_gguf_bytes(std::span<const std::byte> bytes, const std::string& name) {
  VEDETTE_ASSIGN_OR_RETURN(auto gguf, parse_gguf(bytes, name));
  auto storage = std::make_shared<Storage>();
  Checkpoint checkpoint;
  checkpoint.path = name;
  checkpoint.format = "gguf";
  VEDETTE_RETURN_IF_ERROR(fill(gguf, name, *storage, true, checkpoint));
  checkpoint.storage = std::move(storage);
  return checkpoint;
}

}  // namespace vedette::weights
