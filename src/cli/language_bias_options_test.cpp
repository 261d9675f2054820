#include "cli/language_bias_options.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <limits>

namespace vedette::cli {
namespace {

constexpr float kNever = -std::numeric_limits<float>::infinity();

TEST(LanguageBiasFile, LinesOfLanguagesAndChoices) {
  const auto bias = parse_language_bias_file(
      "---\n# all of it\nja: -inf\nzh : \"-10\"  # Han\n\nko: +5.0\r\nru: -.inf\npolicy: strict\n"
      "include_numeric: true\ninclude_byte_fragments: true\ninclude_special: false");
  ASSERT_TRUE(bias.ok()) << bias.error().message;
  EXPECT_EQ(bias->entries, (text::LanguageBias::Entries{{"ja", kNever}, {"zh", -10}, {"ko", 5}, {"ru", kNever}}));
  EXPECT_TRUE(bias->strict && bias->numeric && bias->byte_fragments);
  EXPECT_FALSE(bias->special || bias->punctuation);
}

TEST(LanguageBiasFile, WrongLinesAreNamed) {
  const std::pair<const char*, const char*> cases[] = {
      {"ja: 1\nzh", "--lang-bias-config: line 2: expected LANGUAGE: BIAS as ja: -10, found 'zh'"},
      {"ja: much", "--lang-bias-config: line 1: expected a number or -inf, found 'much'"},
      {"ja:", "--lang-bias-config: line 1: expected a number or -inf, found ''"},
      {"policy: bold", "--lang-bias-config: line 1: expected conservative or strict, found 'bold'"},
      {"include_all: true",
       "--lang-bias-config: line 1: expected include_special, _numeric, _punctuation or _byte_fragments, found "
       "'include_all'"},
      {"include_special: yes", "--lang-bias-config: line 1: expected true or false, found 'yes'"},
      {"\nxx: 1",
       "--lang-bias-config: line 2: expected the code of a language or script, as ja or cyrl, found "
       "'xx'"},
  };
  for (const auto& [content, message] : cases) {
    const auto bias = parse_language_bias_file(content);
    ASSERT_FALSE(bias.ok()) << content;
    EXPECT_EQ(bias.error().message, message);
  }
}

TEST(LanguageBiasOptions, TheCommandLineComesBeforeTheFile) {
  const auto path = std::filesystem::path(testing::TempDir()) / ("vedette_language_bias_" + std::to_string(getpid()));
  std::ofstream(path) << "ja: -1\nko: -2\ninclude_numeric: true\n";
  OptionValues options;
  ASSERT_TRUE(options.set("--lang-bias-config", path.string(), "test").ok());
  ASSERT_TRUE(options.set("--lang-bias", "zh=-3,ja=-4", "test").ok());
  ASSERT_TRUE(options.set("--lang-bias-policy", "strict", "test").ok());
  ASSERT_TRUE(options.set("--lang-bias-include-special", "true", "test").ok());
  const auto bias = read_language_bias_options(options);
  std::filesystem::remove(path);
  ASSERT_TRUE(bias.ok()) << bias.error().message;
  EXPECT_EQ(bias->entries, (text::LanguageBias::Entries{{"zh", -3}, {"ja", -4}, {"ko", -2}}));
  EXPECT_TRUE(bias->strict && bias->special && bias->numeric);
  EXPECT_TRUE(read_language_bias_options({})->entries.empty());
}

}  // namespace
}  // namespace vedette::cli
