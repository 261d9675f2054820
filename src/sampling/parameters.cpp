#include "sampling/parameters.h"

namespace vedette::sampling {

std::span<const Parameter> parameters() {
  using namespace sampling_ranges;
  using P = SamplingParams;
  static const std::vector<Parameter> table = {
      {{"temperature"}, kTemperature, &P::temperature},
      {{"dynatemp_range"}, kDynamicTemperature, &P::dynatemp_range},
      {{"dynatemp_exponent"}, kDynamicTemperature, &P::dynatemp_exponent},
      {{"top_k"}, kCountOrAll, &P::top_k},
      {{"top_p"}, kProbability, &P::top_p},
      {{"min_p"}, kProbability, &P::min_p},
      {{"typical_p", "typ_p"}, kProbability, &P::typical_p},
      {{"top_n_sigma"}, kTopNSigma, &P::top_n_sigma},
      {{"xtc_probability"}, kProbability, &P::xtc_probability},
      {{"xtc_threshold"}, kProbability, &P::xtc_threshold},
      {{"repeat_penalty", "repetition_penalty"}, kRepeatPenalty, &P::repetition_penalty},
      {{"repeat_last_n", "repetition_context_size"}, kCountOrAll, &P::repeat_last_n},
      {{"frequency_penalty"}, kTokenPenalty, &P::frequency_penalty},
      {{"presence_penalty"}, kTokenPenalty, &P::presence_penalty},
      {{"dry_multiplier"}, kDryMultiplier, &P::dry_multiplier},
      {{"dry_base"}, kDryBase, &P::dry_base},
      {{"dry_allowed_length"}, kCount, &P::dry_allowed_length},
      {{"dry_penalty_last_n"}, kCountOrAll, &P::dry_penalty_last_n},
      {{"mirostat"}, kMirostat, &P::mirostat},
      {{"mirostat_tau"}, kMirostatTau, &P::mirostat_tau},
      {{"mirostat_eta"}, kMirostatEta, &P::mirostat_eta},
      {{"adaptive_target"}, kAdaptiveTarget, &P::adaptive_target},
      {{"adaptive_decay"}, kAdaptiveDecay, &P::adaptive_decay},
  };
  return table;
}

}  // namespace vedette::sampling
