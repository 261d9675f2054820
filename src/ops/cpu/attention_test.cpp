// Attention against a slow double-precision definition, and its invariances: bits do not depend on the rows that share
// a step, on how work is cut, on the instruction set, or on what lies in slots that a row does not see.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <numeric>
#include <random>
#include <vector>

#include "base/float16.h"
#include "base/property_test.h"
#include "ops/cpu/attention_plan.h"
#include "ops/cpu/kv_cache.h"

namespace vedette::ops::cpu {
namespace {

using test::between;
using test::bits;
using test::check_property;
using test::list_of;
using test::require;

struct Shape {
  int n_heads = 4, n_kv_heads = 2, head_dim = 16, value_dim = 16;
  DType type = DType::kF16;
  int window = 0;
  float softcap = 0;
  int64_t n_tokens = 40;
};

float rounded(DType type, float x) {
  if (type == DType::kF16) return f16_to_float(float_to_f16(x));
  if (type == DType::kBF16) return bf16_to_float(float_to_bf16(x));
  return x;
}

// One sequence's queries, keys and values, and the cache that holds them.
class Sequence {
 public:
  Sequence(const Shape& shape, uint32_t seed, const Kernels& kernels)
      : shape_(shape), kernels_(kernels), cache_(make_cache(shape)) {
    std::mt19937 random(seed);
    std::normal_distribution<float> normal(0.0f, 1.0f);
    const auto fill = [&](std::vector<float>& v, int heads, int dim) {
      v.resize(static_cast<size_t>(shape.n_tokens * heads * dim));
      for (float& x : v) x = normal(random);
    };
    fill(q_, shape.n_heads, shape.head_dim);
    fill(k_, shape.n_kv_heads, shape.head_dim);
    fill(v_, shape.n_kv_heads, shape.value_dim);
    blocks_.resize(static_cast<size_t>((shape.n_tokens + kBlockTokens - 1) / kBlockTokens));
    std::iota(blocks_.begin(), blocks_.end(), 0);
    std::shuffle(blocks_.begin(), blocks_.end(), random);
    // Every slot holds NaN until it is written.
    std::memset(cache_.layer(0).data, 0xff, static_cast<size_t>(cache_.bytes()));
  }

  void write(int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      for (int h = 0; h < shape_.n_kv_heads; ++h) {
        kernels_.store_kv(cache_.layer(0), blocks_[static_cast<size_t>(i / kBlockTokens)], h,
                          static_cast<int>(i % kBlockTokens), k_.data() + (i * shape_.n_kv_heads + h) * shape_.head_dim,
                          v_.data() + (i * shape_.n_kv_heads + h) * shape_.value_dim);
      }
    }
  }

  // Attention of rows [begin, end), their keys and values written first. `cut` as the operation's splits.
  std::vector<float> run(int64_t begin, int64_t end, bool cut, int thread = 0) {
    write(begin, end);
    Step step;
    step.rows.resize(static_cast<size_t>(end - begin));
    for (int64_t i = begin; i < end; ++i)
      step.rows[static_cast<size_t>(i - begin)].position[0] = static_cast<int32_t>(i);
    step.sequences.push_back({0, static_cast<int32_t>(end - begin), {blocks_}});
    std::vector<AttentionItem> items;
    std::vector<int32_t> item_of_row;
    build_items(step, items, item_of_row);
    std::vector<const int32_t*> tables(step.rows.size(), blocks_.data());
    std::vector<float> out(static_cast<size_t>((end - begin) * shape_.n_heads * shape_.value_dim), -1);
    AttentionOperation o;
    o.kernels = &kernels_;
    o.layer = cache_.layer(0);
    const int64_t q_cols = shape_.n_heads * shape_.head_dim;
    o.q = {q_.data() + begin * q_cols, q_cols, q_cols};
    const int64_t out_cols = shape_.n_heads * shape_.value_dim;
    o.out = {out.data(), out_cols, out_cols};
    o.n_heads = shape_.n_heads;
    o.n_kv_heads = shape_.n_kv_heads;
    o.window = shape_.window;
    o.scale = 0.3f;
    o.softcap = shape_.softcap;
    o.items = items.data();
    o.n_items = static_cast<int64_t>(items.size());
    o.item_of_row = item_of_row.data();
    o.blocks = tables.data();
    o.scratch_stride = attention_scratch_bytes(o.layer.head_dim, o.layer.value_stride);
    std::vector<float> scratch(static_cast<size_t>(o.scratch_stride / 4 * (thread + 1)), std::nanf(""));
    o.scratch = reinterpret_cast<std::byte*>(scratch.data());
    if (!cut) {
      for (int64_t c = 0; c < attention_item_chunks(o); ++c) run_attention_items(&o, c, thread);
      return out;
    }
    AttentionSplits splits;
    build_splits(items, shape_.window, splits);
    std::vector<float> partials(
        static_cast<size_t>(attention_partial_floats(splits, shape_.n_heads, o.layer.value_stride)), std::nanf(""));
    o.splits = &splits;
    o.partials = partials.data();
    for (int64_t c = attention_slot_chunks(o) - 1; c >= 0; --c) run_attention_slots(&o, c, thread);
    for (int64_t row = 0; row < end - begin; ++row) run_attention_merge(&o, row, thread);
    return out;
  }

  // The definition, in double precision on the stored keys and values.
  std::vector<double> reference(int64_t row) const {
    std::vector<double> out;
    const int shared = shape_.n_heads / shape_.n_kv_heads;
    for (int h = 0; h < shape_.n_heads; ++h) {
      const int64_t first = shape_.window > 0 ? std::max<int64_t>(0, row - shape_.window + 1) : 0;
      std::vector<double> weights;
      double total = 0;
      for (int64_t key = first; key <= row; ++key) {
        double score = 0;
        for (int d = 0; d < shape_.head_dim; ++d) {
          score += static_cast<double>(at(q_, row, h, d, shape_.n_heads, shape_.head_dim)) *
                   rounded(shape_.type, at(k_, key, h / shared, d, shape_.n_kv_heads, shape_.head_dim));
        }
        score *= static_cast<double>(0.3f);
        if (shape_.softcap > 0) score = shape_.softcap * std::tanh(score / shape_.softcap);
        weights.push_back(std::exp(score));
        total += weights.back();
      }
      for (int d = 0; d < shape_.value_dim; ++d) {
        double sum = 0;
        for (int64_t key = first; key <= row; ++key) {
          sum += weights[static_cast<size_t>(key - first)] *
                 rounded(shape_.type, at(v_, key, h / shared, d, shape_.n_kv_heads, shape_.value_dim));
        }
        out.push_back(sum / total);
      }
    }
    return out;
  }

 private:
  static KvCache make_cache(const Shape& s) {
    KvGroupConfig config{
        1, s.n_kv_heads, s.head_dim, s.value_dim, s.type, s.window, (s.n_tokens + kBlockTokens - 1) / kBlockTokens};
    auto cache = KvCache::create(config);
    EXPECT_TRUE(cache.ok());
    return std::move(cache).value();
  }
  static float at(const std::vector<float>& v, int64_t row, int head, int d, int heads, int dim) {
    return v[static_cast<size_t>((row * heads + head) * dim + d)];
  }
  Shape shape_;
  const Kernels& kernels_;
  KvCache cache_;
  std::vector<float> q_, k_, v_;
  std::vector<int32_t> blocks_;
};

::testing::AssertionResult same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  if (a.size() != b.size()) return ::testing::AssertionFailure() << "sizes differ";
  for (size_t i = 0; i < a.size(); ++i) {
    if (std::bit_cast<uint32_t>(a[i]) != std::bit_cast<uint32_t>(b[i])) {
      return ::testing::AssertionFailure() << "element " << i << ": " << a[i] << " and " << b[i];
    }
  }
  return ::testing::AssertionSuccess();
}

std::vector<Shape> shapes() {
  return {
      {.n_tokens = 70},
      {.n_heads = 9, .n_kv_heads = 3, .head_dim = 64, .value_dim = 64, .n_tokens = 600},
      {.n_heads = 3, .n_kv_heads = 3, .head_dim = 5, .value_dim = 7, .n_tokens = 300},
      {.n_heads = 4, .n_kv_heads = 1, .head_dim = 80, .value_dim = 48, .type = DType::kBF16, .n_tokens = 290},
      {.n_heads = 8, .n_kv_heads = 4, .head_dim = 33, .value_dim = 128, .type = DType::kF32, .n_tokens = 520},
      {.n_heads = 4, .n_kv_heads = 2, .head_dim = 16, .value_dim = 16, .window = 20, .n_tokens = 800},
      {.n_heads = 6, .n_kv_heads = 2, .head_dim = 32, .value_dim = 32, .window = 300, .softcap = 5, .n_tokens = 800},
      {.n_heads = 2, .n_kv_heads = 2, .head_dim = 16, .value_dim = 16, .window = 1, .n_tokens = 300},
      {.n_heads = 71, .n_kv_heads = 1, .head_dim = 16, .value_dim = 16, .n_tokens = 270},
      // More query heads than a call holds.
      {.n_heads = kMaxPairs + 5, .n_kv_heads = 1, .head_dim = 20, .value_dim = 20, .softcap = 8, .n_tokens = 70},
  };
}

TEST(Attention, MatchesTheDefinition) {
  for (const Shape& shape : shapes()) {
    SCOPED_TRACE(shape.n_tokens);
    Sequence sequence(shape, 1, kernels_for(available_isas().back()));
    const std::vector<float> out = sequence.run(0, shape.n_tokens, false);
    const size_t cols = static_cast<size_t>(shape.n_heads * shape.value_dim);
    for (int64_t row = 0; row < shape.n_tokens; row += row < 40 ? 1 : 23) {
      const std::vector<double> expected = sequence.reference(row);
      for (size_t i = 0; i < cols; ++i) {
        // Values are of size 1; scores carry some head_dim roundings, which exp turns into relative errors.
        ASSERT_NEAR(out[static_cast<size_t>(row) * cols + i], expected[i], 5e-6) << "row " << row << " column " << i;
      }
    }
  }
}

TEST(Attention, EveryInstructionSetGivesTheSameBits) {
  for (const Shape& shape : shapes()) {
    SCOPED_TRACE(shape.n_tokens);
    const int64_t begin = std::max<int64_t>(0, shape.n_tokens - 40);
    const auto run = [&](Isa isa) {
      Sequence sequence(shape, 2, kernels_for(isa));
      sequence.write(0, begin);
      return sequence.run(begin, shape.n_tokens, false);
    };
    const std::vector<float> expected = run(Isa::kPortable);
    for (const Isa isa : available_isas()) EXPECT_TRUE(same_bits(run(isa), expected)) << to_string(isa);
  }
}

// The rows of one step, and how its work is shared.
struct Cut {
  int64_t rows = 1;
  bool splits = false;
  int thread = 0;
};
void showValue(const Cut& cut, std::ostream& out) {
  out << cut.rows << (cut.splits ? " rows by splits" : " rows by items") << " on thread " << cut.thread;
}
rc::Gen<Cut> any_cut() {
  using rc::gen::set;
  return rc::gen::build<Cut>(
      set(&Cut::rows, rc::gen::oneOf(rc::gen::just<int64_t>(1), between<int64_t>(1, 90), between<int64_t>(1, 90))),
      set(&Cut::splits, rc::gen::element(false, true)), set(&Cut::thread, between(0, 1)));
}

// The listed shapes at any number of tokens near theirs.
TEST(RowInvariance, OfAttention) {
  for (const Isa isa : available_isas()) {
    for (const Shape& listed : shapes()) {
      const std::string label = std::string(to_string(isa)) + " head " + std::to_string(listed.head_dim) + " window " +
                                std::to_string(listed.window);
      check_property(label, 1, [&] {
        Shape shape = listed;
        const int64_t most = isa == Isa::kPortable ? std::min<int64_t>(shape.n_tokens, 300) : shape.n_tokens;
        shape.n_tokens = *between<int64_t>(most - 30, most, 1).as("tokens");
        const auto seed = static_cast<uint32_t>(*bits().as("values"));
        Sequence whole(shape, seed, kernels_for(isa));
        const std::vector<float> expected = whole.run(0, shape.n_tokens, false);
        RC_ASSERT(std::none_of(expected.begin(), expected.end(), [](float x) { return std::isnan(x); }));
        // Slots of later tokens are NaN while earlier rows run.
        Sequence parts(shape, seed, kernels_for(isa));
        const auto cuts = *list_of(between<size_t>(8, 16, 1), any_cut()).as("steps, over and over");
        std::vector<float> got;
        size_t next = 0;
        for (int64_t begin = 0; begin < shape.n_tokens; ++next) {
          const Cut& cut = cuts[next % cuts.size()];
          const int64_t end = std::min(shape.n_tokens, begin + cut.rows);
          const std::vector<float> rows = parts.run(begin, end, cut.splits, cut.thread);
          got.insert(got.end(), rows.begin(), rows.end());
          begin = end;
        }
        require(same_bits(got, expected), "in steps");
        require(same_bits(whole.run(0, shape.n_tokens, true), expected), "by splits");
      });
    }
  }
}

TEST(KvCache, RefusesImpossibleSizes) {
  EXPECT_FALSE(KvCache::create({0, 1, 16, 16, DType::kF16, 0, 1}).ok());
  EXPECT_FALSE(KvCache::create({1, 1, 16, 16, DType::kF16, 0, 0}).ok());
  EXPECT_FALSE(KvCache::create({1, 1, 16, -1, DType::kF16, 0, 1}).ok());
  const auto huge = KvCache::create({1 << 16, 1 << 16, 1 << 16, 1 << 16, DType::kF32, 0, 1 << 30});
  ASSERT_FALSE(huge.ok());
  EXPECT_EQ(huge.error().kind, ErrorKind::kUnsupported);
  const auto large = KvCache::create({1 << 10, 1 << 6, 1 << 10, 1 << 10, DType::kF32, 0, 1 << 20});
  ASSERT_FALSE(large.ok());
  EXPECT_EQ(large.error().kind, ErrorKind::kOutOfBudget);
}

}  // namespace
}  // namespace vedette::ops::cpu
