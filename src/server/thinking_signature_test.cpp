#include "server/thinking_signature.h"

#include <gtest/gtest.h>

namespace vedette::server {
namespace {

TEST(ThinkingSignature, GivesBackWhatItCarries) {
  for (const std::string text : {"", "a", "ab", "abc",
                                 "First, Gr\xc3\xbc\xc3\x9f"
                                 "e.\n\nThen \xf0\x9f\x99\x82"})
    EXPECT_EQ(hidden_thinking(thinking_signature(text)), text);
}

TEST(ThinkingSignature, IsPlainAscii) {
  for (const char c : thinking_signature("\xf0\x9f\x99\x82 \"quoted\"\n")) EXPECT_TRUE(c > ' ' && c < 127 && c != '"');
}

TEST(ThinkingSignature, OfAnotherServerCarriesNothing) {
  for (const char* signature : {"", "vedette", "EqQBCgIYAhIM", "vedette:a b", "vedette:\xff", "vedette:/w"})
    EXPECT_EQ(hidden_thinking(signature), "") << signature;
}

}  // namespace
}  // namespace vedette::server
