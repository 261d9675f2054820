// logit += bias of the token, from a table over the vocabulary that requests share; -infinity bans a token.
#include <algorithm>

#include "sampling/links.h"
#include "sampling/numbers.h"

namespace vedette::sampling {
namespace {

class LanguageBias final : public Sampler {
 public:
  explicit LanguageBias(std::shared_ptr<const std::vector<float>> table) : table_(std::move(table)) {}
  const char* name() const override { return "language_bias"; }
  void apply(std::vector<Candidate>& candidates, const History&) override {
    const size_t n = std::min(candidates.size(), table_->size());
    const float* bias = table_->data();
    for (size_t i = 0; i < n; ++i) candidates[i].logit = tame(candidates[i].logit + bias[i]);
  }
  std::unique_ptr<Sampler> clone() const override { return std::make_unique<LanguageBias>(*this); }

 private:
  std::shared_ptr<const std::vector<float>> table_;
};

}  // namespace

std::unique_ptr<Sampler> make_language_bias(const SamplingParams& params, int64_t) {
  if (!params.bias_table || params.bias_table->empty()) return nullptr;
  return std::make_unique<LanguageBias>(params.bias_table);
}

}  // namespace vedette::sampling
