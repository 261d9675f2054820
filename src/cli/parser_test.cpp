#include "cli/parser.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>

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
            "--temperature does not belong to `vedette list`; it is for: run, generate, serve");
  EXPECT_EQ(
      error_of("claude", {"--temperature", "1"}),
      "--temperature does not belong to `vedette claude`; it is for: run, generate, serve; what the program started "
      "shall get stands after --");
  EXPECT_NE(error_of("claude", {"--continue"}).find("--continue'; what the program started shall get stands after --"),
            std::string::npos);
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

// A value that passes every check of its option.
std::string valid_value(const OptionSpec& option) {
  const std::map<std::string_view, std::string> known = {{"--model", "./nothing"},
                                                         {"--memory-limit", "1GB"},
                                                         {"--logit-bias", "1=1"},
                                                         {"--ids", "1,2"},
                                                         {"--max-tokens", "5"},
                                                         {"--q-bits", "4"},
                                                         {"--kl-against", "./other"},
                                                         {"--window", "16"},
                                                         {"--prefill", "8"},
                                                         {"--decode", "8"},
                                                         {"--depth", "0,8"},
                                                         {"--sequences", "1,2"},
                                                         {"--rows", "1,8"},
                                                         {"--plot", "x.svg"},
                                                         {"--adaptive-decay", "0.5"},
                                                         {"--samplers", "top_k"},
                                                         {"--sampler-seq", "kpt"},
                                                         {"--kv-cache-budget", "1GB"},
                                                         {"--chat-template-kwargs", "{}"},
                                                         {"--api-prefix", "/x"},
                                                         {"--log-file", "/dev/null"},
                                                         {"--api-key-file", VEDETTE_SOURCE_DIR "/LICENSE"},
                                                         {"--grammar-file", VEDETTE_SOURCE_DIR "/LICENSE"},
                                                         {"--json-schema-file", VEDETTE_SOURCE_DIR "/LICENSE"},
                                                         {"--chat-template-file", VEDETTE_SOURCE_DIR "/LICENSE"},
                                                         {"--prompt-file", VEDETTE_SOURCE_DIR "/LICENSE"}};
  if (auto found = known.find(option.name); found != known.end()) return found->second;
  if (option.type == OptionType::kFlag) return "1";
  if (!option.choices.empty()) return std::string(option.choices.front());
  if (option.name == "--lang-bias") return "ja=-1";
  if (option.name == "--lang-bias-config") return "/dev/null";
  if (option.type == OptionType::kInteger || option.type == OptionType::kNumber)
    return option.min > 1 ? std::to_string(static_cast<int64_t>(option.min)) : "1";
  return "text";
}

// Options that must be given too for this one to make sense.
std::vector<std::pair<std::string, std::string>> companions(std::string_view subcommand, std::string_view option) {
  std::vector<std::pair<std::string, std::string>> out = {{"--model", "./nothing"}};
  if (subcommand == "eval" && option == "--ids")
    out.emplace_back("--logits-out", "x");
  else if (subcommand == "eval" && option == "--logits-out")
    out.emplace_back("--ids", "1");
  else if (subcommand == "eval")
    out.emplace_back("--perplexity", "x");
  if (option == "--against-compute") out.emplace_back("--kl-against", "./other");
  if (subcommand == "convert") out.emplace_back("--output", "x");
  if (subcommand == "convert" && option == "--q-group-size") out.emplace_back("--q-bits", "4");
  if (option == "--json" && (subcommand == "run" || subcommand == "generate")) out.emplace_back("--prompt", "hi");
  if (option == "--ssl-cert-file") out.emplace_back("--ssl-key-file", "x");
  if (option == "--ssl-key-file") out.emplace_back("--ssl-cert-file", "x");
  if (option == "--cache-type-k") out.emplace_back("--cache-type-v", "f16");
  return out;
}

// With every option of its own a subcommand gets as far as the model that is not there: it has read them all.
TEST(Subcommands, EveryOptionIsRead) {
  for (const Subcommand& subcommand : subcommands()) {
    for (const OptionSpec* option : options_of(subcommand.name)) {
      const bool needs_model = find_option("--model")->subcommands.end() !=
                               std::ranges::find(find_option("--model")->subcommands, subcommand.name);
      if (option->state != OptionState::kActive || !needs_model) continue;
      // These want no model: the first excludes one, the others print and stop.
      if (option->name == "--no-model" || option->name == "--cache-list" || option->name == "--completion-bash")
        continue;
      Context context;
      context.subcommand = subcommand.name;
      for (const auto& [name, value] : companions(subcommand.name, option->name))
        ASSERT_TRUE(context.options.set(name, value, "test").ok()) << name;
      auto set = context.options.set(option->name, valid_value(*option), "test");
      ASSERT_TRUE(set.ok()) << set.error().message;
      auto result = subcommand.run(context);
      ASSERT_FALSE(result.ok()) << subcommand.name << " " << option->name;
      EXPECT_EQ(result.error().kind, ErrorKind::kNotFound)
          << subcommand.name << " " << option->name << ": " << result.error().message;
    }
  }
}

// Those without a model: they get as far as what they lack next.
TEST(Subcommands, EveryOptionOfTheToolsIsRead) {
  const std::map<std::string_view, std::string_view> lacking = {
      {"download", "no model named"}, {"rm", "no model named"}, {"claude", "expected a URL"}};
  for (const Subcommand& subcommand : subcommands()) {
    if (!lacking.contains(subcommand.name)) continue;
    for (const OptionSpec* option : options_of(subcommand.name)) {
      if (option->state != OptionState::kActive) continue;
      Context context;
      context.subcommand = subcommand.name;
      if (subcommand.name == "claude") {
        ASSERT_TRUE(context.options.set("--url", "nothing", "test").ok());
      }
      ASSERT_TRUE(context.options.set(option->name, valid_value(*option), "test").ok()) << option->name;
      auto result = subcommand.run(context);
      ASSERT_FALSE(result.ok()) << subcommand.name << " " << option->name;
      EXPECT_NE(result.error().message.find(lacking.at(subcommand.name)), std::string::npos)
          << subcommand.name << " " << option->name << ": " << result.error().message;
    }
  }
}

TEST(Parser, ShortNamesOfSeveralLettersAndWordsAfterTheMark) {
  const auto serve = parse_line(*find_subcommand("serve"), {"-np", "3"});
  ASSERT_TRUE(serve.ok());
  EXPECT_EQ(serve->context.options.integer("--parallel"), 3);
  const auto claude = parse_line(*find_subcommand("claude"), {"--key", "k", "--", "-np", "--url", "a b", "--"});
  ASSERT_TRUE(claude.ok());
  EXPECT_EQ(claude->context.operands, (std::vector<std::string>{"-np", "--url", "a b", "--"}));
  EXPECT_FALSE(claude->context.options.given("--url"));
  EXPECT_FALSE(parse_line(*find_subcommand("claude"), {"word"}).ok());
}

}  // namespace
}  // namespace vedette::cli
