// What sampling needs of a vocabulary for the lists that requests name: made once for each, and kept for the latest.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "sampling/infill_vocabulary.h"
#include "text/language_bias.h"
#include "text/tokenizer.h"

namespace vedette::server {

// The values of the keys that were asked for last. Thread-safe.
template <typename Key, typename Value>
class Latest {
 public:
  std::optional<Value> find(const Key& key) {
    const std::scoped_lock lock(mutex_);
    for (size_t i = 0; i < kept_.size(); ++i) {
      if (kept_[i].first != key) continue;
      std::rotate(kept_.begin(), kept_.begin() + static_cast<std::ptrdiff_t>(i),
                  kept_.begin() + static_cast<std::ptrdiff_t>(i) + 1);
      return kept_.front().second;
    }
    return std::nullopt;
  }
  void keep(Key key, Value value) {
    const std::scoped_lock lock(mutex_);
    if (kept_.size() == kMost) kept_.pop_back();
    kept_.emplace(kept_.begin(), std::move(key), std::move(value));
  }

 private:
  static constexpr size_t kMost = 8;
  std::mutex mutex_;
  std::vector<std::pair<Key, Value>> kept_;  // the latest first
};

// Owned by a served model; any thread.
class ModelTables {
 public:
  using Breakers = std::shared_ptr<const std::vector<std::vector<int32_t>>>;
  using BiasTable = std::shared_ptr<const std::vector<float>>;

  // For SamplingParams::dry_breakers and ::bias_table. The tokenizer is the model's, the same at each call.
  Result<Breakers> dry_breakers(const text::Tokenizer& tokenizer, int64_t vocab_size,
                                const std::vector<std::string>& texts);
  // For SamplingParams::infill_vocabulary; ends: the model's end tokens, the same at each call.
  std::shared_ptr<const sampling::InfillVocabulary> infill(const text::Tokenizer& tokenizer, int64_t vocab_size,
                                                           const std::vector<int32_t>& ends);
  BiasTable language_bias(const text::Tokenizer& tokenizer, const text::LanguageBias& bias);

 private:
  Latest<std::vector<std::string>, Breakers> breakers_;
  Latest<text::LanguageBias, BiasTable> biases_;
  std::once_flag infill_made_, scripts_made_;
  std::shared_ptr<const sampling::InfillVocabulary> infill_;
  std::unique_ptr<const text::TokenScripts> scripts_;
};

}  // namespace vedette::server
