#include "server/token_places.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "text/test_vocabulary.h"

namespace vedette::server {
namespace {

class Places : public testing::Test {
 protected:
  static std::vector<std::string> pieces() {
    return {"Hello", "\xE2\x96\x81there", "<think>", "</think>", "\n\n", "<", "tool_call>", "b", "ab"};
  }
  int32_t id_of(std::string_view piece) const {
    const auto all = pieces();
    return 259 + static_cast<int32_t>(std::find(all.begin(), all.end(), piece) - all.begin());
  }
  void draw(std::initializer_list<int32_t> ids) {
    for (const int32_t id : ids) places_.add({engine::TokenLogprobs{.chosen = {id, -1.0F}, .top = {}}});
  }
  std::vector<int32_t> take(std::string_view content) {
    std::vector<int32_t> out;
    for (const engine::TokenLogprobs& token : places_.take(content)) out.push_back(token.chosen.id);
    return out;
  }
  using Ids = std::vector<int32_t>;

  text::Tokenizer tokenizer_ = text::Tokenizer::create(text::sentencepiece_vocabulary(pieces())).value();
  TokenPlaces places_{tokenizer_};
  const int32_t hello_ = id_of("Hello"), there_ = id_of("\xE2\x96\x81there"), close_ = id_of("</think>"),
                blank_ = id_of("\n\n"), less_ = id_of("<"), tool_ = id_of("tool_call>"), b_ = id_of("b"),
                ab_ = id_of("ab");
};

TEST_F(Places, EachPieceHasItsTokens) {
  draw({hello_});
  EXPECT_EQ(take("Hello"), Ids{hello_});
  draw({there_, 2});
  EXPECT_EQ(take(" there"), Ids{there_});  // the end token writes nothing
}

TEST_F(Places, MarksBeforeContentHaveNoPlace) {
  draw({close_, blank_, hello_});
  EXPECT_EQ(take("Hello"), Ids{hello_});
}

TEST_F(Places, HeldTextIsClaimedLater) {
  draw({hello_, less_});
  EXPECT_EQ(take("Hello"), Ids{hello_});
  draw({b_});
  EXPECT_EQ(take("<b"), (Ids{less_, b_}));
  draw({less_, tool_});
  places_.drop();
  draw({hello_});
  EXPECT_EQ(take("Hello"), Ids{hello_});
}

TEST_F(Places, ATokenOfTwoPiecesGoesToTheFirst) {
  draw({ab_, hello_});
  EXPECT_EQ(take("a"), Ids{ab_});
  EXPECT_EQ(take("b"), Ids{});
  EXPECT_EQ(take("Hello"), Ids{hello_});
}

// A space that the text leaves out at its beginning; bytes that are no character.
TEST_F(Places, TextThatDiffersFromItsTokens) {
  draw({there_});
  EXPECT_EQ(take("there"), Ids{there_});
  draw({3 + 0xe2, 3 + 0x82});
  EXPECT_EQ(take("\xEF\xBF\xBD"), (Ids{3 + 0xe2, 3 + 0x82}));
}

}  // namespace
}  // namespace vedette::server
