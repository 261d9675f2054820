#include "server/model_tables.h"

#include <gtest/gtest.h>

#include "text/test_vocabulary.h"

namespace vedette::server {
namespace {

TEST(ModelTables, AreMadeOnceForEachOfTheLatestLists) {
  const auto tokenizer = text::Tokenizer::create(text::sentencepiece_vocabulary({"a", "b:", "c"}));
  ASSERT_TRUE(tokenizer.ok());
  ModelTables tables;
  const auto breakers = [&](std::string text) {
    return *tables.dry_breakers(*tokenizer, tokenizer->size(), {std::move(text)});
  };
  const auto first = breakers(":");
  EXPECT_EQ(*first, (std::vector<std::vector<int32_t>>{{3 + ':'}, {260}}));
  EXPECT_EQ(breakers(":"), first);
  EXPECT_NE(*breakers("a"), *first);
  for (int i = 0; i < 100; ++i) breakers("list " + std::to_string(i));
  EXPECT_NE(breakers(":"), first);  // forgotten and made again
  EXPECT_EQ(*breakers(":"), *first);
  EXPECT_FALSE(tables.dry_breakers(*tokenizer, tokenizer->size(), std::vector<std::string>(100, "a")).ok());
}

TEST(ModelTables, ALanguageBiasIsOneTable) {
  const auto tokenizer = text::Tokenizer::create(text::sentencepiece_vocabulary({"a", "."}));
  ASSERT_TRUE(tokenizer.ok());
  ModelTables tables;
  text::LanguageBias bias{.entries = {{"en", 2.f}}};
  const auto table = tables.language_bias(*tokenizer, bias);
  ASSERT_NE(table, nullptr);
  EXPECT_EQ((*table)[259], 2);
  EXPECT_EQ((*table)[260], 0);
  EXPECT_EQ(tables.language_bias(*tokenizer, bias), table);
  bias.punctuation = true;
  EXPECT_EQ((*tables.language_bias(*tokenizer, bias))[260], 2);
  EXPECT_EQ(tables.language_bias(*tokenizer, {}), nullptr);
}

}  // namespace
}  // namespace vedette::server
