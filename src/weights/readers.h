// The readers behind open_checkpoint, one per format.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "weights/checkpoint.h"
#include "weights/quantization.h"
#include "weights/safetensors.h"
#include "weights/storage.h"

namespace vedette::weights {

// A `.gguf` file and, where its name says so, the other parts of its split.
Result<Checkpoint> open_gguf(const std::string& path, const OpenOptions& options);

// A folder with config.json and safetensors, or with one GGUF model.
Result<Checkpoint> open_folder(const std::string& path, const OpenOptions& options);

// One parsed safetensors file.
struct SafetensorsShard {
  std::string file;
  std::vector<SafetensorsEntry> entries;
};

// Tensors of all shards under their names: quantized triples joined, the rest as stored. Errors: a name in two shards,
// a triple that lacks a part.
Status add_safetensors(const std::vector<SafetensorsShard>& shards, const QuantizationConfig& quantization,
                       Storage& storage, Checkpoint& checkpoint);

// The same from memory, as the fuzz target calls it. `bytes` must outlive the checkpoint.
Result<Checkpoint> read_safetensors_bytes(std::span<const std::byte> bytes, const Json& config,
                                          const std::string& name);
Result<Checkpoint> read_gguf_bytes(std::span<const std::byte> bytes, const std::string& name);

// Whether there is something at the path, readable or not: only what is certainly absent is not.
bool may_exist(const std::string& path);

// Texts of a folder's tokenizer, chat template and generation config. Missing files are no error.
Status read_tokenizer_files(const std::string& folder, Checkpoint& checkpoint);

}  // namespace vedette::weights
