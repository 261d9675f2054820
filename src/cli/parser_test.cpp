#include "cli/parser.h"

#include <gtest/gtest.h>

#include <cstdlib>

namespace vedette::cli {
namespace {

Result<ParsedLine> parse(std::string_view subcommand, std::vector<std::string> arguments) {
  return parse_line(*find_subcommand(subcommand), std::move(arguments));
}

std::string error_of(std::string_view subcommand, std::vector<std::string> arguments) {
  auto line = parse(subcommand, std::move(arguments));
  return line.ok() ? "no error" : line.error().message;
}

TEST(Parser, ReadsEverySpelling) {
  auto line =
      parse("generate", {"-m", "a/b", "--prompt=-starts with a dash", "-n", "-1", "--temperature", "0.5", "--json"});
  ASSERT_TRUE(line.ok()) << line.error().message;
  const OptionValues& options = line->context.options;
  EXPECT_EQ(options.text("--model"), "a/b");
  EXPECT_EQ(options.text("--prompt"), "-starts with a dash");
  EXPECT_EQ(options.integer("--max-tokens"), -1);
  EXPECT_EQ(options.number("--temperature"), 0.5);
  EXPECT_TRUE(options.flag("--json"));
}

TEST(Parser, TextIsTakenAsItStands) {
  const std::string texts[] = {"[a,b]", "--json", "\"quoted\"", "a,b;c", "", "%d {}", "\n", "é漢😀"};
  for (const std::string& text : texts) {
    auto line = parse("generate", {"--stop", text, "-p", text, "--stop", "second"});
    ASSERT_TRUE(line.ok()) << line.error().message;
    EXPECT_EQ(line->context.options.text("--prompt"), text);
    EXPECT_EQ(line->context.options.texts("--stop"), (std::vector<std::string>{text, "second"}));
  }
}

TEST(Parser, TheOperandIsTheModel) {
  auto line = parse("run", {"a/b", "-p", "hi"});
  ASSERT_TRUE(line.ok()) << line.error().message;
  EXPECT_EQ(line->context.options.text("--model"), "a/b");
  EXPECT_NE(error_of("run", {"a/b", "-m", "c/d"}).find("given twice"), std::string::npos);
  EXPECT_NE(error_of("run", {"a/b", "more"}).find("unexpected word 'more'"), std::string::npos);
  EXPECT_NE(error_of("generate", {"a/b"}).find("takes options only"), std::string::npos);
}

TEST(Parser, UnknownOptionsGetASuggestion) {
  EXPECT_EQ(error_of("generate", {"--max-tokes", "5"}),
            "unknown option '--max-tokes', did you mean --max-tokens?; `vedette help generate` lists the options");
  EXPECT_EQ(error_of("generate", {"--xyzzyxyzzy=5"}),
            "unknown option '--xyzzyxyzzy'; `vedette help generate` lists the options");
  EXPECT_NE(error_of("generate", {"-z"}).find("unknown option '-z'"), std::string::npos);
  EXPECT_EQ(error_of("list", {"--temperature", "1"}),
            "--temperature does not belong to `vedette list`; it is for: run, generate");
}

TEST(Parser, AMissingValueIsNamed) {
  EXPECT_EQ(error_of("generate", {"-p"}), "--prompt (command line): expected a value, found none");
  EXPECT_EQ(error_of("generate", {"--top-k"}), "--top-k (command line): expected a value, found none");
}

TEST(Parser, RefusedOptionsWithAnyNumberOfValues) {
  EXPECT_NE(error_of("generate", {"--image", "a.png", "b.png"}).find("no vision models"), std::string::npos);
  EXPECT_NE(error_of("run", {"--draft-model", "x"}).find("drafters are not available"), std::string::npos);
  EXPECT_NE(error_of("generate", {"--prompt-lookup"}).find("prompt lookup is not available"), std::string::npos);
  EXPECT_EQ(error_of("generate", {"--no-small-m"}), "no error");
}

TEST(Parser, TheLastOfARepeatedOptionWins) {
  auto line = parse("generate", {"--top-k", "3", "--json", "--top-k", "4", "--json"});
  ASSERT_TRUE(line.ok()) << line.error().message;
  EXPECT_EQ(line->context.options.integer("--top-k"), 4);
}

TEST(Parser, HelpNeedsNothingElse) {
  auto line = parse("generate", {"--help"});
  ASSERT_TRUE(line.ok());
  EXPECT_TRUE(line->help);
}

TEST(Parser, EveryActiveSubcommandIsImplemented) {
  for (const SubcommandSpec& spec : subcommand_table()) {
    if (spec.state != OptionState::kActive) continue;
    bool found = false;
    for (const Subcommand& subcommand : subcommands()) found = found || subcommand.name == spec.name;
    EXPECT_TRUE(found) << spec.name;
  }
}

}  // namespace
}  // namespace vedette::cli
