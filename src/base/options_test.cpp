#include "base/options.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <set>

namespace vedette {
namespace {

TEST(OptionTable, EverySpellingIsUniqueAndWellFormed) {
  std::set<std::string_view> seen;
  for (const OptionSpec& option : option_table()) {
    std::vector<std::string_view> spellings = {option.name};
    spellings.insert(spellings.end(), option.aliases.begin(), option.aliases.end());
    for (std::string_view spelling : spellings) {
      EXPECT_TRUE(seen.insert(spelling).second) << spelling << " stands twice in the table";
      EXPECT_TRUE(spelling.starts_with('-')) << spelling;
      if (!spelling.starts_with("--")) {
        EXPECT_LE(spelling.size(), 3u) << spelling;  // -p, and llama-server's -np
      }
    }
  }
}

TEST(OptionTable, EveryEntryIsComplete) {
  for (const OptionSpec& option : option_table()) {
    EXPECT_FALSE(option.subcommands.empty()) << option.name;
    EXPECT_FALSE(option.help.empty()) << option.name;
    EXPECT_FALSE(option.group.empty()) << option.name;
    EXPECT_EQ(option.type == OptionType::kFlag, option.value_name.empty()) << option.name;
    EXPECT_EQ(option.type == OptionType::kChoice, !option.choices.empty()) << option.name;
    if (option.state != OptionState::kActive || !option.refused_choices.empty()) {
      EXPECT_FALSE(option.note.empty()) << option.name << " gives no reason";
    }
    for (std::string_view subcommand : option.subcommands) {
      EXPECT_NE(find_subcommand(subcommand), nullptr) << option.name << ": " << subcommand;
    }
    if (!option.environment.empty()) {
      // Ours, and the variables that llama-server and the hub's own tools read.
      EXPECT_TRUE(option.environment.starts_with("VEDETTE_") || option.environment.starts_with("LLAMA_") ||
                  option.environment.starts_with("HF_"))
          << option.environment;
    }
  }
}

TEST(OptionTable, DefaultsPassTheirOwnChecks) {
  for (const OptionSpec& option : option_table()) {
    if (option.state != OptionState::kActive || option.default_text.empty() || option.default_text.front() == '(')
      continue;
    OptionValues values;
    auto status = values.set(option.name, option.default_text, "default");
    EXPECT_TRUE(status.ok()) << (status.ok() ? "" : status.error().message);
  }
}

TEST(OptionValues, WrongValuesNameOptionSourceAndRange) {
  struct Case {
    const char *option, *value, *expected;
  };
  const Case cases[] = {
      {"--top-p", "1.5", "--top-p (command line): expected a value from 0 to 1, found 1.5"},
      {"--top-k", "-2", "--top-k (command line): expected a value from -1 to 1000000000, found -2"},
      {"-t", "nan", "--temperature (command line): expected a number, found 'nan'"},
      {"--temp", "inf", "--temperature (command line): expected a value from 0 to 100, found inf"},
      {"--seed", "99999999999999999999", "--seed (command line): expected an integer, found '99999999999999999999'"},
      {"-n", "12x", "--max-tokens (command line): expected an integer, found '12x'"},
      {"-n", "", "--max-tokens (command line): expected an integer, found ''"},
      {"--compute", "i4", "--compute (command line): expected one of auto, i8, i16, f32, found 'i4'"},
      {"--nothing", "1", "command line: unknown option '--nothing'"},
      {"--prompt-file", "", "--prompt-file (command line): expected a path, found an empty text"},
  };
  for (const Case& test : cases) {
    OptionValues values;
    auto status = values.set(test.option, test.value, "command line");
    ASSERT_FALSE(status.ok()) << test.option << " " << test.value;
    EXPECT_EQ(status.error().kind, ErrorKind::kInvalidRequest);
    EXPECT_EQ(status.error().message, test.expected);
  }
}

TEST(OptionValues, RefusedOptionsAndChoicesGiveTheirReason) {
  OptionValues values;
  auto image = values.set("--image", "cat.png", "command line");
  ASSERT_FALSE(image.ok());
  EXPECT_EQ(image.error().kind, ErrorKind::kUnsupported);
  EXPECT_EQ(image.error().field, "--image");
  EXPECT_NE(image.error().message.find("no vision models"), std::string::npos);
  auto turbo = values.set("--cache-type-k", "turbo4", "command line");
  ASSERT_FALSE(turbo.ok());
  EXPECT_EQ(turbo.error().kind, ErrorKind::kUnsupported);
  EXPECT_NE(turbo.error().message.find("use one of: f16, fp16, bf16, f32"), std::string::npos);
}

TEST(OptionValues, ARefusedOptionMayAskForWhatHappensAnyway) {
  OptionValues values;
  EXPECT_TRUE(values.set("--draft-max", "16", "command line").ok());
  EXPECT_TRUE(values.set("--tp-size", "1", "command line").ok());
  EXPECT_TRUE(values.set("--tp-lm-head-mode", "replicated", "command line").ok());
  EXPECT_FALSE(values.set("--draft-max", "15.5", "command line").ok());
  EXPECT_FALSE(values.set("--tp-size", "2", "command line").ok());
  EXPECT_FALSE(values.set("--lookup-drafts", "1", "command line").ok());
}

TEST(OptionValues, InertOptionsLeaveOneNotice) {
  OptionValues values;
  EXPECT_TRUE(values.set("--cpu-split", "0.3", "command line").ok());
  EXPECT_TRUE(values.set("--cpu-split", "0.3", "command line").ok());
  ASSERT_EQ(values.notices().size(), 1u);
  EXPECT_EQ(values.notices()[0], "--cpu-split (command line): tunes Apple hardware; it means nothing here");
  EXPECT_TRUE(values.check_all_read().ok());
}

TEST(OptionValues, AnOptionThatNothingReadsFails) {
  OptionValues values;
  ASSERT_TRUE(values.set("--top-k", "5", "command line").ok());
  ASSERT_FALSE(values.check_all_read().ok());
  EXPECT_EQ(values.check_all_read().error().field, "--top-k");
  EXPECT_EQ(values.integer("--top-k"), 5);
  EXPECT_TRUE(values.check_all_read().ok());
}

TEST(OptionValues, DefaultsComeFromTheTable) {
  OptionValues values;
  EXPECT_EQ(values.integer("--mirostat"), 0);
  EXPECT_EQ(values.number("--typical-p"), 1.0);
  EXPECT_EQ(values.integer("--top-k"), std::nullopt);
  EXPECT_EQ(values.text("--revision"), "main");
  EXPECT_EQ(values.integer("--seed"), std::nullopt);
  EXPECT_EQ(values.text("--models-dir"), std::nullopt);
  EXPECT_FALSE(values.given("--top-k"));
}

TEST(OptionValues, RepeatableOptionsCollectAndOthersKeepTheLast) {
  OptionValues values;
  for (const char* text : {"a", "b"}) ASSERT_TRUE(values.set("--stop", text, "command line").ok());
  EXPECT_EQ(values.texts("--stop"), (std::vector<std::string>{"a", "b"}));
  for (const char* text : {"3", "4"}) ASSERT_TRUE(values.set("--top-k", text, "command line").ok());
  EXPECT_EQ(values.integer("--top-k"), 4);
}

TEST(OptionValues, EnvironmentFillsWhatTheCommandLineLeft) {
  setenv("VEDETTE_CPU_ISA", "portable", 1);
  setenv("VEDETTE_THREADS", "3", 1);
  OptionValues values;
  ASSERT_TRUE(values.set("--threads", "2", "command line").ok());
  ASSERT_TRUE(values.apply_environment("generate").ok());
  EXPECT_EQ(values.text("--isa"), "portable");
  EXPECT_EQ(values.integer("--threads"), 2);

  OptionValues other;
  ASSERT_TRUE(other.apply_environment("list").ok());
  EXPECT_FALSE(other.given("--threads")) << "list has no --threads";

  setenv("VEDETTE_THREADS", "many", 1);
  OptionValues wrong;
  auto status = wrong.apply_environment("generate");
  unsetenv("VEDETTE_THREADS");
  unsetenv("VEDETTE_CPU_ISA");
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().message, "--threads (VEDETTE_THREADS): expected an integer, found 'many'");
}

TEST(Suggestions, TheNearestSpellingOrNothing) {
  EXPECT_EQ(nearest_option("generate", "--max-token"), "--max-tokens");
  EXPECT_EQ(nearest_option("generate", "--temprature"), "--temperature");
  EXPECT_EQ(nearest_option("list", "--temprature"), "");
  EXPECT_EQ(nearest_option("generate", "--zzzzzzzzzz"), "");
  EXPECT_EQ(nearest_subcommand("genrate"), "generate");
  EXPECT_EQ(nearest_subcommand("xyzzy"), "");
}

TEST(Markdown, NamesEveryOptionAndSubcommand) {
  const std::string text = options_markdown();
  for (const OptionSpec& option : option_table()) {
    EXPECT_NE(text.find("`" + std::string(option.name)), std::string::npos) << option.name;
  }
  for (const SubcommandSpec& subcommand : subcommand_table()) {
    EXPECT_NE(text.find("`" + std::string(subcommand.name) + "`"), std::string::npos) << subcommand.name;
  }
}

}  // namespace
}  // namespace vedette
