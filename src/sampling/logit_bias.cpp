// logit += bias; -infinity bans a token.
#include "sampling/links.h"
#include "sampling/numbers.h"

namespace vedette::sampling {
namespace {

class LogitBias final : public Sampler {
 public:
  explicit LogitBias(std::vector<std::pair<int32_t, float>> bias) : bias_(std::move(bias)) {}
  const char* name() const override { return "logit_bias"; }
  void apply(std::vector<Candidate>& candidates, const History&) override {
    for (const auto& [id, bias] : bias_) {
      if (static_cast<size_t>(id) >= candidates.size()) continue;
      float& logit = candidates[static_cast<size_t>(id)].logit;
      logit = tame(logit + bias);
    }
  }
  std::unique_ptr<Sampler> clone() const override { return std::make_unique<LogitBias>(*this); }

 private:
  std::vector<std::pair<int32_t, float>> bias_;
};

}  // namespace

std::unique_ptr<Sampler> make_logit_bias(const SamplingParams& params, int64_t) {
  if (params.logit_bias.empty()) return nullptr;
  return std::make_unique<LogitBias>(params.logit_bias);
}

}  // namespace vedette::sampling
