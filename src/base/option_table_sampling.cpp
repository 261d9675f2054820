#include "base/option_table_sampling.h"

#include "base/option_group.h"

namespace vedette {
namespace {

using enum OptionType;
using namespace sampling_ranges;

constexpr double kLargestExactInteger = 9007199254740991;  // 2^53 - 1: exact in every JSON reader

void add_language_bias(std::vector<OptionSpec>& out) {
  OptionGroup group(out, OptionState::kActive, "Language bias", "", {"generate", "serve"});
  group.add({"--lang-bias"}, kText,
            "Added to the logits of tokens in the scripts of languages: ja=-inf,zh=-10,ko=+5; the first one counts "
            "where they share a script");
  group.add(
      {"--lang-bias-config"}, kPath,
      "The same from a file with a line LANGUAGE: BIAS for each, and policy and include_... as the options below");
  group
      .add({"--lang-bias-policy"}, kText,
           "Tokens of a language: all letters are of its scripts (conservative), or any is (strict)", "conservative")
      .choices({"conservative", "strict"});
  group.add({"--lang-bias-include-special"}, kFlag, "Control tokens belong to every language");
  group.add({"--lang-bias-include-numeric"}, kFlag, "Numbers belong to every language");
  group.add({"--lang-bias-include-punctuation"}, kFlag, "Punctuation and symbols belong to every language");
  group.add({"--lang-bias-include-byte-fragments"}, kFlag,
            "Tokens with parts of characters belong to the languages of what they can begin");
}

}  // namespace

std::vector<OptionSpec> sampling_options() {
  std::vector<OptionSpec> out;
  OptionGroup group(out, OptionState::kActive, "Sampling", "", {"run", "generate", "serve"});
  group
      .add({"--temperature", "-t", "--temp", "--default-temperature"}, kNumber,
           "0: the likeliest token; above: sampled. `run` and `serve` take it from generation_config.json where unset",
           "(0; serve: 0.8)")
      .range(kTemperature);
  group
      .add({"--top-k", "--default-top-k"}, kInteger, "Keep the K likeliest tokens; 0 or below: off", "(0; serve: 40)",
           "LLAMA_ARG_TOP_K")
      .range(kCountOrAll);
  group
      .add({"--top-p", "--default-top-p"}, kNumber, "Keep the likeliest tokens up to this probability; 1: off",
           "(1; serve: 0.9)")
      .range(kProbability);
  group
      .add({"--min-p"}, kNumber, "Drop tokens below P times the likeliest one's probability; 0: off", "(0; serve: 0.1)")
      .range(kProbability);
  group.add({"--typical-p", "--typical"}, kNumber, "Locally typical sampling; 1: off", "1").range(kProbability);
  group
      .add({"--top-n-sigma", "--top-nsigma"}, kNumber, "Keep logits within N deviations of the largest; below 0: off",
           "-1")
      .range(kTopNSigma);
  group.add({"--p-less"}, kFlag, "Keep tokens above the collision probability");
  group.add({"--xtc-probability"}, kNumber, "XTC: chance of removing the likeliest tokens", "0").range(kProbability);
  group.add({"--xtc-threshold"}, kNumber, "XTC: probability above which tokens are removed", "0.1").range(kProbability);
  group.add({"--dynatemp-range"}, kNumber, "Range of dynamic temperature; 0: off", "0").range(kDynamicTemperature);
  group.add({"--dynatemp-exp"}, kNumber, "Exponent of dynamic temperature", "1").range(kDynamicTemperature);
  group.add({"--mirostat"}, kInteger, "Mirostat in place of the truncating samplers; 0: off", "0").range(kMirostat);
  group.add({"--mirostat-lr"}, kNumber, "Mirostat learning rate (eta)", "0.1").range(kMirostatEta);
  group.add({"--mirostat-ent"}, kNumber, "Mirostat target entropy (tau)", "5").range(kMirostatTau);
  group.add({"--adaptive-target"}, kNumber, "Adaptive-p: target probability; below 0: off", "-1")
      .range(kAdaptiveTarget);
  group.add({"--adaptive-decay"}, kNumber, "Adaptive-p: decay of what was drawn", "0.9").range(kAdaptiveDecay);
  group
      .add({"--repetition-penalty", "--repeat-penalty"}, kNumber, "Divides the logits of tokens seen before; 1: off",
           "1")
      .range(kRepeatPenalty);
  group.add({"--repeat-last-n"}, kInteger, "Tokens the penalties look back on; -1: all, 0: none", "(-1; serve: 64)")
      .range(kCountOrAll);
  group.add({"--frequency-penalty"}, kNumber, "Subtracted from a token's logit for each time it was seen", "0")
      .range(kTokenPenalty);
  group.add({"--presence-penalty"}, kNumber, "Subtracted from the logit of a token seen before", "0")
      .range(kTokenPenalty);
  group.add({"--dry-multiplier"}, kNumber, "DRY: penalty of what goes on with a repetition; 0: off", "0")
      .range(kDryMultiplier);
  group.add({"--dry-base"}, kNumber, "DRY: growth of the penalty", "1.75").range(kDryBase);
  group.add({"--dry-allowed-length"}, kInteger, "DRY: length of a repetition that is left alone", "2").range(kCount);
  group.add({"--dry-penalty-last-n"}, kInteger, "DRY: tokens looked back on; -1: all, 0: none", "-1")
      .range(kCountOrAll);
  group
      .add({"--dry-sequence-breaker", "--dry-sequence-breakers"}, kText,
           "DRY: texts over which nothing is counted, separated by commas; none: no such texts",
           "(newline, colon, double quote, star)")
      .repeatable();
  group.add({"--samplers"}, kText, "Order of the samplers by name, separated by ; or ,", "(the default order)");
  group.add({"--sampler-seq", "--sampling-seq"}, kText,
            "The same by letters: d dry, k top_k, y typ_p, p top_p, s top_n_sigma, m min_p, t temperature, x xtc, "
            "e penalties, a adaptive_p, i infill",
            "(the default order)");
  group
      .add({"--logit-bias"}, kText,
           "Added to a token's logit (ID=BIAS, ID+BIAS, ID-BIAS, ID=-inf); may be given several times")
      .repeatable();
  group.add({"--seed", "-s"}, kInteger, "Seed of sampling; -1: drawn", "(drawn and reported)")
      .range(-1, kLargestExactInteger);
  out.back().subcommands.push_back("benchmark");  // of its token ids
  group.add({"--mode"}, kText, "How tokens are decoded; both choices mean plain decoding here", "auto")
      .choices({"auto", "baseline"});
  out.back().refused_choices = {"dspark", "dflash", "lookup"};
  out.back().note = "speculative drafters are not available yet";
  add_language_bias(out);
  return out;
}

}  // namespace vedette
