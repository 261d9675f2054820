// What a spec needs besides weights: K/V slots and activation tensors. One place computes them, for the Decoder and
// for the memory estimate.
#pragma once

#include <cstdint>
#include <vector>

#include "models/decoder.h"
#include "models/spec.h"

namespace vedette::models {

// Where one attention part keeps its keys and values.
struct KvSlot {
  int group = 0;  // index into plan_kv_groups()
  int layer = 0;  // inside the group
};

struct KvPlan {
  std::vector<KvGroupPlan> groups;  // in order of first use
  std::vector<KvSlot> slots;        // one per attention part, in the order of the walk
};
KvPlan plan_kv(const DecoderSpec& spec);

// Roles of activation tensors; layers share a tensor of the same role and width.
enum class Role : uint8_t {
  kHidden,    // residual stream h
  kWorking,   // x of the walk
  kParallel,  // attention output of parallel blocks
  kQuery,
  kKey,
  kValue,
  kAttended,  // heads' outputs before the output projection
  kGate,
  kUp,
  kGathered,  // h of the rows that want logits
  kLogits,
};

struct ActivationTensor {
  Role role = Role::kHidden;
  int64_t cols = 0;
  int64_t rows(const DecoderConfig& config) const {
    return role == Role::kGathered || role == Role::kLogits ? config.max_logit_rows : config.max_rows;
  }
  bool operator==(const ActivationTensor&) const = default;
};
std::vector<ActivationTensor> plan_activations(const DecoderSpec& spec);

}  // namespace vedette::models
