#include "weights/test_files.h"

#include <fmt/core.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>

#include "base/float16.h"

namespace vedette::weights::testing {

std::string bf16_bytes(const std::vector<float>& values) {
  std::string out;
  for (const float value : values) out += raw(float_to_bf16(value));
  return out;
}

std::string f16_bytes(const std::vector<float>& values) {
  std::string out;
  for (const float value : values) out += raw(float_to_f16(value));
  return out;
}

SafetensorsBuilder& SafetensorsBuilder::add(const std::string& name, const std::string& dtype,
                                            const std::vector<int64_t>& shape, const std::string& data) {
  std::string dimensions;
  for (const int64_t d : shape) dimensions += (dimensions.empty() ? "" : ",") + std::to_string(d);
  return add_raw(name,
                 fmt::format(R"({{"dtype":"{}","shape":[{}],"data_offsets":[{},{}]}})", dtype, dimensions, data_.size(),
                             data_.size() + data.size()),
                 data);
}

SafetensorsBuilder& SafetensorsBuilder::add_raw(const std::string& name, const std::string& json,
                                                const std::string& data) {
  members_.push_back("\"" + name + "\":" + json);
  data_ += data;
  return *this;
}

std::string SafetensorsBuilder::header() const {
  std::string out = "{";
  for (size_t i = 0; i < members_.size(); ++i) out += (i ? "," : "") + members_[i];
  return out + "}";
}

std::string SafetensorsBuilder::build(char padding) const {
  std::string text = header();
  text.resize((text.size() + 7) / 8 * 8, padding);
  return safetensors_bytes(text, data_);
}

std::string safetensors_bytes(std::string_view header, std::string_view data) {
  return raw<uint64_t>(header.size()) + std::string(header) + std::string(data);
}

std::string gguf_string(std::string_view text) {
  return raw<uint64_t>(text.size()) + std::string(text);
}

GgufBuilder& GgufBuilder::raw_value(const std::string& key, uint32_t type, const std::string& bytes) {
  metadata_ += gguf_string(key) + raw(type) + bytes;
  ++count_;
  return *this;
}

GgufBuilder& GgufBuilder::text(const std::string& key, const std::string& value) {
  return raw_value(key, 8, gguf_string(value));
}

GgufBuilder& GgufBuilder::texts(const std::string& key, const std::vector<std::string>& values) {
  std::string bytes = raw<uint32_t>(8) + raw<uint64_t>(values.size());
  for (const std::string& value : values) bytes += gguf_string(value);
  return raw_value(key, 9, bytes);
}

GgufBuilder& GgufBuilder::floats(const std::string& key, const std::vector<float>& values) {
  return raw_value(key, 9, raw<uint32_t>(6) + raw<uint64_t>(values.size()) + raw_all(values));
}

GgufBuilder& GgufBuilder::ints(const std::string& key, const std::vector<int32_t>& values) {
  return raw_value(key, 9, raw<uint32_t>(5) + raw<uint64_t>(values.size()) + raw_all(values));
}

GgufBuilder& GgufBuilder::tensor(const std::string& name, const std::vector<uint64_t>& dimensions, uint32_t type,
                                 const std::string& data) {
  tensors.push_back({name, dimensions, type, data, -1});
  return *this;
}

std::string GgufBuilder::build() const {
  const auto padded = [&](size_t size) { return (size + alignment - 1) / alignment * alignment; };
  std::string out = raw(magic) + raw(version) +
                    raw<uint64_t>(tensor_count < 0 ? tensors.size() : static_cast<uint64_t>(tensor_count)) +
                    raw<uint64_t>(metadata_count < 0 ? count_ : static_cast<uint64_t>(metadata_count)) + metadata_;
  std::string data;
  for (const GgufBuilderTensor& tensor : tensors) {
    out += gguf_string(tensor.name) + raw<uint32_t>(static_cast<uint32_t>(tensor.dimensions.size())) +
           raw_all(tensor.dimensions) + raw(tensor.type) +
           raw<uint64_t>(tensor.offset < 0 ? data.size() : static_cast<uint64_t>(tensor.offset));
    data += tensor.data;
    data.resize(padded(data.size()));
  }
  out.resize(padded(out.size()));
  out += data;
  out.resize(out.size() - cut);
  return out;
}

GgufBuilder tiny_llama(float first) {
  GgufBuilder out;
  out.text("general.architecture", "llama").u32("llama.block_count", 1).u32("llama.embedding_length", 64);
  out.u32("llama.context_length", 128).u32("llama.feed_forward_length", 96).u32("llama.attention.head_count", 4);
  out.u32("llama.attention.head_count_kv", 2).f32("llama.attention.layer_norm_rms_epsilon", 1e-5f);
  out.f32("llama.rope.freq_base", 50000.0f);
  float next = first;
  const auto add = [&](const std::string& name, std::vector<uint64_t> dimensions) {
    uint64_t count = 1;
    for (const uint64_t d : dimensions) count *= d;
    std::vector<float> values(count);
    for (float& value : values) value = next++;
    out.tensor(name, dimensions, 0, raw_all(values));
  };
  add("token_embd.weight", {64, 8});
  add("blk.0.attn_norm.weight", {64});
  add("blk.0.attn_q.weight", {64, 64});
  add("blk.0.attn_k.weight", {64, 32});
  add("blk.0.attn_v.weight", {64, 32});
  add("blk.0.attn_output.weight", {64, 64});
  add("blk.0.ffn_norm.weight", {64});
  add("blk.0.ffn_gate.weight", {64, 96});
  add("blk.0.ffn_up.weight", {64, 96});
  add("blk.0.ffn_down.weight", {96, 64});
  add("output_norm.weight", {64});
  return out;
}

TempFolder::TempFolder() {
  std::string name = (std::filesystem::temp_directory_path() / "vedette-test-XXXXXX").string();
  if (mkdtemp(name.data()) != nullptr) path_ = name;
}

TempFolder::~TempFolder() {
  std::error_code error;
  if (!path_.empty()) std::filesystem::remove_all(path_, error);
}

std::string TempFolder::path(std::string_view name) const {
  return name.empty() ? path_.string() : (path_ / name).string();
}

std::string TempFolder::write(std::string_view name, std::string_view bytes) const {
  const std::filesystem::path file = path_ / name;
  std::error_code error;
  std::filesystem::create_directories(file.parent_path(), error);
  std::ofstream(file, std::ios::binary).write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  return file.string();
}

}  // namespace vedette::weights::testing
