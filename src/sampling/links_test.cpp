// Each link against its definition, computed the obvious way in double.
#include "sampling/links.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <random>

#include "sampling/best_of.h"
#include "sampling/noise.h"

namespace vedette::sampling {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();

std::vector<float> random_logits(size_t n, uint64_t seed, double deviation) {
  std::mt19937_64 random(seed);
  std::normal_distribution<double> normal(0, deviation);
  std::vector<float> logits(n);
  for (float& logit : logits) logit = random() % 16 == 0 ? -kInf : static_cast<float>(normal(random));
  return logits;
}

std::vector<Candidate> run(const char* name, const SamplingParams& params, const std::vector<float>& logits,
                           const History& history = {}) {
  std::vector<Candidate> candidates;
  for (size_t i = 0; i < logits.size(); ++i) candidates.push_back({static_cast<int32_t>(i), logits[i]});
  for (const Link& link : links())
    if (std::string(link.name) == name)
      if (auto sampler = link.make(params, static_cast<int64_t>(logits.size()))) sampler->apply(candidates, history);
  return candidates;
}

// Ids with a logit above -infinity.
std::vector<int32_t> kept(const std::vector<Candidate>& candidates) {
  std::vector<int32_t> ids;
  for (const Candidate& candidate : candidates)
    if (candidate.logit > -kInf) ids.push_back(candidate.id);
  return ids;
}

std::vector<double> softmax(const std::vector<float>& logits, double temperature = 1) {
  const double best = *std::max_element(logits.begin(), logits.end());
  std::vector<double> p;
  double sum = 0;
  for (const float logit : logits) sum += p.emplace_back(std::exp((logit - best) / temperature));
  for (double& one : p) one /= sum;
  return p;
}

double entropy(const std::vector<double>& p) {
  double h = 0;
  for (const double one : p) h -= one > 0 ? one * std::log(one) : 0;
  return h;
}

// Rows of many shapes. A definition in double and one in float may part where a candidate sits on the border, so
// `same` allows the one candidate by which they differ to lie within 1e-5 of it.
template <typename Check>
void for_rows(Check check) {
  for (const size_t n : {2u, 9u, 300u, 4000u})
    for (const double deviation : {0.2, 2.0, 9.0})
      for (uint64_t seed = 0; seed < 4; ++seed) {
        std::vector<float> logits = random_logits(n, seed * 100 + n, deviation);
        logits[seed % n] = 1;
        check(logits);
      }
}

TEST(TypicalP, KeepsTheNearestToTheEntropy) {
  for_rows([](const std::vector<float>& logits) {
    for (const double share : {0.0, 0.2, 0.7, 0.97}) {
      const std::vector<double> p = softmax(logits);
      const double h = entropy(p);
      std::vector<double> distance;
      for (const double one : p) distance.push_back(std::abs(-std::log(one) - h));
      std::vector<size_t> sorted(p.size());
      std::iota(sorted.begin(), sorted.end(), 0u);
      std::stable_sort(sorted.begin(), sorted.end(), [&](size_t a, size_t b) { return distance[a] < distance[b]; });
      double mass = 0, border = 0;
      for (const size_t id : sorted) {
        mass += p[id];
        border = distance[id];
        if (mass > share) break;
      }
      std::vector<bool> is_kept(p.size());
      for (const int32_t id : kept(run("typ_p", {.typical_p = share}, logits))) is_kept[static_cast<size_t>(id)] = true;
      for (size_t id = 0; id < p.size(); ++id) {
        if (std::abs(distance[id] - border) > 1e-3) {
          ASSERT_EQ(is_kept[id], distance[id] < border) << id << " of " << p.size();
        }
      }
    }
  });
}

TEST(TopNSigma, BansWhatLiesFarBelow) {
  for_rows([](const std::vector<float>& logits) {
    for (const double n : {0.3, 1.0, 2.5}) {
      double sum = 0, squares = 0, count = 0, best = -kInf;
      for (const float logit : logits) {
        if (logit == -kInf) continue;
        sum += logit;
        best = std::max<double>(best, logit);
        ++count;
      }
      for (const float logit : logits)
        if (logit > -kInf) squares += (logit - sum / count) * (logit - sum / count);
      const double floor = best - n * std::sqrt(squares / count);
      const std::vector<Candidate> after = run("top_n_sigma", {.top_n_sigma = n}, logits);
      ASSERT_EQ(after.size(), logits.size());
      for (size_t id = 0; id < logits.size(); ++id) {
        if (std::abs(logits[id] - floor) > 1e-5) {
          ASSERT_EQ(after[id].logit, logits[id] >= floor ? logits[id] : -kInf);
        }
      }
    }
  });
  EXPECT_EQ(kept(run("top_n_sigma", {.top_n_sigma = 0}, {1, 2, 3})).size(), 3u);
}

TEST(PLess, KeepsWhatReachesTheSumOfSquares) {
  for_rows([](const std::vector<float>& logits) {
    for (const double temperature : {0.3, 1.0, 4.0}) {
      const std::vector<double> p = softmax(logits, temperature);
      double squares = 0;
      for (const double one : p) squares += one * one;
      const std::vector<int32_t> ids = kept(run("p_less", {.temperature = temperature, .p_less = true}, logits));
      ASSERT_FALSE(ids.empty());
      for (size_t id = 0; id < p.size(); ++id) {
        if (std::abs(p[id] - squares) > 1e-5 * squares) {
          ASSERT_EQ(std::binary_search(ids.begin(), ids.end(), static_cast<int32_t>(id)), p[id] > squares);
        }
      }
    }
  });
  EXPECT_EQ(kept(run("p_less", {.temperature = 1, .p_less = true}, {1, 1, 1, 1})).size(), 4u);
  EXPECT_EQ(kept(run("p_less", {.temperature = 1e-30, .p_less = true}, {1, 3, 2})), (std::vector<int32_t>{1}));
}

TEST(Xtc, RemovesAllChoicesAboveTheThresholdButTheLeast) {
  const std::vector<float> logits = {std::log(0.3f), std::log(0.15f), -kInf, std::log(0.4f), std::log(0.15f)};
  const SamplingParams always{.temperature = 1, .xtc_probability = 1, .xtc_threshold = 0.1};
  EXPECT_EQ(kept(run("xtc", always, logits)), (std::vector<int32_t>{4}));  // of equals the last
  SamplingParams params = always;
  params.xtc_threshold = 0.2;
  EXPECT_EQ(kept(run("xtc", params, logits)), (std::vector<int32_t>{0, 1, 4}));
  params.xtc_threshold = 0.35;  // one choice alone stays
  EXPECT_EQ(kept(run("xtc", params, logits)), (std::vector<int32_t>{0, 1, 3, 4}));
  params.xtc_threshold = 0.51;
  EXPECT_EQ(kept(run("xtc", params, logits)).size(), 4u);
  params.xtc_threshold = 0;  // never the one without a logit
  EXPECT_EQ(kept(run("xtc", params, logits)), (std::vector<int32_t>{4}));
}

TEST(Xtc, CoinBelongsToThePosition) {
  const std::vector<float> logits = {1, 1, 0};
  const SamplingParams params{.temperature = 1, .xtc_probability = 0.5, .xtc_threshold = 0.1, .seed = 5};
  int removed = 0;
  for (int64_t position = 0; position < 400; ++position) {
    const size_t once = run("xtc", params, logits, {.position = position}).size();
    ASSERT_EQ(once, run("xtc", params, logits, {.position = position}).size());
    removed += once < 3;
  }
  EXPECT_NEAR(removed, 200, 40);
  SamplingParams other = params;
  other.choice = 1;
  int differ = 0;
  for (int64_t position = 0; position < 400; ++position)
    differ += run("xtc", params, logits, {.position = position}).size() !=
              run("xtc", other, logits, {.position = position}).size();
  EXPECT_GT(differ, 100);
}

TEST(DynamicTemperature, FollowsTheEntropy) {
  for_rows([](const std::vector<float>& logits) {
    const SamplingParams params{.temperature = 1.1, .dynatemp_range = 0.6, .dynatemp_exponent = 1.7};
    const double share = entropy(softmax(logits)) / std::log(static_cast<double>(logits.size()));
    const double temperature = 0.5 + 1.2 * std::pow(share, 1.7);
    const float best = *std::max_element(logits.begin(), logits.end());
    const std::vector<Candidate> after = run("temperature", params, logits);
    for (size_t id = 0; id < logits.size(); ++id) {
      if (logits[id] == -kInf) {
        ASSERT_EQ(after[id].logit, -kInf);
      } else {
        const double expected = (logits[id] - best) / temperature;
        ASSERT_NEAR(after[id].logit, expected, 1e-5 * std::abs(expected) + 1e-7);
      }
    }
  });
}

TEST(DynamicTemperature, Extremes) {
  // No entropy, and a range that reaches 0: the best alone.
  EXPECT_EQ(kept(run("temperature", {.temperature = 0.5, .dynatemp_range = 0.5}, {0, 500, -500})),
            (std::vector<int32_t>{1}));
  EXPECT_EQ(run("temperature", {.temperature = 1, .dynatemp_range = 0.5}, {2})[0].logit, 2);
  // All the entropy there is: the upper end. Exponent 0: the upper end always.
  EXPECT_FLOAT_EQ(run("temperature", {.temperature = 1, .dynatemp_range = 1, .dynatemp_exponent = 0}, {0, 4})[0].logit,
                  -2);
}

TEST(LanguageBias, AddsTheTable) {
  const auto table = std::make_shared<const std::vector<float>>(std::vector<float>{0, -kInf, 2});
  const std::vector<Candidate> after = run("language_bias", {.bias_table = table}, {1, 2, 3, 4});
  EXPECT_EQ(after[0].logit, 1);
  EXPECT_EQ(after[1].logit, -kInf);
  EXPECT_EQ(after[2].logit, 5);
  EXPECT_EQ(after[3].logit, 4);  // beyond the table
}

TEST(Mirostat1, KeepsAsManyAsTheFormulaSays) {
  for (const double tau : {0.5, 2.0, 5.0})
    for (const double deviation : {0.3, 2.0, 6.0}) {
      const std::vector<float> logits = random_logits(2000, 17, deviation);
      std::vector<float> sorted = logits;
      std::sort(sorted.begin(), sorted.end(), std::greater<>());
      double products = 0, squares = 0;
      for (size_t i = 0; i < 99; ++i) {
        const double t = std::log(static_cast<double>(i + 2) / static_cast<double>(i + 1));
        products += t * (sorted[i] - sorted[i + 1]);
        squares += t * t;
      }
      const double s = products / squares, e = s - 1;
      const double k = std::pow(e * std::pow(2, 2 * tau) / (1 - std::pow(2000, -e)), 1 / s);
      const double expected = std::clamp(std::floor(k), 1.0, 2000.0);
      const auto after = run("mirostat_1", {.temperature = 1, .mirostat = 1, .mirostat_tau = tau}, logits);
      EXPECT_NEAR(static_cast<double>(after.size()), expected, std::abs(k - std::round(k)) < 1e-6 ? 1 : 0);
    }
}

TEST(Mirostat1, RowsWithoutASlope) {
  const SamplingParams params{.temperature = 1, .mirostat = 1};
  EXPECT_EQ(run("mirostat_1", params, {2}).size(), 1u);
  EXPECT_GE(run("mirostat_1", params, std::vector<float>(50, 1.f)).size(), 1u);
  EXPECT_GE(kept(run("mirostat_1", params, {-kInf, 3, -kInf})).size(), 1u);
}

TEST(Mirostat2, KeepsWhatIsNotTooSurprising) {
  for_rows([](const std::vector<float>& logits) {
    for (const double tau : {0.0, 0.7, 3.0}) {
      const std::vector<double> p = softmax(logits);
      const std::vector<int32_t> ids =
          kept(run("mirostat_2", {.temperature = 1, .mirostat = 2, .mirostat_tau = tau}, logits));
      const size_t best = static_cast<size_t>(std::max_element(p.begin(), p.end()) - p.begin());
      for (size_t id = 0; id < p.size(); ++id) {
        const double surprise = -std::log2(p[id]);
        if (std::abs(surprise - 2 * tau) > 1e-4) {
          ASSERT_EQ(std::binary_search(ids.begin(), ids.end(), static_cast<int32_t>(id)),
                    surprise <= 2 * tau || id == best);
        }
      }
    }
  });
}

TEST(AdaptiveP, PrefersTheTarget) {
  const std::vector<float> logits = {std::log(0.5f), std::log(0.3f), std::log(0.2f), -kInf};
  const std::vector<Candidate> after = run("adaptive_p", {.temperature = 1, .adaptive_target = 0.3}, logits);
  for (size_t id = 0; id < 3; ++id) {
    const double d = std::abs(std::exp(logits[id]) - 0.3) / 0.3;
    EXPECT_NEAR(after[id].logit, 5 - 10 * d * d / (1 + d), 1e-5);
  }
  EXPECT_EQ(after[3].logit, -kInf);
}

TEST(PreciseExp, AgreesWithTheLibrary) {
  for (double x = -699; x < 699; x += 0.137) ASSERT_NEAR(precise_exp(x) / std::exp(x), 1.0, 4e-15) << x;
  EXPECT_EQ(precise_exp(0), 1.0);
  EXPECT_GT(precise_exp(-1e9), 0.0);
}

TEST(FindCandidate, BeforeAndAfterRemovals) {
  std::vector<Candidate> candidates = {{0, 1.f}, {1, 2.f}, {4, 3.f}, {9, 4.f}};
  EXPECT_EQ(find_candidate(candidates, 1)->logit, 2.f);
  EXPECT_EQ(find_candidate(candidates, 9)->logit, 4.f);
  EXPECT_EQ(find_candidate(candidates, 2), nullptr);
  EXPECT_EQ(find_candidate(candidates, 10), nullptr);
  EXPECT_EQ(find_candidate(candidates, -1), nullptr);
}

}  // namespace
}  // namespace vedette::sampling
