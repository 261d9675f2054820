#include <gtest/gtest.h>

#include "sampling/links.h"
#include "sampling/sampling.h"

namespace vedette::sampling {
namespace {

std::string names(const SamplingParams& params, bool greedy = false) {
  std::string result;
  for (const Link* link : chain_links(params, greedy)) result += std::string(result.empty() ? "" : " ") + link->name;
  return result;
}

TEST(Order, Default) {
  EXPECT_EQ(names({}),
            "logit_bias language_bias penalties dry top_n_sigma p_less top_k typ_p top_p min_p xtc temperature");
  EXPECT_EQ(names({}, true), "logit_bias language_bias penalties dry");
}

TEST(Order, ByName) {
  EXPECT_EQ(names({.order = {"temperature", "top-k", "DRY", "nucleus"}}),
            "logit_bias language_bias temperature top_k dry top_p");
  EXPECT_EQ(names({.order = {"temperature", "top_k", "dry"}}, true), "logit_bias language_bias dry");
  EXPECT_EQ(names({.order = {"adaptive_p", "min_p"}}), "logit_bias language_bias min_p adaptive_p");
  EXPECT_EQ(names({.p_less = true, .order = {"penalties", "top_k", "temp"}}),
            "logit_bias language_bias penalties p_less top_k temperature");
  EXPECT_EQ(names({.p_less = true, .order = {"top_k", "p_less"}}), "logit_bias language_bias top_k p_less");
}

TEST(Order, MirostatReplacesWhatTruncates) {
  EXPECT_EQ(names({.mirostat = 2, .order = {"top_k", "adaptive_p"}}),
            "logit_bias language_bias penalties dry temperature mirostat_1 mirostat_2");
}

TEST(Order, Letters) {
  EXPECT_EQ(*order_of_letters("edskypmxt"),
            (std::vector<std::string>{"penalties", "dry", "top_n_sigma", "top_k", "typ_p", "top_p", "min_p", "xtc",
                                      "temperature"}));
  EXPECT_TRUE(order_of_letters("")->empty());
  const auto refused = order_of_letters("kz");
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().field, "samplers");
  EXPECT_EQ(refused.error().message, "samplers: a letter of the sequence is none of 'edskypmxtai'");
  EXPECT_FALSE(order_of_letters(std::string_view("\0", 1)).ok());
}

TEST(Order, UnknownNamesAreRefusedWithThoseKnown) {
  const auto text = [](const SamplingParams& params) {
    const Status status = validate(params);
    EXPECT_FALSE(status.ok());
    EXPECT_EQ(status.error().kind, ErrorKind::kInvalidRequest);
    EXPECT_EQ(status.error().field, "samplers");
    return status.error().message;
  };
  EXPECT_EQ(
      text({.order = {"top_k", "outfill"}}),
      "samplers names 'outfill' as number 2, must be of: penalties, dry, top_n_sigma, p_less, top_k, typ_p, top_p, "
      "min_p, xtc, temperature, adaptive_p, infill");
  EXPECT_EQ(text({.order = {"top_k", "temp", "Top-K"}}), "samplers names 'top_k' twice, as number 3");
  for (const char* name : {"", "logit_bias", "mirostat_1", "_"}) text({.order = {name}});
  const std::string message = text({.order = {"a\n\x01\xff" + std::string(5000, 'b')}});
  EXPECT_EQ(message.find('\n'), std::string::npos);
  EXPECT_LT(message.size(), 250u);
  EXPECT_TRUE(validate({.order = {"top_k", "min-p", "typical_p", "temperature"}}).ok());
}

TEST(Order, DecidesWhatIsLeft) {
  // In another order top_k sees what the temperature and the penalties left.
  const std::vector<float> logits = {5, 4, 3};
  const std::vector<int32_t> history = {0};
  SamplingParams params{.temperature = 1, .top_k = 1, .presence_penalty = 10};
  const auto drawn = [&] {
    SamplerChain chain(params, 1, 3);
    return *chain.sample(logits, {history, 1}, 1);
  };
  params.order = {"penalties", "top_k"};
  EXPECT_EQ(drawn(), 1);
  params.order = {"top_k", "penalties"};
  EXPECT_EQ(drawn(), 0);
  params.order = {"top_k"};
  EXPECT_EQ(drawn(), 0);
}

}  // namespace
}  // namespace vedette::sampling
