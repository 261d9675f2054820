// What convert writes: which tensors in which form, in which shard, at which offset.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/json.h"
#include "base/result.h"
#include "weights/checkpoint.h"
#include "weights/writer.h"

namespace vedette::weights {

enum class OutputForm : uint8_t { kDense, kAffineCopy, kRepack, kQuantize };

// A run of bytes in a shard's data section.
struct OutputRegion {
  std::string name;
  std::string type;  // safetensors dtype
  std::vector<int64_t> shape;
  int64_t bytes = 0;
  int64_t offset = 0;
};

struct OutputTensor {
  const StoredTensor* source = nullptr;
  OutputForm form = OutputForm::kDense;
  ops::DType dtype = ops::DType::kF32;  // of dense data, or of scales and biases
  int bits = 0;
  int group = 0;
  size_t shard = 0;
  OutputRegion data;            // the integers, or the dense values
  OutputRegion scales, biases;  // affine forms only
  int64_t bytes() const { return data.bytes + scales.bytes + biases.bytes; }
};

struct OutputPlan {
  std::vector<OutputTensor> tensors;
  std::vector<std::string> files;   // one per shard
  std::vector<int64_t> file_bytes;  // of data, per shard
  int64_t total_bytes = 0;
  Json config;  // with `quantization` as planned
};

// Errors (kInvalidRequest): bits, group or type that cannot be.
Result<OutputPlan> plan_output(const Checkpoint& checkpoint, const ConvertOptions& options);

// The JSON header of one shard, padded to a multiple of 8 bytes.
std::string safetensors_header(const OutputPlan& plan, size_t shard);
// model.safetensors.index.json.
Json shard_index(const OutputPlan& plan);

}  // namespace vedette::weights
