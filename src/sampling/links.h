// The links of the chain, each in the file of its name, and the table that orders them (registry.cpp).
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sampling/sampling.h"

namespace vedette::sampling {

enum class LinkKind : uint8_t {
  kBias,      // always first
  kPenalty,   // may be ordered by name, as the next two
  kTruncate,  // not with mirostat
  kTemperature,
  kAdaptive,  // only where named, always last
  kInfill,    // only where named, not with mirostat
  kMirostat,  // last
};

// Biases, penalties and infill also run when the draw is greedy.
constexpr bool runs_greedy(LinkKind kind) {
  return kind == LinkKind::kBias || kind == LinkKind::kPenalty || kind == LinkKind::kInfill;
}

struct Link {
  const char* name;  // as in llama-server's `samplers`
  char letter;       // as in llama-server's sampler sequences; 0: none
  LinkKind kind;
  // Null where the parameters turn the link off. Params hold the seed.
  std::unique_ptr<Sampler> (*make)(const SamplingParams& params, int64_t vocab_size);
};

// Every link, in the default order.
std::span<const Link> links();

// The link that a name in SamplingParams::order means: case, '-' and '_' do not matter, and a few more spellings of
// llama-server's are known. Null for others.
const Link* find_link(std::string_view name);

// The names that find_link knows for messages.
std::string known_links();

// The links of a chain in the order in which they run. Expects validated params.
std::vector<const Link*> chain_links(const SamplingParams& params, bool greedy);

}  // namespace vedette::sampling
