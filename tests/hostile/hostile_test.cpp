// Every broken checkpoint gives one line that says which file, which tensor or key, and which numbers disagree.
#include <gtest/gtest.h>

#include <ostream>
#include <set>

#include "hostile_case.h"
#include "weights/checkpoint.h"

namespace vedette::hostile {

// Shown instead of the bytes of a failing case.
static void PrintTo(const Case& one, std::ostream* out) {
  *out << one.name;
}

namespace {

std::vector<Case> all_cases() {
  std::vector<Case> all;
  for (const auto& part : {safetensors_cases(), mlx_cases(), gguf_cases(), folder_cases()})
    all.insert(all.end(), part.begin(), part.end());
  return all;
}

class Hostile : public ::testing::TestWithParam<Case> {};

TEST_P(Hostile, IsRefusedInOneLine) {
  const wt::TempFolder folder;
  const std::string path = GetParam().write(folder);
  const auto opened = weights::open_checkpoint(path);
  ASSERT_FALSE(opened.ok()) << "was accepted";
  const std::string& message = opened.error().message;
  EXPECT_NE(opened.error().kind, ErrorKind::kInternal) << message;
  EXPECT_LT(message.size(), 1000u) << message;
  for (const char c : message) ASSERT_GE(static_cast<unsigned char>(c), 0x20) << "control character in: " << message;
  for (const std::string& text : GetParam().expected)
    EXPECT_NE(message.find(text), std::string::npos) << "'" << text << "' is not in: " << message;
}

INSTANTIATE_TEST_SUITE_P(Checkpoints, Hostile, ::testing::ValuesIn(all_cases()),
                         [](const auto& info) { return info.param.name; });

TEST(HostileCases, AreManyAndDistinct) {
  std::set<std::string> names;
  for (const Case& one : all_cases()) {
    EXPECT_TRUE(names.insert(one.name).second) << one.name;
    EXPECT_GE(one.expected.size(), 2u) << one.name;
  }
  EXPECT_GE(names.size(), 45u);
}

}  // namespace
}  // namespace vedette::hostile
