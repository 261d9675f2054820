// Writes a checkpoint as an MLX-layout folder: config.json, model.safetensors (or shards), tokenizer files.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "base/result.h"
#include "ops/types.h"
#include "weights/checkpoint.h"

namespace vedette::weights {

// Without options everything stays as precise as it is stored: float tensors keep their type, Q4_0, Q4_1, Q5_0, Q5_1
// and Q8_0 blocks become MLX groups of 32 with float16 scales, bit for bit the same numbers, and K-quants float16.
struct ConvertOptions {
  // Quantize 2-D weights of linear and embedding layers to this many bits (2, 3, 4, 5, 6, 8). Blocks of 32 that the
  // file already holds are repacked at their own width, not quantized again, where group is 32.
  std::optional<int> bits;
  std::optional<int> group;         // 32, 64 or 128; default 64, and 32 where the source has blocks of 32
  std::optional<ops::DType> dtype;  // of unquantized tensors and of new scales; without bits: of every tensor
  int64_t shard_bytes = 5'000'000'000;
  // Told the folder that is written, once it was made: it is to be removed if the process ends before it is whole.
  std::function<void(const std::string&)> begun;
};

// done and total bytes of the output.
using ConvertProgress = std::function<void(int64_t, int64_t)>;

// Writes to "<output_folder>.partial" and renames it, so the folder is whole or not there. Memory: one tensor's scales.
// Errors: kInvalidRequest (the output exists, options out of range), kUnavailable (disk), those of reading.
Status convert_checkpoint(const Checkpoint& checkpoint, const std::string& output_folder, const ConvertOptions& options,
                          const ConvertProgress& progress = {});

}  // namespace vedette::weights
