// Counter-based noise: Philox4x32-10 (Salmon, Moraes, Dror, Shaw: "Parallel random numbers: as easy as 1, 2, 3",
// SC 2011) and the Gumbel variates made from it. Plain IEEE double arithmetic, so the bits are the same everywhere.
#pragma once

#include <array>
#include <cstdint>

namespace vedette::sampling {

using PhiloxBlock = std::array<uint32_t, 4>;

inline PhiloxBlock philox4x32_10(PhiloxBlock counter, std::array<uint32_t, 2> key) {
  for (int round = 0; round < 10; ++round) {
    const uint64_t a = uint64_t{0xD2511F53u} * counter[0];
    const uint64_t b = uint64_t{0xCD9E8D57u} * counter[2];
    counter = {static_cast<uint32_t>(b >> 32) ^ counter[1] ^ key[0], static_cast<uint32_t>(b),
               static_cast<uint32_t>(a >> 32) ^ counter[3] ^ key[1], static_cast<uint32_t>(a)};
    key[0] += 0x9E3779B9u;
    key[1] += 0xBB67AE85u;
  }
  return counter;
}

// What a number is drawn for; part of the counter, so that purposes never share noise.
enum class Purpose : uint32_t { kToken = 0, kXtc = 1 };

struct NoiseKey {
  uint64_t seed = 0;
  uint32_t choice = 0;
  Purpose purpose = Purpose::kToken;
};

// The four words of tokens 4 * block .. 4 * block + 3 at a position.
inline PhiloxBlock noise_block(const NoiseKey& key, int64_t position, uint32_t block) {
  return philox4x32_10({block, static_cast<uint32_t>(position), key.choice, static_cast<uint32_t>(key.purpose)},
                       {static_cast<uint32_t>(key.seed), static_cast<uint32_t>(key.seed >> 32)});
}

// Natural logarithm of a positive normal number, error below 2 ulp. The same bits on every machine.
double portable_log(double x);

// u = (word + 1/2) / 2^32, exact in double and never 0 or 1.
inline double uniform(uint32_t word) {
  return (static_cast<double>(word) + 0.5) * 0x1p-32;
}

// g = -log(-log u).
inline double gumbel(uint32_t word) {
  return -portable_log(-portable_log(uniform(word)));
}

// g <= -log(1 - u) = log(2^32 / (~word + 1/2)) <= log 2 * (1 + leading ones of word): a cheap bound.
inline double gumbel_bound(uint32_t word) {
  return 0.69314718055994540 * (1 + __builtin_clz(~word | 1) + (word == ~0u));
}

// No draw exceeds this.
inline constexpr double kGumbelMax = 0.69314718055994540 * 33;

}  // namespace vedette::sampling
