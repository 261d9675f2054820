#include "server/model_tables.h"

#include "sampling/dry_breakers.h"

namespace vedette::server {

Result<ModelTables::Breakers> ModelTables::dry_breakers(const text::Tokenizer& tokenizer, int64_t vocab_size,
                                                        const std::vector<std::string>& texts) {
  if (auto kept = breakers_.find(texts)) return std::move(*kept);
  const sampling::BreakerVocabulary vocabulary{
      std::min(tokenizer.size(), vocab_size), [&](int32_t id) { return std::string(tokenizer.token_bytes(id)); },
      [&](std::string_view text) {
        auto ids = tokenizer.encode(text, {.add_special = false, .parse_special = false});
        return ids.ok() ? std::move(*ids) : std::vector<int32_t>();
      }};
  VEDETTE_ASSIGN_OR_RETURN(auto made, sampling::dry_breakers(vocabulary, texts));
  auto shared = std::make_shared<const std::vector<std::vector<int32_t>>>(std::move(made));
  constexpr size_t kMostKept = 200'000;  // sequences; a list of many long texts may have millions
  if (shared->size() <= kMostKept) breakers_.keep(texts, shared);
  return Breakers(std::move(shared));
}

std::shared_ptr<const sampling::InfillVocabulary> ModelTables::infill(const text::Tokenizer& tokenizer,
                                                                      int64_t vocab_size,
                                                                      const std::vector<int32_t>& ends) {
  std::call_once(infill_made_, [&] {
    infill_ = std::make_shared<const sampling::InfillVocabulary>(
        std::min(tokenizer.size(), vocab_size), [&](int32_t id) { return tokenizer.token_bytes(id); }, ends);
  });
  return infill_;
}

ModelTables::BiasTable ModelTables::language_bias(const text::Tokenizer& tokenizer, const text::LanguageBias& bias) {
  if (bias.entries.empty()) return nullptr;
  if (auto kept = biases_.find(bias)) return std::move(*kept);
  std::call_once(scripts_made_, [&] { scripts_ = std::make_unique<const text::TokenScripts>(tokenizer); });
  auto shared = std::make_shared<const std::vector<float>>(scripts_->table(bias));
  biases_.keep(bias, shared);
  return shared;
}

}  // namespace vedette::server
