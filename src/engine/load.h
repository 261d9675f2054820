// From a checkpoint to something that runs: spec, back end, K/V plan, decoder, engine.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "engine/engine.h"
#include "engine/memory.h"
#include "models/decoder.h"
#include "ops/backend.h"
#include "ops/types.h"
#include "weights/checkpoint.h"

namespace vedette::ops::cpu {
class Pool;
}

namespace vedette::engine {

enum class ComputeChoice : uint8_t { kAuto, kI8, kI16, kF32 };

struct LoadOptions {
  ComputeChoice compute = ComputeChoice::kAuto;  // auto: i16 below 1.5e9 parameters, i8 above
  std::optional<ops::DType> kv_type;             // absent: f16; f32 with compute f32; bf16 where f16 overflows
  int threads = 0;                               // 0: one per physical core this process may use
  std::shared_ptr<ops::cpu::Pool> pool;          // the process's threads, which then count; null: threads of its own
  std::string isa;                               // a name of --isa; empty: the best there is
  bool repack = true;
  int64_t context_length = 0;  // 0: the model's own, lowered to what fits
  int max_sequences = 1;       // decoded together
  int prefill_chunk = 512;     // rows
  int grant_interval = 16;
  int max_waiting = 32;
  bool prefix_cache = true;
  // K/V that the prefix cache has beyond max_sequences * context, as far as it fits; -1: one more context where that is
  // easily had.
  int64_t cache_tokens = -1;
  int snapshot_interval = 512;      // tokens between snapshots of sliding groups
  int64_t prefix_cache_tokens = 0;  // most tokens the prefix cache keeps; 0: what the pool allows
  double chunk_ms = 0;              // of a step with a prefill chunk; 0: no limit
  int64_t kv_budget_bytes = 0;      // 0: what max_sequences * context needs, lowered to fit memory
  // Rows of one step that may have logits, if more than max_sequences and kLeastLogitRows. Evaluation asks for more.
  int max_logit_rows = 0;
  bool check_memory = true;  // false: load even if the estimate says that it does not fit
  std::function<void(int64_t done, int64_t total)> progress;  // bytes of weights, on the caller's thread
};

// Prefills whose logits are wanted run in chunks of as many rows: below it a step costs about the same.
inline constexpr int kLeastLogitRows = 16;

// The arithmetic of a model of so many parameters.
ops::Compute choose_compute(ComputeChoice choice, int64_t parameters);

// The rows of a step and the K/V type that a model with this spec is loaded for; the blocks are planned later.
models::DecoderConfig decoder_config(const LoadOptions& options, ops::Compute compute, const models::DecoderSpec& spec);

// What was decided at load; printed at start.
struct LoadReport {
  std::string family;
  int64_t parameters = 0;
  ops::BackendInfo backend;
  ops::DType kv_type = ops::DType::kF16;
  int64_t context_length = 0;
  int64_t max_sequences = 0;
  std::vector<int64_t> kv_blocks;  // per group
  MemoryEstimate estimate;
  ops::MemoryUse memory;  // as the back end counts it
  std::vector<int32_t> eos;
  double load_ms = 0;
};

// Ready to run steps, without an engine thread: for evaluate(). Destroyed in reverse order of its members.
struct LoadedDecoder {
  std::shared_ptr<const void> storage;  // mappings that weights may still be read from
  std::unique_ptr<models::Decoder> decoder;
  EngineConfig config;
  LoadReport report;
};

struct LoadedModel {
  std::shared_ptr<const void> storage;
  std::unique_ptr<Engine> engine;
  LoadReport report;
};

Result<LoadedDecoder> load_decoder(const weights::Checkpoint& checkpoint, const LoadOptions& options);
Result<LoadedModel> load_model(const weights::Checkpoint& checkpoint, const LoadOptions& options);
// With the checkpoint's tokenizer, where the caller has made it already.
Result<LoadedModel> load_model(const weights::Checkpoint& checkpoint, const LoadOptions& options,
                               text::Tokenizer tokenizer);

// End-of-generation ids: eos_token_id (a number or a list) of generation_config.json and config.json, the
// tokenizer's own, and for GGUF eos, eot and eom. Sorted, unique. null and -1 stand for none. Errors: kCorruptFile,
// naming the file and the key.
Result<std::vector<int32_t>> end_tokens(const weights::Checkpoint& checkpoint,
                                        const std::optional<int32_t>& tokenizer_eos);

// Elements of all weights of a checkpoint, as they count before quantization.
int64_t parameter_count(const weights::Checkpoint& checkpoint);

}  // namespace vedette::engine
