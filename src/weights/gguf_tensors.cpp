#include "weights/gguf_tensors.h"

#include <algorithm>

#include "base/error.h"
#include "weights/safetensors.h"

namespace vedette::weights {
namespace {

std::string_view find_name(std::span<const TensorName> names, std::string_view gguf) {
  const auto at = std::ranges::find(names, gguf, &TensorName::gguf);
  return at == names.end() ? std::string_view{} : at->hf;
}

// A name's parts: layer number ("" outside a layer), stem and suffix (".weight").
struct NameParts {
  std::string_view layer, stem, suffix;
};

NameParts split_name(std::string_view name) {
  NameParts parts;
  const size_t dot = name.rfind('.');
  if (dot == std::string_view::npos) return {{}, name, {}};
  parts.suffix = name.substr(dot);
  parts.stem = name.substr(0, dot);
  if (parts.stem.starts_with("blk.")) {
    const size_t end = parts.stem.find('.', 4);
    if (end != std::string_view::npos) {
      parts.layer = parts.stem.substr(4, end - 4);
      parts.stem = parts.stem.substr(end + 1);
    }
  }
  return parts;
}

// Read into the configuration, or derived data that nobody reads.
bool is_consumed(std::string_view name) {
  return name == "rope_freqs.weight" || name == "rope_factors_long.weight" || name == "rope_factors_short.weight" ||
         name.ends_with(".attn_rot_embd.weight") || name.ends_with(".attn_rot_embd");
}

// Logical row of Hugging Face's half-split heads -> stored row of the interleaved ones.
std::vector<uint32_t> unpermute(int64_t heads, int64_t head_dim) {
  std::vector<uint32_t> map;
  map.reserve(static_cast<size_t>(heads * head_dim));
  for (int64_t head = 0; head < heads; ++head)
    for (int64_t half = 0; half < 2; ++half)
      for (int64_t i = 0; i < head_dim / 2; ++i) map.push_back(static_cast<uint32_t>(head * head_dim + 2 * i + half));
  return map;
}

// Logical row (head, q|k|v, i) -> stored row (q|k|v, head, i).
std::vector<uint32_t> per_head_qkv(int64_t heads, int64_t head_dim) {
  std::vector<uint32_t> map;
  map.reserve(static_cast<size_t>(3 * heads * head_dim));
  for (int64_t head = 0; head < heads; ++head)
    for (int64_t part = 0; part < 3; ++part)
      for (int64_t i = 0; i < head_dim; ++i) map.push_back(static_cast<uint32_t>((part * heads + head) * head_dim + i));
  return map;
}

class Adder {
 public:
  Adder(const GgufArchitecture& architecture, const GgufHeads& heads, const std::string& file, Storage& storage,
        Checkpoint& checkpoint)
      : architecture_(architecture), heads_(heads), file_(file), storage_(storage), checkpoint_(checkpoint) {}

  Status add(const GgufTensor& tensor) {
    if (is_consumed(tensor.name)) return ok_status();
    const NameParts parts = split_name(tensor.name);
    const bool in_layer = !parts.layer.empty();
    if (in_layer && parts.stem == "attn_qkv" && architecture_.fused_qkv == FusedQkv::kSplit)
      return add_split(tensor, parts);
    if (in_layer && architecture_.model_type == "stablelm" && tensor.shape.size() == 2 &&
        (parts.stem == "attn_q_norm" || parts.stem == "attn_k_norm"))
      return add_head_norms(tensor, parts);
    StoredTensor stored = plain(tensor);
    if (in_layer && parts.stem == "attn_qkv" && architecture_.fused_qkv == FusedQkv::kPerHead)
      VEDETTE_RETURN_IF_ERROR(
          reorder(stored, 3 * heads_.heads,
                  per_head_qkv(heads_.heads, row_count(stored) / std::max<int64_t>(1, 3 * heads_.heads))));
    if (architecture_.permuted && in_layer && (parts.stem == "attn_q" || parts.stem == "attn_k")) {
      const int64_t heads = parts.stem == "attn_q" ? heads_.heads : heads_.kv_heads;
      VEDETTE_RETURN_IF_ERROR(reorder(stored, 2 * heads, unpermute(heads, row_count(stored) / heads)));
    }
    if (architecture_.norm_plus_one && tensor.name.ends_with("norm.weight"))
      VEDETTE_RETURN_IF_ERROR(subtract_one(stored));
    return insert(hf_tensor_name(architecture_, tensor.name), std::move(stored));
  }

 private:
  static int64_t row_count(const StoredTensor& stored) { return stored.shape.empty() ? 1 : stored.shape[0]; }

  StoredTensor plain(const GgufTensor& tensor) const {
    StoredTensor stored;
    stored.file = file_;
    stored.shape = tensor.shape;
    stored.matrix.scheme = tensor.scheme;
    stored.matrix.cols = tensor.shape.back();
    stored.matrix.rows = 1;
    for (size_t i = 0; i + 1 < tensor.shape.size(); ++i) stored.matrix.rows *= tensor.shape[i];
    stored.matrix.stored_rows = stored.matrix.rows;
    stored.matrix.data = tensor.data;
    stored.matrix.name = tensor.name;
    return stored;
  }

  Error wrong_rows(const StoredTensor& stored, int64_t parts) const {
    return corrupt_file(stored.matrix.name, "{}: tensor '{}': shape {} is not divisible by {} rows per head unit",
                        file_, stored.matrix.name, shape_text(stored.shape), parts);
  }

  // Rows of a matrix, or elements of a bias, in the order of `map`.
  Status reorder(StoredTensor& stored, int64_t unit, std::vector<uint32_t> map) {
    const int64_t rows = row_count(stored);
    if (unit <= 0 || rows % unit != 0 || static_cast<int64_t>(map.size()) != rows) return wrong_rows(stored, unit);
    if (stored.shape.size() > 1) {
      stored.matrix.row_map = std::move(map);
      return ok_status();
    }
    VEDETTE_ASSIGN_OR_RETURN(const auto values, to_float(stored));
    std::vector<float> out(values.size());
    for (size_t i = 0; i < out.size(); ++i) out[i] = values[map[i]];
    own(stored, std::move(out));
    return ok_status();
  }

  Status subtract_one(StoredTensor& stored) {
    VEDETTE_ASSIGN_OR_RETURN(auto values, to_float(stored));
    for (float& value : values) value -= 1.0f;
    own(stored, std::move(values));
    return ok_status();
  }

  void own(StoredTensor& stored, std::vector<float> values) {
    stored.matrix.scheme = ops::Scheme::kF32;
    stored.matrix.data = storage_.keep(std::move(values));
  }

  // Rows [first, first + count) of a matrix, or elements of a vector.
  StoredTensor slice(const StoredTensor& whole, int64_t first, int64_t count) const {
    StoredTensor part = whole;
    const size_t unit = whole.matrix.data.size() / static_cast<size_t>(row_count(whole));
    part.matrix.data = whole.matrix.data.subspan(static_cast<size_t>(first) * unit, static_cast<size_t>(count) * unit);
    part.shape[0] = count;
    if (part.shape.size() == 1)
      part.matrix.cols = count;
    else
      part.matrix.rows = part.matrix.stored_rows = count;
    return part;
  }

  Status add_split(const GgufTensor& tensor, const NameParts& parts) {
    const StoredTensor whole = plain(tensor);
    const int64_t q = heads_.heads * heads_.head_dim;
    const int64_t kv = heads_.kv_heads * heads_.head_dim;
    if (whole.shape.size() > 2 || row_count(whole) != q + 2 * kv ||
        (whole.shape.size() == 1 && !ops::is_float(tensor.scheme)))
      return corrupt_file(tensor.name, "{}: tensor '{}': {} rows, {} query and 2 x {} key/value heads of {} need {}",
                          file_, tensor.name, row_count(whole), heads_.heads, heads_.kv_heads, heads_.head_dim,
                          q + 2 * kv);
    const std::string prefix = std::string(architecture_.layers) + std::string(parts.layer) + ".self_attn.";
    const std::string suffix(parts.suffix);
    VEDETTE_RETURN_IF_ERROR(insert(prefix + "q_proj" + suffix, slice(whole, 0, q)));
    VEDETTE_RETURN_IF_ERROR(insert(prefix + "k_proj" + suffix, slice(whole, q, kv)));
    return insert(prefix + "v_proj" + suffix, slice(whole, q + kv, kv));
  }

  // StableLM 2 12B: one norm per head, stacked by the converter.
  Status add_head_norms(const GgufTensor& tensor, const NameParts& parts) {
    const StoredTensor whole = plain(tensor);
    const std::string prefix = std::string(architecture_.layers) + std::string(parts.layer) + ".self_attn." +
                               (parts.stem == "attn_q_norm" ? "q_layernorm" : "k_layernorm") + ".norms.";
    for (int64_t head = 0; head < row_count(whole); ++head) {
      StoredTensor part = slice(whole, head, 1);
      part.shape.erase(part.shape.begin());
      VEDETTE_RETURN_IF_ERROR(insert(prefix + std::to_string(head) + std::string(parts.suffix), std::move(part)));
    }
    return ok_status();
  }

  Status insert(std::string name, StoredTensor stored) {
    stored.matrix.name = name;
    if (!checkpoint_.tensors.emplace(name, std::move(stored)).second)
      return corrupt_file(name, "{}: tensor '{}' is stored twice", file_, name);
    return ok_status();
  }

  const GgufArchitecture& architecture_;
  const GgufHeads& heads_;
  const std::string& file_;
  Storage& storage_;
  Checkpoint& checkpoint_;
};

}  // namespace

std::string hf_tensor_name(const GgufArchitecture& architecture, std::string_view name) {
  const NameParts parts = split_name(name);
  if (parts.layer.empty()) {
    const auto hf = find_name(architecture.top, parts.stem);
    return hf.empty() ? std::string(name) : std::string(hf) + std::string(parts.suffix);
  }
  const auto hf = find_name(architecture.layer, parts.stem);
  if (hf.empty()) return std::string(name);
  return fmt::format("{}{}.{}{}", architecture.layers, parts.layer, hf, parts.suffix);
}

Status add_gguf_tensors(const GgufFile& gguf, const GgufArchitecture& architecture, const GgufHeads& heads,
                        const std::string& file, Storage& storage, Checkpoint& checkpoint) {
  Adder adder(architecture, heads, file, storage, checkpoint);
  for (const GgufTensor& tensor : gguf.tensors) {
    VEDETTE_RETURN_IF_ERROR(adder.add(tensor));
    checkpoint.tensor_bytes += static_cast<int64_t>(tensor.data.size());
  }
  for (const auto& [name, why] : gguf.unreadable)
    checkpoint.unreadable.emplace(hf_tensor_name(architecture, name), fmt::format("{}: {}", file, why));
  return ok_status();
}

Status add_xielu_tensors(const GgufFile& gguf, const GgufHeads& heads, const std::string& file, Storage& storage,
                         Checkpoint& checkpoint) {
  for (const std::string_view parameter : {"alpha_p", "alpha_n", "beta", "eps"}) {
    const std::string key = "xielu." + std::string(parameter);
    const auto* values = gguf.array<float>(key);
    if (!values || static_cast<int64_t>(values->size()) != heads.layers)
      return corrupt_file(key, "{}: metadata '{}' has {} values, the model has {} layers", file, key,
                          values ? values->size() : 0, heads.layers);
    for (int64_t layer = 0; layer < heads.layers; ++layer) {
      StoredTensor stored;
      stored.file = file;
      if (parameter.starts_with("alpha")) stored.shape = {1};
      stored.matrix.rows = stored.matrix.stored_rows = stored.matrix.cols = 1;
      stored.matrix.name = fmt::format("model.layers.{}.mlp.act_fn.{}", layer, parameter);
      stored.matrix.data = storage.keep({(*values)[static_cast<size_t>(layer)]});
      checkpoint.tensors.insert_or_assign(stored.matrix.name, std::move(stored));
    }
  }
  return ok_status();
}

}  // namespace vedette::weights
