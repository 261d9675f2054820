// Row kernels against slow double-precision definitions, and bit for bit across instruction sets.
#include "ops/cpu/kernels.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

#include "base/float16.h"
#include "ops/cpu/kv_cache.h"
#include "ops/cpu/math_scalar.h"
#include "ops/cpu/program_stages.h"

namespace vedette::ops::cpu {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

std::vector<float> random_values(size_t n, float scale, uint32_t seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal(0.0f, scale);
  std::vector<float> out(n);
  for (float& x : out) x = normal(random);
  return out;
}

// Sizes of a value that count: a dense sweep, every power of two, zeros, infinities, NaN.
std::vector<float> sweep() {
  std::vector<float> out;
  for (int i = -24000; i <= 24000; ++i) out.push_back(static_cast<float>(i) * 0.005f);
  for (int e = -149; e < 128; ++e) {
    out.push_back(std::ldexp(1.0f, e));
    out.push_back(-std::ldexp(1.7f, e));
  }
  for (const float x : {0.0f, -0.0f, kInfinity, -kInfinity, kNan}) out.push_back(x);
  return out;
}

// Equal bits, or both NaN (the sign and payload of a NaN are nobody's promise).
::testing::AssertionResult same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  if (a.size() != b.size()) return ::testing::AssertionFailure() << "sizes differ";
  for (size_t i = 0; i < a.size(); ++i) {
    if (std::isnan(a[i]) && std::isnan(b[i])) continue;
    if (std::bit_cast<uint32_t>(a[i]) != std::bit_cast<uint32_t>(b[i])) {
      return ::testing::AssertionFailure() << "element " << i << ": " << a[i] << " and " << b[i];
    }
  }
  return ::testing::AssertionSuccess();
}

// Runs a kernel on every instruction set of this machine, compares the bits, returns the portable result.
template <typename Run>
std::vector<float> on_every_isa(Run run) {
  const std::vector<float> expected = run(kernels_portable());
  for (const Isa isa : available_isas()) {
    SCOPED_TRACE(to_string(isa));
    EXPECT_TRUE(same_bits(run(kernels_for(isa)), expected));
  }
  return expected;
}

double reference_activation(Activation kind, const ActivationParams& p, double x) {
  switch (kind) {
    case Activation::kSilu:
      return x / (1 + std::exp(-x));
    case Activation::kGeluTanh:
      return 0.5 * x * (1 + std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)));
    case Activation::kGeluErf:
      return 0.5 * x * (1 + std::erf(x / std::sqrt(2.0)));
    case Activation::kRelu:
      return x > 0 ? x : 0;
    case Activation::kRelu2:
      return x > 0 ? x * x : 0;
    case Activation::kXielu:
      return x > 0 ? p.alpha_p * x * x + p.beta * x
                   : p.alpha_n * (std::expm1(std::min(x, static_cast<double>(p.eps))) - x) + p.beta * x;
  }
  return 0;
}

TEST(Kernels, ActivationsMatchTheirFormulas) {
  const ActivationParams params{0.8f, 0.7f, 0.5f, -1e-6f};
  const std::vector<float> in = sweep();
  for (const Activation kind : {Activation::kSilu, Activation::kGeluTanh, Activation::kGeluErf, Activation::kRelu,
                                Activation::kRelu2, Activation::kXielu}) {
    SCOPED_TRACE(static_cast<int>(kind));
    const std::vector<float> out = on_every_isa([&](const Kernels& kernels) {
      std::vector<float> result(in.size());
      kernels.activate(kind, params, in.data(), result.data(), static_cast<int64_t>(in.size()));
      return result;
    });
    for (size_t i = 0; i < in.size(); ++i) {
      if (!std::isfinite(in[i])) continue;
      const double expected = reference_activation(kind, params, in[i]);
      if (std::fabs(expected) > 3e38) continue;
      // 1 + tanh and 1 + erf cancel for negative x, in the reference implementations too: errors there are units of
      // the last place of x, elsewhere of the result. Below -88 silu stays at -5e-37.
      const bool cancels = kind == Activation::kGeluTanh || kind == Activation::kGeluErf || kind == Activation::kXielu;
      const double unit = cancels ? std::fabs(static_cast<double>(in[i])) + std::fabs(expected) : std::fabs(expected);
      ASSERT_NEAR(out[i], expected, 4 * 1.2e-7 * unit + 6e-37) << "x = " << in[i];
    }
    EXPECT_TRUE(std::isnan(out.back())) << "NaN must stay NaN";
  }
}

TEST(Kernels, GatedActivationMultiplies) {
  const std::vector<float> gate = random_values(333, 3, 1), up = random_values(333, 1, 2);
  const std::vector<float> out = on_every_isa([&](const Kernels& kernels) {
    std::vector<float> result(gate.size());
    kernels.gated_activation(Activation::kGeluTanh, gate.data(), up.data(), result.data(), 333);
    return result;
  });
  for (size_t i = 0; i < out.size(); ++i) {
    const double expected = reference_activation(Activation::kGeluTanh, {}, gate[i]) * up[i];
    EXPECT_NEAR(out[i], expected, 1e-6 * (1 + std::fabs(expected)));
  }
}

TEST(Kernels, SoftcapIsTanh) {
  const std::vector<float> in = sweep();
  const std::vector<float> out = on_every_isa([&](const Kernels& kernels) {
    std::vector<float> result = in;
    kernels.finish_logits(result.data(), 0.5f, 30.0f, static_cast<int64_t>(in.size()));
    return result;
  });
  for (size_t i = 0; i < in.size(); ++i) {
    if (std::isnan(in[i])) continue;
    const double expected = 30 * std::tanh(static_cast<double>(in[i]) * 0.5 / 30);
    ASSERT_NEAR(out[i], expected, 5 * 1.2e-7 * std::fabs(expected) + 1e-37) << in[i];
  }
  EXPECT_TRUE(std::isnan(out.back()));
}

TEST(Kernels, AddScaleAndClip) {
  const std::vector<float> a = random_values(75, 1, 3), b = random_values(75, 1, 4);
  const std::vector<float> sum = on_every_isa([&](const Kernels& kernels) {
    std::vector<float> result = a;
    kernels.add_scaled(result.data(), 0.37f, b.data(), 75);
    return result;
  });
  const std::vector<float> clipped = on_every_isa([&](const Kernels& kernels) {
    std::vector<float> result = a;
    result[7] = kNan;
    kernels.clip(result.data(), 0.5f, 75);
    kernels.scale(result.data(), 3.0f, 75);
    return result;
  });
  for (size_t i = 0; i < a.size(); ++i) {
    EXPECT_EQ(sum[i], std::fma(0.37f, b[i], a[i]));
    if (i != 7) {
      EXPECT_EQ(clipped[i], std::min(0.5f, std::max(-0.5f, a[i])) * 3.0f);
    }
  }
  EXPECT_TRUE(std::isnan(clipped[7]));
}

void check_norm(const NormArguments& arguments, const std::vector<float>& in) {
  const std::vector<float> out = on_every_isa([&](const Kernels& kernels) {
    std::vector<float> result(in.size());
    kernels.norm(arguments, in.data(), result.data());
    std::vector<float> in_place = in;
    kernels.norm(arguments, in_place.data(), in_place.data());
    EXPECT_TRUE(same_bits(in_place, result));
    return result;
  });
  const auto n = static_cast<size_t>(arguments.group);
  for (size_t begin = 0; begin < in.size(); begin += n) {
    double mean = 0, squares = 0;
    if (arguments.kind == NormKind::kLayer) {
      for (size_t i = 0; i < n; ++i) mean += in[begin + i];
      mean /= static_cast<double>(n);
    }
    for (size_t i = 0; i < n; ++i) squares += (in[begin + i] - mean) * (in[begin + i] - mean);
    const double factor = 1 / std::sqrt(squares / static_cast<double>(n) + arguments.eps);
    for (size_t i = 0; i < n; ++i) {
      const size_t w = arguments.weight_per_column ? begin + i : i;
      double expected = (in[begin + i] - mean) * factor;
      if (arguments.weight != nullptr) expected *= arguments.weight[w];
      if (arguments.bias != nullptr) expected += arguments.bias[w];
      // Sums of up to 4096 float32 terms in 16 lanes: some 256 roundings, mostly cancelling.
      ASSERT_NEAR(out[begin + i], expected, 4e-6 * (1 + std::fabs(expected))) << begin + i;
    }
  }
}

TEST(Kernels, NormsMatchTheirFormulas) {
  for (const NormKind kind : {NormKind::kRms, NormKind::kLayer}) {
    for (const int64_t cols : {1, 7, 16, 64, 80, 576, 4096}) {
      if (kind == NormKind::kLayer && cols == 1) continue;  // x - x over sqrt(eps)
      const auto n = static_cast<size_t>(cols);
      const std::vector<float> in = random_values(n, 2, 5), weight = random_values(n, 1, 6),
                               bias = random_values(n, 1, 7);
      check_norm({kind, 1e-5f, weight.data(), bias.data(), cols, cols, false}, in);
      check_norm({kind, 1e-5f, nullptr, nullptr, cols, cols, false}, in);
    }
    const std::vector<float> in = random_values(240, 2, 8), weight = random_values(240, 1, 9);
    check_norm({kind, 1e-6f, weight.data(), nullptr, 240, 80, false}, in);  // one weight for every head
    check_norm({kind, 1e-6f, weight.data(), nullptr, 240, 80, true}, in);   // weights of each head's own
  }
}

TEST(Kernels, SinCosAndLogarithm) {
  std::mt19937 random(10);
  for (int i = 0; i < 200000; ++i) {
    const float angle = static_cast<float>(
        std::ldexp(std::uniform_real_distribution<>(-1, 1)(random), static_cast<int>(random() % 30) - 4));
    const SinCos got = sin_cos(angle);
    ASSERT_NEAR(got.sin, std::sin(static_cast<double>(angle)), 6.1e-8) << angle;
    ASSERT_NEAR(got.cos, std::cos(static_cast<double>(angle)), 6.1e-8) << angle;
    const double x =
        std::ldexp(1 + std::uniform_real_distribution<>(0, 1)(random), static_cast<int>(random() % 80) - 40);
    ASSERT_NEAR(natural_log(x), std::log(x), 1e-15 * (1 + std::fabs(std::log(x)))) << x;
  }
  EXPECT_EQ(natural_log(1.0), 0.0);
  EXPECT_TRUE(std::isnan(sin_cos(kInfinity).sin));
  EXPECT_TRUE(std::isnan(sin_cos(kNan).cos));
}

// Merging nothing at score 0 with a total of 1 at score -x gives 2^-x.
TEST(Kernels, AttentionMergesByPowersOfTwo) {
  for (float x = 0; x < 140; x = x * 1.013f + 0.0071f) {
    const std::vector<float> merged = on_every_isa([&](const Kernels& kernels) {
      std::vector<float> values(16, 0.0f);
      const std::vector<float> next(16, 3.0f);
      float largest = 0, total = 0;
      kernels.attention_merge(largest, total, values.data(), -x, 1.0f, next.data(), 16);
      return std::vector<float>{largest, total, values[0], values[15]};
    });
    const double expected = std::exp2(-std::min(static_cast<double>(x), 125.0));
    ASSERT_EQ(merged[0], 0);
    // Half a unit for the polynomial's last sum, and what the inner ones leave.
    ASSERT_NEAR(merged[1], expected, 0.8 * 1.2e-7 * expected) << x;
    ASSERT_NEAR(merged[2], 3 * expected, 1.3 * 1.2e-7 * 3 * expected) << x;
    ASSERT_EQ(merged[3], merged[2]);
  }
}

TEST(Kernels, RopeTurnsPairs) {
  for (const RopeKind kind : {RopeKind::kHalf, RopeKind::kInterleaved}) {
    for (const int rotary_dim : {2, 16, 20, 64}) {
      const int head_dim = 70, n_heads = 3, half = rotary_dim / 2;
      const std::vector<float> in = random_values(static_cast<size_t>(head_dim * n_heads), 1, 11);
      std::vector<float> cos(static_cast<size_t>(half)), sin(static_cast<size_t>(half));
      for (int i = 0; i < half; ++i) {
        const SinCos angle = sin_cos(100.0f * std::pow(10000.0f, -static_cast<float>(i) / static_cast<float>(half)));
        cos[static_cast<size_t>(i)] = angle.cos;
        sin[static_cast<size_t>(i)] = angle.sin;
      }
      const std::vector<float> out = on_every_isa([&](const Kernels& kernels) {
        std::vector<float> result = in;
        kernels.rope({kind, rotary_dim, cos.data(), sin.data()}, result.data(), n_heads, head_dim);
        return result;
      });
      for (int h = 0; h < n_heads; ++h) {
        const auto base = static_cast<size_t>(h * head_dim);
        for (size_t i = 0; i < static_cast<size_t>(half); ++i) {
          const size_t first = base + (kind == RopeKind::kHalf ? i : 2 * i);
          const size_t second = kind == RopeKind::kHalf ? first + static_cast<size_t>(half) : first + 1;
          const double a = in[first], b = in[second];
          EXPECT_NEAR(out[first], a * cos[i] - b * sin[i], 4e-7);
          EXPECT_NEAR(out[second], b * cos[i] + a * sin[i], 4e-7);
        }
        for (int i = rotary_dim; i < head_dim; ++i) {
          EXPECT_EQ(out[base + static_cast<size_t>(i)], in[base + static_cast<size_t>(i)]);
        }
      }
    }
  }
}

TEST(Kernels, RopeTableFollowsFloat32Positions) {
  // The reference multiplies position and frequency in float32, then takes the cosine.
  const std::vector<float> frequencies{1.0f, 0.31622776f, 1e-3f};
  std::vector<Row> rows(2);
  rows[0].position[0] = 3;
  rows[1].position[0] = 131071;
  std::vector<float> table(12);
  const RopeTableStage stage{rows.data(), frequencies.data(), 3, 1.25f, table.data()};
  for (int64_t r = 0; r < 2; ++r) run_rope_table(&stage, r, 0);
  for (size_t r = 0; r < 2; ++r) {
    for (size_t i = 0; i < 3; ++i) {
      const float angle = static_cast<float>(rows[r].position[0]) * frequencies[i];
      EXPECT_NEAR(table[r * 6 + i], 1.25f * std::cos(angle), 3e-7);
      EXPECT_NEAR(table[r * 6 + 3 + i], 1.25f * std::sin(angle), 3e-7);
    }
  }
}

TEST(Kernels, QueryScaleGrowsByPeriods) {
  const QueryScaleParams params{0.1f, 8192.0f};
  EXPECT_EQ(query_scale_at(params, 0), 1.0f);
  EXPECT_EQ(query_scale_at(params, 8191), 1.0f);
  EXPECT_NEAR(query_scale_at(params, 8192), 1 + 0.1 * std::log(2.0), 1e-7);
  EXPECT_NEAR(query_scale_at(params, 100000), 1 + 0.1 * std::log(13.0), 1e-7);
}

TEST(Kernels, StoredElementsAreRoundedToNearestEven) {
  std::vector<float> values = sweep();
  std::mt19937 random(12);
  for (int i = 0; i < 100000; ++i) values.push_back(std::bit_cast<float>(static_cast<uint32_t>(random())));
  values.resize(values.size() / 64 * 64);
  for (const DType type : {DType::kF16, DType::kBF16}) {
    KvGroupConfig config{1, 1, 64, 64, type, 0, 1};
    auto cache = KvCache::create(config);
    ASSERT_TRUE(cache.ok());
    const KvLayer layer = cache->layer(0);
    for (const Isa isa : available_isas()) {
      for (size_t i = 0; i < values.size(); i += 64) {
        kernels_for(isa).store_kv(layer, 0, 0, 5, values.data() + i, values.data() + i);
        const auto* keys = reinterpret_cast<const uint16_t*>(layer.data);
        const auto* stored =
            reinterpret_cast<const uint16_t*>(layer.data + layer.value_offset) + 5 * layer.value_stride;
        for (size_t d = 0; d < 64; ++d) {
          const float x = values[i + d];
          const uint16_t expected = type == DType::kF16 ? float_to_f16(x) : float_to_bf16(x);
          ASSERT_EQ(stored[d], expected) << to_string(isa) << " " << x;
          ASSERT_EQ(keys[d * kBlockTokens + 5], expected) << to_string(isa) << " " << x;
        }
      }
    }
  }
}

}  // namespace
}  // namespace vedette::ops::cpu
