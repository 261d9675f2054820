// Memory a model needs and what this machine can give. Pure but for available_memory().
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "models/decoder.h"
#include "models/spec.h"
#include "ops/types.h"
#include "weights/checkpoint.h"

namespace vedette::engine {

struct MemoryEstimate {
  int64_t weight_bytes = 0;  // as stored (re-packed weights take about as much)
  int64_t kv_bytes = 0;      // every block of every group
  int64_t activation_bytes = 0;
  int64_t program_bytes = 0;    // program_bytes() below
  int64_t total_bytes = 0;      // kMemoryHeadroom * (weights + kv) + activations + program
  int64_t available_bytes = 0;  // available_memory() when it was made
  bool fits() const { return total_bytes <= available_bytes; }
};

// Rounding of tiles and blocks, allocator slack: 5 % of weights and K/V.
inline constexpr double kMemoryHeadroom = 1.05;

// What a model's process takes beside weights, K/V and activations: code, the scratch of threads, the tokenizer.
int64_t program_bytes(const weights::Checkpoint& checkpoint);

// Bytes a new allocation may take: MemAvailable, lowered by what the process's cgroups (v2, or v1's memory
// controller) still allow; reclaimable file cache counts as free. kUnavailable if the kernel tells neither.
Result<int64_t> available_memory();

// The same from the kernel files below `root` ("/" in production), for tests.
Result<int64_t> available_memory(const std::string& root);

// Blocks per K/V group so that `sequences` sequences of `context` tokens fit together, prefilled in chunks of
// `chunk` rows. A sliding group holds at most its window and one chunk per sequence.
std::vector<int64_t> blocks_for(std::span<const models::KvGroupPlan> groups, int64_t context, int64_t sequences,
                                int64_t chunk);
// Blocks beyond those of running sequences, so that the prefix cache can keep `tokens` tokens: every block of full
// groups, and of sliding ones a snapshot for each kTokensPerSnapshot.
std::vector<int64_t> cache_blocks_for(std::span<const models::KvGroupPlan> groups, int64_t tokens);
inline constexpr int64_t kTokensPerSnapshot = 2048;
int64_t kv_bytes(std::span<const models::KvGroupPlan> groups, std::span<const int64_t> blocks, ops::DType type);

MemoryEstimate estimate_memory(int64_t weight_bytes, int64_t kv_bytes, int64_t activation_bytes, int64_t available,
                               int64_t program_bytes = 0);

// What a model's K/V pool will be: blocks per group and the context they carry.
struct KvPlan {
  int64_t context_length = 0;
  int64_t sequences = 0;        // how many full contexts fit together, at least 1
  std::vector<int64_t> blocks;  // per group
  MemoryEstimate memory;
};

struct KvPlanInput {
  std::span<const models::KvGroupPlan> groups;
  ops::DType kv_type = ops::DType::kF16;
  int64_t weight_bytes = 0;
  int64_t activation_bytes = 0;
  int64_t program_bytes = 0;
  int64_t model_context = 0;   // trained limit
  int64_t context_length = 0;  // asked for; 0: the model's own, lowered to what fits
  int64_t max_sequences = 1;
  int64_t prefill_chunk = 512;
  // For the prefix cache beyond max_sequences * context: as many tokens as fit. -1: one more context, if that takes at
  // most half of what is left.
  int64_t cache_tokens = 0;
  int64_t kv_budget_bytes = 0;  // 0: whatever fits
  int64_t available_bytes = 0;
};

// Whether a model can have the context asked for (0: its own); kInvalidRequest otherwise.
Status check_context(int64_t wanted, int64_t model_context);

// Errors (kOutOfBudget): the weights alone, or one sequence of the context asked for, do not fit; (kInvalidRequest):
// a context longer than the model's. Both numbers and the remedy are in the message.
Result<KvPlan> plan_kv(const KvPlanInput& input);

std::string format_bytes(int64_t bytes);  // "1.25 GiB"

}  // namespace vedette::engine
