// The links of the chain, each in the file of its name, and the table that orders them (registry.cpp).
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "sampling/sampling.h"

namespace vedette::sampling {

// Whether a link also runs when the draw is greedy.
enum class LinkUse : uint8_t { kAlways, kDrawOnly };

struct Link {
  const char* name;
  // Null where the parameters turn the link off.
  std::unique_ptr<Sampler> (*make)(const SamplingParams& params, int64_t vocab_size);
  LinkUse use;
};

// In the order in which they run.
std::span<const Link> links();

}  // namespace vedette::sampling
