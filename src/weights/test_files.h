// Builders of safetensors and GGUF bytes for tests. They write what they are told, right or wrong.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace vedette::weights::testing {

template <typename T>
std::string raw(T value) {
  return {reinterpret_cast<const char*>(&value), sizeof value};
}
template <typename T>
std::string raw_all(const std::vector<T>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T)};
}
std::string bf16_bytes(const std::vector<float>& values);
std::string f16_bytes(const std::vector<float>& values);

// Tensors one after the other, with offsets that fit.
class SafetensorsBuilder {
 public:
  SafetensorsBuilder& add(const std::string& name, const std::string& dtype, const std::vector<int64_t>& shape,
                          const std::string& data);
  // A header member as given; its data, if any, is appended.
  SafetensorsBuilder& add_raw(const std::string& name, const std::string& json, const std::string& data = {});
  std::string header() const;
  std::string build(char padding = ' ') const;  // header padded to a multiple of 8

 private:
  std::vector<std::string> members_;
  std::string data_;
};
// Length, header, data: nothing checked.
std::string safetensors_bytes(std::string_view header, std::string_view data);

struct GgufBuilderTensor {
  std::string name;
  std::vector<uint64_t> dimensions;  // GGUF's order: row length first
  uint32_t type = 0;
  std::string data;
  int64_t offset = -1;  // -1: where it comes to lie
};

class GgufBuilder {
 public:
  uint32_t magic = 0x46554747;
  uint32_t version = 3;
  int64_t tensor_count = -1;  // -1: as many as there are
  int64_t metadata_count = -1;
  uint64_t alignment = 32;  // of the layout; the key is only written by alignment_key()
  size_t cut = 0;           // bytes to leave off at the end
  std::vector<GgufBuilderTensor> tensors;

  GgufBuilder& raw_value(const std::string& key, uint32_t type, const std::string& bytes);
  GgufBuilder& u32(const std::string& key, uint32_t value) { return raw_value(key, 4, raw(value)); }
  GgufBuilder& f32(const std::string& key, float value) { return raw_value(key, 6, raw(value)); }
  GgufBuilder& boolean(const std::string& key, bool value) { return raw_value(key, 7, raw<uint8_t>(value)); }
  GgufBuilder& text(const std::string& key, const std::string& value);
  GgufBuilder& texts(const std::string& key, const std::vector<std::string>& values);
  GgufBuilder& floats(const std::string& key, const std::vector<float>& values);
  GgufBuilder& ints(const std::string& key, const std::vector<int32_t>& values);
  GgufBuilder& tensor(const std::string& name, const std::vector<uint64_t>& dimensions, uint32_t type,
                      const std::string& data);
  std::string build() const;

 private:
  std::string metadata_;
  uint64_t count_ = 0;
};
std::string gguf_string(std::string_view text);

// A whole one-layer llama: hidden 64, 4 heads, 2 key/value heads, feed-forward 96, vocabulary 8, F32 values that count
// up from `first`.
GgufBuilder tiny_llama(float first = 0);

// A folder that is removed with everything in it.
class TempFolder {
 public:
  TempFolder();
  ~TempFolder();
  TempFolder(const TempFolder&) = delete;
  TempFolder& operator=(const TempFolder&) = delete;
  std::string path(std::string_view name = {}) const;
  std::string write(std::string_view name, std::string_view bytes) const;  // returns the path

 private:
  std::filesystem::path path_;
};

}  // namespace vedette::weights::testing
