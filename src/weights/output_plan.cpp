#include "weights/output_plan.h"

#include <algorithm>
#include <map>

#include "base/error.h"
#include "base/log.h"
#include "weights/affine_pack.h"
#include "weights/quantization.h"

namespace vedette::weights {
namespace {

const char* safetensors_type(ops::DType type) {
  if (type == ops::DType::kF32) return "F32";
  return type == ops::DType::kF16 ? "F16" : "BF16";
}

// GPT-2 keeps linear weights as [in, out]: groups of columns would run over outputs.
bool is_conv1d(const Checkpoint& checkpoint, std::string_view name) {
  const Json* type = checkpoint.config.find("model_type");
  if (!type || !type->is_string() || type->as_string() != "gpt2" || checkpoint.format == "gguf") return false;
  return name.find(".c_attn.") != std::string_view::npos || name.find(".c_proj.") != std::string_view::npos ||
         name.find(".c_fc.") != std::string_view::npos;
}

// A weight of a linear or embedding layer (learned positions are read row by row and stay as they are).
bool is_layer_weight(const Checkpoint& checkpoint, std::string_view name, const StoredTensor& tensor) {
  return tensor.shape.size() == 2 && name.ends_with(".weight") && name.find("norm") == std::string_view::npos &&
         name.find(".ln_") == std::string_view::npos && !name.ends_with("wpe.weight") && !tensor.matrix.transposed &&
         !is_conv1d(checkpoint, name);
}

class Planner {
 public:
  Planner(const Checkpoint& checkpoint, const ConvertOptions& options) : checkpoint_(checkpoint), options_(options) {}

  Result<OutputPlan> plan() {
    VEDETTE_RETURN_IF_ERROR(check_options());
    for (const auto& [name, tensor] : checkpoint_.tensors) plan_.tensors.push_back(place(name, tensor));
    if (plan_.tensors.empty())
      return invalid_request("", "{}: 0 tensors; there is nothing to convert", checkpoint_.path);
    VEDETTE_RETURN_IF_ERROR(check_quantized());
    assign_shards();
    describe();
    return std::move(plan_);
  }

 private:
  // Layer weights whose rows are no whole number of groups stay as they are; that is said, and refused if it is all.
  Status check_quantized() const {
    if (!options_.bits) return ok_status();
    std::string names;
    int64_t left = 0;
    bool any_packed = false;
    for (const OutputTensor& tensor : plan_.tensors) {
      any_packed = any_packed || tensor.form != OutputForm::kDense;
      if (tensor.form != OutputForm::kDense || !is_layer_weight(checkpoint_, tensor.data.name, *tensor.source))
        continue;
      if (left++ < 4)
        names += fmt::format("{}{} ({} columns)", left == 1 ? "" : ", ", tensor.data.name, tensor.source->matrix.cols);
    }
    if (left > 4) names += fmt::format(" and {} more", left - 4);
    if (!any_packed)
      return invalid_request("--q-group-size", "{}: groups of {} fit no layer weight: {}; choose a smaller group",
                             checkpoint_.path, group_, left > 0 ? names : "there are none");
    if (left > 0) log::warning("groups of {} do not fit {}: not quantized", group_, names);
    return ok_status();
  }

  Status check_options() {
    if (options_.bits && !is_affine_bits(*options_.bits))
      return invalid_request("--q-bits", "--q-bits {}: 2, 3, 4, 5, 6 and 8 are supported", *options_.bits);
    if (options_.group && !is_affine_group(*options_.group))
      return invalid_request("--q-group-size", "--q-group-size {}: 32, 64 and 128 are supported", *options_.group);
    if (options_.group && !options_.bits)
      return invalid_request("--q-group-size", "--q-group-size {} needs --q-bits", *options_.group);
    const bool blocks = std::ranges::any_of(checkpoint_.tensors,
                                            [](const auto& item) { return is_repackable(item.second.matrix.scheme); });
    group_ = options_.group.value_or(blocks ? 32 : 64);
    return ok_status();
  }

  // Type of values that are not packed.
  ops::DType dense_type(const ops::HostMatrix& matrix) const {
    if (options_.dtype) return *options_.dtype;
    if (ops::is_float(matrix.scheme)) return static_cast<ops::DType>(matrix.scheme);
    return matrix.scheme == ops::Scheme::kMlxAffine ? matrix.side_type : ops::DType::kF16;
  }

  void choose_form(std::string_view name, const StoredTensor& tensor, OutputTensor& out) const {
    const ops::HostMatrix& matrix = tensor.matrix;
    const bool affine = matrix.scheme == ops::Scheme::kMlxAffine;
    out.dtype = dense_type(matrix);
    if (!options_.bits && options_.dtype) return;  // everything dense
    const bool two_axes = tensor.shape.size() == 2 && name.ends_with(".weight");
    const bool keeps_bits =
        is_repackable(matrix.scheme) && (!options_.bits || *options_.bits == repacked_bits(matrix.scheme));
    if (keeps_bits && two_axes && (!options_.bits || group_ == 32)) {
      out.form = OutputForm::kRepack;
      out.bits = repacked_bits(matrix.scheme);
      out.group = 32;
      out.dtype = ops::DType::kF16;
      return;
    }
    if (affine && (!options_.bits || (*options_.bits == matrix.bits && group_ == matrix.group))) {
      out.form = OutputForm::kAffineCopy;
      out.bits = matrix.bits;
      out.group = matrix.group;
      out.dtype = matrix.side_type;
      return;
    }
    if (!options_.bits || !is_layer_weight(checkpoint_, name, tensor) || matrix.cols % group_ != 0) return;
    out.form = OutputForm::kQuantize;
    out.bits = *options_.bits;
    out.group = group_;
  }

  OutputTensor place(const std::string& name, const StoredTensor& tensor) const {
    OutputTensor out;
    out.source = &tensor;
    choose_form(name, tensor, out);
    const int64_t elements = tensor.matrix.rows * tensor.matrix.cols;
    const auto unit = static_cast<int64_t>(ops::size_of(out.dtype));
    out.data = {name, safetensors_type(out.dtype), tensor.shape, elements * unit, 0};
    if (out.form == OutputForm::kDense) return out;
    out.data.type = "U32";
    out.data.shape.back() = tensor.matrix.cols * out.bits / 32;
    out.data.bytes = elements / 8 * out.bits;
    const std::string module = name.substr(0, name.size() - std::string_view(".weight").size());
    auto groups = tensor.shape;
    groups.back() = tensor.matrix.cols / out.group;
    const int64_t side_bytes = elements / out.group * unit;
    out.scales = {module + ".scales", safetensors_type(out.dtype), groups, side_bytes, 0};
    out.biases = {module + ".biases", safetensors_type(out.dtype), groups, side_bytes, 0};
    return out;
  }

  void assign_shards() {
    plan_.file_bytes.assign(1, 0);
    for (OutputTensor& tensor : plan_.tensors) {
      if (plan_.file_bytes.back() > 0 && plan_.file_bytes.back() + tensor.bytes() > options_.shard_bytes)
        plan_.file_bytes.push_back(0);
      tensor.shard = plan_.file_bytes.size() - 1;
      plan_.file_bytes.back() += tensor.bytes();
      plan_.total_bytes += tensor.bytes();
    }
    const size_t count = plan_.file_bytes.size();
    for (size_t i = 0; i < count; ++i)
      plan_.files.push_back(count == 1 ? "model.safetensors"
                                       : fmt::format("model-{:05}-of-{:05}.safetensors", i + 1, count));
    // Words of 4 bytes first, so that every tensor is aligned.
    std::vector<int64_t> next(count, 0);
    for (const bool wide : {true, false})
      for (OutputTensor& tensor : plan_.tensors)
        for (OutputRegion* region : {&tensor.data, &tensor.scales, &tensor.biases}) {
          if (region->name.empty() || (region->type == "U32" || region->type == "F32") != wide) continue;
          region->offset = next[tensor.shard];
          next[tensor.shard] += region->bytes;
        }
  }

  // config.json with `quantization`: the commonest bits and group, and an override for every other tensor.
  void describe() {
    plan_.config = checkpoint_.config;
    for (const char* key : {"quantization", "quantization_config"}) plan_.config.erase(key);
    std::map<std::pair<int, int>, int> uses;
    for (const OutputTensor& tensor : plan_.tensors)
      if (tensor.form != OutputForm::kDense) ++uses[{tensor.bits, tensor.group}];
    if (uses.empty()) return;
    const auto common = std::ranges::max_element(uses, {}, [](const auto& item) { return item.second; })->first;
    Json quantization;
    quantization.set("group_size", common.second);
    quantization.set("bits", common.first);
    quantization.set("mode", "affine");
    for (const OutputTensor& tensor : plan_.tensors) {
      if (tensor.form == OutputForm::kDense || std::pair(tensor.bits, tensor.group) == common) continue;
      Json rule;
      rule.set("group_size", tensor.group);
      rule.set("bits", tensor.bits);
      quantization.set(tensor.scales.name.substr(0, tensor.scales.name.size() - std::string_view(".scales").size()),
                       std::move(rule));
    }
    plan_.config.set("quantization", quantization);
    plan_.config.set("quantization_config", std::move(quantization));
  }

  const Checkpoint& checkpoint_;
  const ConvertOptions& options_;
  int group_ = 64;
  OutputPlan plan_;
};

}  // namespace

Result<OutputPlan> plan_output(const Checkpoint& checkpoint, const ConvertOptions& options) {
  return Planner(checkpoint, options).plan();
}

std::string safetensors_header(const OutputPlan& plan, size_t shard) {
  Json header;
  Json metadata;
  metadata.set("format", "mlx");
  header.set("__metadata__", std::move(metadata));
  auto& members = header.as_object();  // names are unique, so appending needs no search
  for (const OutputTensor& tensor : plan.tensors) {
    if (tensor.shard != shard) continue;
    for (const OutputRegion* region : {&tensor.data, &tensor.scales, &tensor.biases}) {
      if (region->name.empty()) continue;
      Json shape = Json::array();
      for (const int64_t dimension : region->shape) shape.push_back(dimension);
      Json offsets = Json::array();
      offsets.push_back(region->offset);
      offsets.push_back(region->offset + region->bytes);
      Json entry;
      entry.set("dtype", region->type);
      entry.set("shape", std::move(shape));
      entry.set("data_offsets", std::move(offsets));
      members.emplace_back(region->name, std::move(entry));
    }
  }
  std::string text = header.dump();
  text.resize((text.size() + 7) / 8 * 8, ' ');
  return text;
}

Json shard_index(const OutputPlan& plan) {
  Json map = Json::object();
  for (const OutputTensor& tensor : plan.tensors)
    for (const OutputRegion* region : {&tensor.data, &tensor.scales, &tensor.biases})
      if (!region->name.empty()) map.as_object().emplace_back(region->name, plan.files[tensor.shard]);
  Json metadata;
  metadata.set("total_size", plan.total_bytes);
  Json index;
  index.set("metadata", std::move(metadata));
  index.set("weight_map", std::move(map));
  return index;
}

}  // namespace vedette::weights
