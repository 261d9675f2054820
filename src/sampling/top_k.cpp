// Keeps the k candidates with the highest logits; ties go to lower ids.
#include "sampling/best_of.h"
#include "sampling/links.h"

namespace vedette::sampling {
namespace {

class TopK final : public Sampler {
 public:
  TopK(int64_t k, int64_t vocab_size)
      : k_(static_cast<size_t>(k)), scratch_(select_room(k_, static_cast<size_t>(vocab_size))) {}
  const char* name() const override { return "top_k"; }
  void apply(std::vector<Candidate>& candidates, const History&) override { keep_best(candidates, k_, scratch_); }
  std::unique_ptr<Sampler> clone() const override { return std::make_unique<TopK>(*this); }

 private:
  size_t k_;
  Scratch<Candidate> scratch_;
};

}  // namespace

std::unique_ptr<Sampler> make_top_k(const SamplingParams& params, int64_t vocab_size) {
  if (params.top_k <= 0 || params.top_k >= vocab_size) return nullptr;
  return std::make_unique<TopK>(params.top_k, vocab_size);
}

}  // namespace vedette::sampling
