// Safetensors entries -> named tensors.
#include <map>

#include "base/error.h"
#include "weights/readers.h"

namespace vedette::weights {
namespace {

struct Located {
  const SafetensorsEntry* entry;
  const std::string* file;
};
using Table = std::map<std::string_view, Located>;

ops::Scheme to_scheme(SafetensorsType type) {
  if (type == SafetensorsType::kF32) return ops::Scheme::kF32;
  return type == SafetensorsType::kF16 ? ops::Scheme::kF16 : ops::Scheme::kBF16;
}

StoredTensor dense(const SafetensorsEntry& entry, const std::string& file) {
  StoredTensor tensor;
  tensor.file = file;
  tensor.shape = entry.shape;
  ops::HostMatrix& matrix = tensor.matrix;
  matrix.name = entry.name;
  matrix.scheme = to_scheme(entry.type);
  matrix.rows = 1;
  matrix.cols = entry.shape.empty() ? 1 : entry.shape.back();
  for (size_t i = 0; i + 1 < entry.shape.size(); ++i) matrix.rows *= entry.shape[i];
  matrix.stored_rows = matrix.rows;
  matrix.data = entry.data;
  return tensor;
}

std::string_view module_of(std::string_view name, std::string_view suffix) {
  return name.substr(0, name.size() - suffix.size());
}

const Located* find(const Table& table, std::string_view module, std::string_view suffix) {
  const auto at = table.find(std::string(module) + std::string(suffix));
  return at == table.end() ? nullptr : &at->second;
}

bool is_packed(const Located* weight) {
  return weight && weight->entry->type == SafetensorsType::kU32;
}

// Whether this is the scales or biases of a quantized weight.
bool is_side(const Table& table, std::string_view name) {
  for (const std::string_view suffix : {".scales", ".biases"})
    if (name.ends_with(suffix)) return is_packed(find(table, module_of(name, suffix), ".weight"));
  return false;
}

Result<StoredTensor> quantized(const Table& table, const Located& weight, const QuantizationConfig& quantization) {
  const std::string& name = weight.entry->name;
  const auto module = module_of(name, ".weight");
  const Located* scales = find(table, module, ".scales");
  const Located* biases = find(table, module, ".biases");
  for (const auto& [part, suffix] : {std::pair{scales, ".scales"}, std::pair{biases, ".biases"}})
    if (!part)
      return corrupt_file(name, "{}: tensor '{}' is packed U32 {}, but '{}{}' is missing", *weight.file, name,
                          shape_text(weight.entry->shape), module, suffix);
  return join_affine(*weight.entry, *scales->entry, *biases->entry, quantization.rule(module), *weight.file);
}

// A header whose length is no multiple of 8 leaves the data of its file unaligned.
void align(StoredTensor& tensor, Storage& storage) {
  ops::HostMatrix& matrix = tensor.matrix;
  const bool affine = matrix.scheme == ops::Scheme::kMlxAffine;
  matrix.data = storage.aligned(matrix.data, affine || matrix.scheme == ops::Scheme::kF32 ? 4 : 2);
  if (!affine) return;
  matrix.scales = storage.aligned(matrix.scales, ops::size_of(matrix.side_type));
  matrix.biases = storage.aligned(matrix.biases, ops::size_of(matrix.side_type));
}

}  // namespace

Status add_safetensors(const std::vector<SafetensorsShard>& shards, const QuantizationConfig& quantization,
                       Storage& storage, Checkpoint& checkpoint) {
  Table table;
  for (const SafetensorsShard& shard : shards) {
    for (const SafetensorsEntry& entry : shard.entries) {
      const auto [at, fresh] = table.emplace(entry.name, Located{&entry, &shard.file});
      if (!fresh)
        return corrupt_file(entry.name, "{}: tensor '{}' {} is also in {} as {}", shard.file, entry.name,
                            shape_text(entry.shape), *at->second.file, shape_text(at->second.entry->shape));
      checkpoint.tensor_bytes += static_cast<int64_t>(entry.data.size());
    }
  }
  for (const auto& [name, located] : table) {
    if (is_side(table, name)) continue;
    if (is_packed(&located) && name.ends_with(".weight")) {
      VEDETTE_ASSIGN_OR_RETURN(auto tensor, quantized(table, located, quantization));
      align(tensor, storage);
      checkpoint.tensors.emplace(name, std::move(tensor));
    } else if (located.entry->type == SafetensorsType::kU32 || located.entry->type == SafetensorsType::kOther) {
      checkpoint.unreadable.emplace(name, fmt::format("{}: dtype {}", *located.file, located.entry->type_name));
    } else {
      auto tensor = dense(*located.entry, *located.file);
      align(tensor, storage);
      checkpoint.tensors.emplace(name, std::move(tensor));
    }
  }
  return ok_status();
}

Result<Checkpoint> read_safetensors_bytes(std::span<const std::byte> bytes, const Json& config,
                                          const std::string& name) {
  std::vector<SafetensorsShard> shards(1);
  shards[0].file = name;
  VEDETTE_ASSIGN_OR_RETURN(shards[0].entries, parse_safetensors(bytes, name));
  VEDETTE_ASSIGN_OR_RETURN(const auto quantization, QuantizationConfig::parse(config, "config.json"));
  Checkpoint checkpoint;
  checkpoint.path = name;
  checkpoint.format = quantization.present() ? "mlx" : "safetensors";
  checkpoint.config = config;
  auto storage = std::make_shared<Storage>();
  VEDETTE_RETURN_IF_ERROR(add_safetensors(shards, quantization, *storage, checkpoint));
  checkpoint.storage = std::move(storage);
  return checkpoint;
}

}  // namespace vedette::weights
