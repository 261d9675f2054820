// The Decoder by itself: plans, limits, refusals, mixed steps.
#include "models/decoder.h"

#include <gtest/gtest.h>

#include "models/decoder_plan.h"
#include "models/fixture_test.h"
#include "models/reference_backend_test.h"
#include "models/synthetic_test.h"
#include "models/weight_loader.h"

namespace vedette::models {
namespace {

Json gemma3_config() {
  Json config = Json::object();
  config.set("model_type", "gemma3_text");
  for (const auto& [key, value] : std::initializer_list<std::pair<const char*, int>>{{"vocab_size", 40},
                                                                                     {"hidden_size", 16},
                                                                                     {"intermediate_size", 24},
                                                                                     {"num_hidden_layers", 4},
                                                                                     {"num_attention_heads", 2},
                                                                                     {"num_key_value_heads", 1},
                                                                                     {"head_dim", 8},
                                                                                     {"sliding_window", 5},
                                                                                     {"sliding_window_pattern", 2}})
    config.set(key, value);
  return config;
}

class DecoderTest : public testing::Test {
 protected:
  DecoderTest() : checkpoint_(gemma3_config()) {
    auto spec = (*find_family(checkpoint_->config))->build(*checkpoint_);
    for (const ExpectedTensor& tensor : expected_tensors(*spec)) checkpoint_.add(tensor.name, tensor.shape);
    decoder_ = load_decoder(*checkpoint_, std::make_unique<ReferenceBackend>());
  }

  // A step with one row of one sequence.
  ops::Step one_row() {
    ops::Step step;
    step.rows.resize(1);
    step.rows[0].wants_logits = true;
    step.sequences.resize(1);
    step.sequences[0].n_rows = 1;
    for (size_t g = 0; g < decoder_->kv_groups().size(); ++g) step.sequences[0].block_tables.push_back({0});
    return step;
  }
  std::string error_of(const ops::Step& step) {
    const Status status = decoder_->run(step);
    return status.ok() ? "no error" : status.error().message;
  }

  SyntheticCheckpoint checkpoint_;
  std::unique_ptr<Decoder> decoder_;
};

TEST_F(DecoderTest, GroupsLayersByWindowAndFormat) {
  const auto& groups = decoder_->kv_groups();
  ASSERT_EQ(groups.size(), 2u);
  EXPECT_EQ(groups[0].window, 5);
  EXPECT_EQ(groups[1].window, 0);
  EXPECT_EQ(groups[0].n_layers, 2);
  EXPECT_EQ(groups[0].bytes_per_token(ops::DType::kF16), 2 * 1 * (8 + 8) * 2);
  const KvPlan plan = plan_kv(decoder_->spec());
  ASSERT_EQ(plan.slots.size(), 4u);
  EXPECT_EQ(plan.slots[2].group, 0);
  EXPECT_EQ(plan.slots[2].layer, 1);
}

TEST_F(DecoderTest, ActivationBytesAreTheTensorsOfThePlan) {
  const DecoderConfig& config = decoder_->config();
  // hidden, working, q, k, v, attended, gate, up per row; gathered and logits per logit row.
  const int64_t per_row = 16 + 16 + 16 + 8 + 8 + 16 + 24 + 24, per_logit = 16 + 40;
  EXPECT_EQ(activation_bytes(decoder_->spec(), config),
            4 * (per_row * config.max_rows + per_logit * config.max_logit_rows));
}

TEST_F(DecoderTest, RefusesWhatRowsCannotAskForYet) {
  EXPECT_EQ(error_of(one_row()), "no error");
  ops::Step step = one_row();
  step.rows[0].source = ops::RowSource::kEmbedding;
  EXPECT_NE(error_of(step).find("embedding buffer"), std::string::npos);
  step.rows[0].source = ops::RowSource::kPreviousOutput;
  EXPECT_NE(error_of(step).find("device"), std::string::npos);
  step = one_row();
  step.rows[0].adapter = 0;
  EXPECT_NE(error_of(step).find("adapters"), std::string::npos);
  step = one_row();
  step.rows[0].wants_taps = true;
  EXPECT_NE(error_of(step).find("taps"), std::string::npos);
  step = one_row();
  step.rows[0].span = 0;
  EXPECT_NE(error_of(step).find("spans"), std::string::npos);
  step = one_row();
  step.rows[0].value = 40;
  EXPECT_NE(error_of(step).find("token id 40 is outside the vocabulary of 40"), std::string::npos);
  step.rows[0].value = -1;
  EXPECT_NE(error_of(step).find("token id -1"), std::string::npos);
}

TEST_F(DecoderTest, RefusesStepsBeyondItsLimits) {
  ops::Step step = one_row();
  step.rows.assign(65, step.rows[0]);
  EXPECT_NE(error_of(step).find("65 rows"), std::string::npos);
  step = one_row();
  step.sequences[0].block_tables.pop_back();
  EXPECT_NE(error_of(step).find("block tables for 1 of 2"), std::string::npos);
}

// Two sequences in one step give what each gives alone, and rows that want no logits take no slot.
TEST_F(DecoderTest, SequencesShareAStep) {
  const std::vector<int32_t> first{3, 9, 27, 14, 2, 8, 31}, second{11, 5, 39};
  const auto alone_first = Runner(*decoder_).prefill(first, 7).back();
  const auto alone_second = Runner(*decoder_).prefill(second, 3).back();
  ops::Step step;
  step.sequences.resize(2);
  for (size_t s = 0; s < 2; ++s) {
    const std::vector<int32_t>& ids = s == 0 ? first : second;
    step.sequences[s].first_row = static_cast<int32_t>(step.rows.size());
    step.sequences[s].n_rows = static_cast<int32_t>(ids.size());
    step.sequences[s].block_tables.assign(2, {static_cast<int32_t>(6 - s)});
    for (size_t i = 0; i < ids.size(); ++i) {
      ops::Row row;
      row.value = ids[i];
      row.sequence = static_cast<int32_t>(s);
      row.position[0] = static_cast<int32_t>(i);
      row.wants_logits = i + 1 == ids.size();
      step.rows.push_back(row);
    }
  }
  ASSERT_EQ(error_of(step), "no error");
  const auto a = decoder_->logits(0), b = decoder_->logits(1);
  EXPECT_EQ(std::vector<float>(a.begin(), a.end()), alone_first);
  EXPECT_EQ(std::vector<float>(b.begin(), b.end()), alone_second);
}

TEST_F(DecoderTest, ReportsLoadProgressUpToTheEnd) {
  auto spec = build_spec(*checkpoint_);
  ASSERT_TRUE(spec.ok());
  const DecoderConfig config = Runner::config(*spec, ops::DType::kF32);
  int64_t last = 0, total = 0;
  const auto decoder =
      Decoder::load(*checkpoint_, *spec, config, std::make_unique<ReferenceBackend>(), [&](int64_t done, int64_t all) {
        EXPECT_GE(done, last);
        last = done;
        total = all;
      });
  ASSERT_TRUE(decoder.ok());
  EXPECT_GT(total, 0);
  EXPECT_EQ(last, total);
}

TEST_F(DecoderTest, RefusesWeightsThatAreNoNumbers) {
  checkpoint_.add("model.norm.weight", {16}, std::vector<float>(16, NAN));
  auto spec = build_spec(*checkpoint_);
  const DecoderConfig config = Runner::config(*spec, ops::DType::kF32);
  const auto decoder = Decoder::load(*checkpoint_, *spec, config, std::make_unique<ReferenceBackend>());
  ASSERT_FALSE(decoder.ok());
  EXPECT_NE(decoder.error().message.find("'model.norm.weight': element 0 is not a finite number"), std::string::npos);
}

// Selections compose with an order that the reader already put on the rows.
TEST(SelectRows, ComposesSlicesOrdersAndTranspositions) {
  const std::vector<float> data{0, 1, 10, 11, 20, 21, 30, 31};  // [4, 2]
  weights::StoredTensor stored;
  stored.shape = {4, 2};
  stored.matrix.rows = stored.matrix.stored_rows = 4;
  stored.matrix.cols = 2;
  stored.matrix.data = std::as_bytes(std::span(data));
  LinearSpec spec{.weight = "w", .out_features = 2, .in_features = 2, .stored_features = 4, .first_row = 1};
  auto slice = select_rows(stored, spec);
  ASSERT_TRUE(slice.ok());
  EXPECT_TRUE(slice->row_map.empty());
  EXPECT_EQ(slice->data.size(), 2 * 2 * sizeof(float));
  EXPECT_EQ(slice->data.data(), stored.matrix.data.data() + 2 * sizeof(float));

  stored.matrix.row_map = {3, 2, 1, 0};
  auto composed = select_rows(stored, spec);
  ASSERT_TRUE(composed.ok());
  EXPECT_EQ(composed->row_map, (std::vector<uint32_t>{2, 1}));
  spec.rows = {0, 3};
  EXPECT_EQ(select_rows(stored, spec)->row_map, (std::vector<uint32_t>{3, 0}));
  spec.rows = {0, 4};
  EXPECT_FALSE(select_rows(stored, spec).ok());

  stored.matrix.row_map.clear();
  LinearSpec turned{
      .weight = "w", .out_features = 1, .in_features = 4, .stored_features = 2, .first_row = 1, .transposed = true};
  auto transposed = select_rows(stored, turned);
  ASSERT_TRUE(transposed.ok());
  EXPECT_TRUE(transposed->transposed);
  EXPECT_EQ(transposed->stored_rows, 2);
  EXPECT_EQ(transposed->row_map, (std::vector<uint32_t>{1}));
  stored.matrix.scheme = ops::Scheme::kQ8_0;
  EXPECT_FALSE(select_rows(stored, turned).ok());
}

}  // namespace
}  // namespace vedette::models
