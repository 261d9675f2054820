// Reading of config.json for family files: typed, range-checked, with class defaults for missing keys.
//
// The first error sticks. After it every reader returns a harmless value, so a family file reads straight through
// and finish() reports what went wrong. Multimodal checkpoints nest the text model's keys under `text_config`.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/json.h"
#include "models/spec.h"
#include "weights/checkpoint.h"

namespace vedette::models {

// Borrows the checkpoint. One thread.
class ConfigReader {
 public:
  explicit ConfigReader(const weights::Checkpoint& checkpoint);

  // The member, or nullptr when missing or null.
  const Json* find(std::string_view key) const;
  bool has(std::string_view key) const { return find(key) != nullptr; }
  bool is_null(std::string_view key) const;  // there, and null
  // The first of several spellings that is there; the first one otherwise.
  std::string_view spelled(std::initializer_list<std::string_view> keys) const;

  int64_t integer(std::string_view key, int64_t min, int64_t max, std::optional<int64_t> fallback = {});
  double number(std::string_view key, double min, double max, std::optional<double> fallback = {});
  // A null switches the thing off (0); a missing key means the fallback.
  double number_or_off(std::string_view key, double max, double fallback);
  bool boolean(std::string_view key, std::optional<bool> fallback = {});
  std::string string(std::string_view key, std::optional<std::string> fallback = {});
  // An activation's name; unknown ones are refused.
  ops::Activation activation(std::string_view key, std::string_view fallback);
  // `key` where the config has it; else whether the checkpoint stores `tensor`.
  bool flag_or_stored(std::string_view key, std::string_view tensor);

  // Attention window of every layer, 0 = full. `layer_types` decides where it is there; `sliding` otherwise.
  // window 0: every layer is full.
  template <typename Sliding>
  std::vector<int> layer_windows(int64_t layers, int64_t window, Sliding sliding) {
    std::vector<int> windows(static_cast<size_t>(layers), 0);
    for (int64_t i = 0; i < layers; ++i)
      if (sliding(i)) windows[static_cast<size_t>(i)] = static_cast<int>(window);
    apply_layer_types(window, windows);
    return windows;
  }
  // One integer per layer from an array, or from `fallback` where the key is missing.
  template <typename Fallback>
  std::vector<int64_t> integers(std::string_view key, int64_t layers, int64_t min, int64_t max, Fallback fallback) {
    std::vector<int64_t> values(static_cast<size_t>(layers));
    for (int64_t i = 0; i < layers; ++i) values[static_cast<size_t>(i)] = fallback(i);
    apply_array(key, min, max, values);
    return values;
  }
  // `sliding_window`: 0 where null, `fallback` where missing.
  int64_t sliding_window(int64_t fallback);

  const weights::Checkpoint& checkpoint() const { return checkpoint_; }
  bool stored(std::string_view tensor) const { return checkpoint_.find(tensor) != nullptr; }
  bool nested() const { return nested_; }              // the text model of a multimodal checkpoint
  const std::string& where() const { return where_; }  // names the source in messages

  // Records an error unless one is there already.
  void fail(Error error);
  // Refuses a flag that is set.
  void refuse_if_true(std::string_view key);
  // "config.json: 'key' is VALUE, which is not supported here; SUPPORTED"
  void refuse(std::string_view key, const Json& value, std::string_view supported);
  bool ok() const { return !error_.has_value(); }
  // The spec, or the first error.
  Result<DecoderSpec> finish(DecoderSpec spec);

 private:
  void apply_array(std::string_view key, int64_t min, int64_t max, std::vector<int64_t>& values);
  void apply_layer_types(int64_t window, std::vector<int>& windows);
  template <typename T>
  T take(Result<T> result, T harmless) {
    if (result.ok()) return std::move(result).value();
    fail(std::move(result).error());
    return harmless;
  }

  const weights::Checkpoint& checkpoint_;
  const Json* json_;
  bool nested_;
  std::string where_;
  std::optional<Error> error_;
};

}  // namespace vedette::models
