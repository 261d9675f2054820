// GGUF metadata -> config.json's keys.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "base/json.h"
#include "base/result.h"
#include "weights/gguf.h"
#include "weights/gguf_architectures.h"

namespace vedette::weights {

// Collects the configuration of one file; the first error sticks and is returned by finish().
class GgufConfig {
 public:
  GgufConfig(const GgufFile& gguf, const GgufArchitecture& architecture, const std::string& file);

  // Metadata "<architecture>.<key>".
  std::optional<int64_t> integer(std::string_view key) const;
  std::optional<double> number(std::string_view key) const;
  int64_t required(std::string_view key, int64_t min, int64_t max);  // 0 after an error
  const GgufFile& gguf() const { return gguf_; }

  bool has_tensor(std::string_view name) const { return names_.contains(name); }
  int64_t rows(std::string_view name) const;  // of a stored matrix; 0 if it is not there
  void set(std::string_view key, Json value) { config_.set(key, std::move(value)); }
  void set_if(std::string_view key, std::optional<double> value) {
    if (value) config_.set(key, *value);
  }
  void fail(Error error) {
    if (!error_) error_ = std::move(error);
  }
  // "sliding_attention" / "full_attention" per layer, and sliding_window.
  template <typename IsSliding>
  void layer_types(int64_t window, IsSliding is_sliding) {
    Json types = Json::array();
    for (int64_t i = 0; i < layers; ++i) types.push_back(is_sliding(i) ? "sliding_attention" : "full_attention");
    set("sliding_window", window > 0 ? Json(window) : Json());
    set("layer_types", std::move(types));
  }
  void partial_rotary(std::string_view key);

  Result<Json> finish();

  int64_t layers = 0, hidden = 0, heads = 0, kv_heads = 0, head_dim = 0, intermediate = 0, rotary_dim = 0;

 private:
  void read_sizes();
  void read_rope();
  void read_token_ids();
  Json rope_scaling();
  std::string key_of(std::string_view key) const;

  const GgufFile& gguf_;
  const GgufArchitecture& architecture_;
  const std::string& file_;
  std::set<std::string, std::less<>> names_;
  Json config_ = Json::object();
  std::optional<Error> error_;
};

Result<Json> gguf_config(const GgufFile& gguf, const GgufArchitecture& architecture, const std::string& file);
// Recommended sampling (general.sampling.*) as generation_config.json's keys; null if there is none.
Json gguf_generation_config(const GgufFile& gguf);
// tokenizer.ggml.* ; takes the arrays out of `gguf`. A file without a tokenizer gives monostate.
Result<TokenizerSource> gguf_tokenizer(GgufFile& gguf, const std::string& file);

}  // namespace vedette::weights
