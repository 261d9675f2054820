// The one Decoder: loads a DecoderSpec's weights into a back end and runs steps.
//
// Owner and thread: the engine thread. The walk over the spec never looks at a value on the device and has
// no branch on data, so a back end may record and replay it.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "models/spec.h"
#include "ops/backend.h"
#include "weights/checkpoint.h"

namespace vedette::models {

// Layers that share a K/V row format and window share a group (block tables are per group).
struct KvGroupPlan {
  int window = 0;  // 0 = full
  int n_layers = 0;
  int n_kv_heads = 0;
  int head_dim = 0;
  int value_dim = 0;
  int64_t bytes_per_token(ops::DType type) const;  // all layers of the group
};

struct DecoderConfig {
  int max_rows = 512;       // per step
  int max_logit_rows = 64;  // per step
  ops::DType kv_type = ops::DType::kF16;
  std::vector<int64_t> kv_blocks;  // per group of plan_kv_groups(), blocks of ops::kBlockTokens tokens
};

// The K/V groups of a spec, in the order used by Step::block_tables.
std::vector<KvGroupPlan> plan_kv_groups(const DecoderSpec& spec);

// Bytes of activations for a config (for the memory estimate).
int64_t activation_bytes(const DecoderSpec& spec, const DecoderConfig& config);

class Decoder {
 public:
  // progress(done_bytes, total_bytes) is called on the caller's thread while weights load; may be empty.
  static Result<std::unique_ptr<Decoder>> load(const weights::Checkpoint& checkpoint, DecoderSpec spec,
                                               const DecoderConfig& config, std::unique_ptr<ops::Backend> backend,
                                               const std::function<void(int64_t, int64_t)>& progress = {});
  ~Decoder();

  // Runs one step. Refuses by name what rows ask for and is not there yet (embedding rows, adapters, ...).
  // Rows beyond max_rows / max_logit_rows are the caller's mistake.
  Status run(const ops::Step& step);
  // Logits [vocab_size] of the i-th row that wanted them, valid until the next run.
  std::span<const float> logits(int64_t index) const;

  const DecoderSpec& spec() const;
  const DecoderConfig& config() const;
  const std::vector<KvGroupPlan>& kv_groups() const;
  ops::Backend& backend();

 private:
  struct Impl;
  explicit Decoder(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace vedette::models
