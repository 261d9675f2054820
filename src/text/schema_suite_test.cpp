// The public JSON Schema test suite and our own cases beside it, as grammars over a real vocabulary: which schemas
// compile, what a model with random weights writes under them, and which instances of the suite they take.
//
// Instances written go to the file that VEDETTE_SCHEMA_INSTANCES names, one JSON object a line, for an independent
// validator (tests/schemas/validate_instances.py).
#include <fmt/core.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <random>
#include <sstream>

#include "base/json.h"
#include "sampling/sampling.h"
#include "text/grammar.h"
#include "weights/checkpoint.h"

namespace vedette::text {
namespace {

constexpr int kFavourClosingAfter = 64;
constexpr int kMostTokens = 256;
constexpr size_t kLeastSchemas = 500;

struct Case {
  std::string where;  // "draft7/items.json: a schema given for items"
  std::string draft;  // "draft7"
  Json schema;
  Json::Array tests;
};

// The suite leaves out "$schema", which a request would carry where it means another draft than the latest.
void set_draft(Json& schema, const std::string& draft) {
  if (!schema.is_object() || schema.find("$schema") != nullptr) return;
  if (draft == "draft3") schema.set("$schema", "http://json-schema.org/draft-03/schema#");
  if (draft == "draft4") schema.set("$schema", "http://json-schema.org/draft-04/schema#");
  if (draft == "draft6") schema.set("$schema", "http://json-schema.org/draft-06/schema#");
  if (draft == "draft7") schema.set("$schema", "http://json-schema.org/draft-07/schema#");
}

std::vector<Case> read_cases(const std::filesystem::path& folder) {
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder))
    if (entry.path().extension() == ".json") files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  std::vector<Case> cases;
  for (const auto& file : files) {
    std::stringstream text;
    text << std::ifstream(file).rdbuf();
    const auto relative = std::filesystem::relative(file, folder);
    const auto groups = parse_json(text.str(), file.string());
    EXPECT_TRUE(groups.ok()) << groups.error().message;
    if (!groups.ok()) continue;
    for (const Json& group : groups->as_array()) {
      Case entry{relative.string() + ": " + group.find("description")->as_string(), relative.begin()->string(),
                 *group.find("schema"), group.find("tests")->as_array()};
      set_draft(entry.schema, entry.draft);
      cases.push_back(std::move(entry));
    }
  }
  return cases;
}

void collect_keys(const Json& value, std::vector<std::string>& keys) {
  if (value.is_object())
    for (const auto& [key, member] : value.as_object()) {
      keys.push_back(key);
      collect_keys(member, keys);
    }
  if (value.is_array())
    for (const Json& item : value.as_array()) collect_keys(item, keys);
}

// Whether the message quotes a keyword of the schema; of `true` and `false` there is none but the schema itself.
bool names_keyword(const std::string& message, const Json& schema) {
  std::vector<std::string> keys;
  collect_keys(schema, keys);
  if (!schema.is_object()) keys.push_back("schema");
  return std::any_of(keys.begin(), keys.end(),
                     [&](const std::string& key) { return message.find("'" + key + "'") != std::string::npos; });
}

class SchemaSuite : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    const char* folder = std::getenv("VEDETTE_TEST_MODELS");
    ASSERT_NE(folder, nullptr) << "VEDETTE_TEST_MODELS is not set: the folder of the real models expected";
    const auto model =
        weights::open_checkpoint(std::string(folder) + "/SmolLM2-135M-Instruct.Q4_1.gguf", {.tensors = false});
    ASSERT_TRUE(model.ok()) << model.error().message;
    auto tokenizer = Tokenizer::create(model->tokenizer);
    ASSERT_TRUE(tokenizer.ok()) << tokenizer.error().message;
    tokenizer_ = std::make_unique<Tokenizer>(std::move(*tokenizer));
    end_ = tokenizer_->eos().value();
    auto compiler = GrammarCompiler::create(*tokenizer_, std::vector<int32_t>{end_});
    ASSERT_TRUE(compiler.ok()) << compiler.error().message;
    compiler_ = std::move(*compiler);
    const char* suite = std::getenv("VEDETTE_SCHEMA_SUITE");
    cases_ = read_cases(suite != nullptr ? suite : "/usr/share/json-schema-test-suite/tests");
    public_cases_ = cases_.size();
    for (Case& own : read_cases(VEDETTE_SOURCE_DIR "/tests/schemas/cases")) cases_.push_back(std::move(own));
  }
  static void TearDownTestSuite() {
    compiler_.reset();
    tokenizer_.reset();
    cases_.clear();
  }

  static Result<std::unique_ptr<sampling::Constraint>> compile(const Json& schema) {
    return compiler_->compile({GrammarKind::kJsonSchema, schema.dump()});
  }

  static std::vector<uint32_t> fresh_words() { return std::vector<uint32_t>((words() + 31) / 32); }
  static size_t words() { return static_cast<size_t>(tokenizer_->size()); }
  static bool has(const std::vector<uint32_t>& mask, int32_t token) {
    return (mask[static_cast<size_t>(token) / 32] >> (token % 32) & 1) != 0;
  }

  // Whether the text is taken token by token; `whole`: and may end there.
  static bool takes(std::unique_ptr<sampling::Constraint> constraint, const std::string& text, bool whole) {
    const auto ids = tokenizer_->encode(text, {.add_special = false, .parse_special = false});
    EXPECT_TRUE(ids.ok());
    std::vector<uint32_t> mask = fresh_words();
    for (const int32_t token : *ids) {
      if (constraint->complete()) return false;
      const auto limited = constraint->allowed(mask);
      EXPECT_TRUE(limited.ok()) << (limited.ok() ? "" : limited.error().message);
      if (!limited.ok() || !has(mask, token)) return false;
      EXPECT_TRUE(constraint->accept(token).ok());
    }
    if (!whole || constraint->complete()) return true;
    const auto limited = constraint->allowed(mask);
    EXPECT_TRUE(limited.ok());
    return limited.ok() && has(mask, end_);
  }

  static std::unique_ptr<Tokenizer> tokenizer_;
  static std::unique_ptr<GrammarCompiler> compiler_;
  static std::vector<Case> cases_;  // the public ones, then ours
  static size_t public_cases_;
  static int32_t end_;
};

std::unique_ptr<Tokenizer> SchemaSuite::tokenizer_;
std::unique_ptr<GrammarCompiler> SchemaSuite::compiler_;
std::vector<Case> SchemaSuite::cases_;
size_t SchemaSuite::public_cases_ = 0;
int32_t SchemaSuite::end_ = 0;

TEST_F(SchemaSuite, SchemasCompileOrAKeywordIsNamed) {
  size_t compiled = 0, refused = 0, faults = 0, own_compiled = 0;
  double longest = 0;
  for (size_t at = 0; at < cases_.size(); ++at) {
    const Case& entry = cases_[at];
    const auto start = std::chrono::steady_clock::now();
    const auto constraint = compile(entry.schema);
    longest = std::max(longest, std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
    if (constraint.ok()) {
      ++compiled;
      own_compiled += at >= public_cases_ ? 1 : 0;
    } else if (constraint.error().kind == ErrorKind::kInvalidRequest &&
               names_keyword(constraint.error().message, entry.schema)) {
      ++refused;
      if (std::getenv("VEDETTE_VERBOSE") != nullptr) fmt::print("{}: {}\n", entry.where, constraint.error().message);
    } else {
      ++faults;
      ADD_FAILURE() << entry.where << "\n" << entry.schema.dump() << "\n" << constraint.error().message;
    }
  }
  fmt::print("{} schemas: {} compiled, {} refused by name, {} faults; the longest took {:.0f} ms\n", cases_.size(),
             compiled, refused, faults, longest * 1000);
  fmt::print("{} of the {} public ones compiled, {} of the {} of our own\n", compiled - own_compiled, public_cases_,
             own_compiled, cases_.size() - public_cases_);
  EXPECT_GE(cases_.size(), kLeastSchemas);
  EXPECT_GE((compiled - own_compiled) * 100, public_cases_ * 60);
  EXPECT_EQ(faults, 0u);
}

TEST_F(SchemaSuite, InvalidInstancesAreRejected) {
  size_t valid = 0, valid_rejected = 0, invalid = 0;
  for (const Case& entry : cases_) {
    const auto constraint = compile(entry.schema);
    if (!constraint.ok()) continue;
    for (const Json& test : entry.tests) {
      const std::string text = test.find("data")->dump();
      const bool taken = takes((*constraint)->clone(), text, true);
      if (test.find("valid")->as_bool()) {
        ++valid;
        valid_rejected += taken ? 0 : 1;
        if (!taken && std::getenv("VEDETTE_VERBOSE") != nullptr)
          fmt::print("valid but not taken: {}: {}\n", entry.where, text);
      } else {
        ++invalid;
        EXPECT_FALSE(taken) << entry.where << ": " << test.find("description")->as_string() << "\n"
                            << entry.schema.dump() << "\n"
                            << text;
      }
    }
  }
  fmt::print("{} invalid instances rejected; {} of {} valid ones not taken (order of properties, 1.0 for integers)\n",
             invalid, valid_rejected, valid);
  EXPECT_GT(invalid, 300u);
  EXPECT_LT(valid_rejected * 4, valid);
}

// Draws of a model with random weights at temperature 1: any token is as good as another. After some tokens what closes
// is preferred, so that most texts end.
class RandomModel {
 public:
  RandomModel(const Tokenizer& tokenizer, int32_t end, uint64_t seed)
      : size_(static_cast<size_t>(tokenizer.size())), random_(seed), logits_(2 * size_) {
    std::normal_distribution<float> normal;
    for (float& logit : logits_) logit = normal(random_);
    sampling::SamplingParams params;
    params.temperature = 1;
    free_ = std::make_unique<sampling::SamplerChain>(params, seed, tokenizer.size());
    for (int32_t id = 0; id < tokenizer.size(); ++id) {
      const std::string_view bytes = tokenizer.token_bytes(id);
      if (!bytes.empty() && bytes.find_first_not_of("\"]}") == std::string_view::npos)
        params.logit_bias.emplace_back(id, 20.0F);
    }
    params.logit_bias.emplace_back(end, 40.0F);
    closing_ = std::make_unique<sampling::SamplerChain>(params, seed, tokenizer.size());
  }

  Result<int32_t> draw(std::span<const int32_t> tokens, std::span<const uint32_t> allowed) {
    const size_t offset = random_() % size_;
    const bool close = tokens.size() >= kFavourClosingAfter;
    return (close ? closing_ : free_)
        ->sample(std::span(logits_).subspan(offset, size_), {.tokens = tokens}, static_cast<int64_t>(draws_++),
                 allowed);
  }

 private:
  size_t size_;
  std::mt19937_64 random_;
  std::vector<float> logits_;
  std::unique_ptr<sampling::SamplerChain> free_, closing_;
  uint64_t draws_ = 0;
};

TEST_F(SchemaSuite, ARandomModelWritesInstances) {
  const char* path = std::getenv("VEDETTE_SCHEMA_INSTANCES");
  std::ofstream out(path != nullptr ? path : "schema_instances.jsonl");
  size_t finished = 0, cut = 0, tokens_drawn = 0;
  double mask_seconds = 0, worst = 0;
  RandomModel model(*tokenizer_, end_, 1);
  std::vector<uint32_t> mask = fresh_words();
  const char* asked = std::getenv("VEDETTE_SCHEMA_ROUNDS");
  const size_t rounds = asked != nullptr ? std::strtoul(asked, nullptr, 10) : 2;
  for (size_t i = 0; i < rounds * cases_.size(); ++i) {
    const Case& entry = cases_[i % cases_.size()];
    auto compiled = compile(entry.schema);
    if (!compiled.ok()) continue;
    std::unique_ptr<sampling::Constraint> constraint = (*compiled)->clone();
    std::vector<int32_t> tokens;
    bool ended = false;
    while (!ended && tokens.size() < kMostTokens) {
      const auto start = std::chrono::steady_clock::now();
      const auto limited = constraint->allowed(mask);
      const double took = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
      ASSERT_TRUE(limited.ok()) << entry.where << ": " << limited.error().message;
      mask_seconds += took;
      worst = std::max(worst, took);
      ++tokens_drawn;
      const auto token = model.draw(tokens, mask);
      ASSERT_TRUE(token.ok()) << entry.where << ": " << token.error().message;
      ASSERT_TRUE(constraint->accept(*token).ok()) << entry.where;
      if (*token != end_) tokens.push_back(*token);
      ended = constraint->complete();
    }
    const std::string text = tokenizer_->decode(tokens);
    if (!ended) {
      ++cut;
      EXPECT_TRUE(takes((*compiled)->clone(), text, false)) << entry.where << "\n" << text;
      continue;
    }
    ++finished;
    Json line = Json::object();
    line.set("where", entry.where);
    line.set("draft", entry.draft);
    line.set("schema", entry.schema);
    line.set("text", text);
    out << line.dump() << "\n";
  }
  fmt::print("{} instances finished, {} ended by length; {} tokens, {:.3f} ms a mask, the longest {:.1f} ms\n",
             finished, cut, tokens_drawn, mask_seconds * 1000 / static_cast<double>(tokens_drawn), worst * 1000);
  EXPECT_LE(cut * 5, finished + cut);
  ASSERT_TRUE(out.flush().good());
}

}  // namespace
}  // namespace vedette::text
