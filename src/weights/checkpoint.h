// A checkpoint: configuration, named tensors and tokenizer, whatever the format on disk.
//
// Every reader checks its file whole before a byte of tensor data is used, and yields Hugging Face
// names and configuration keys. Nothing in a checkpoint can run code.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/json.h"
#include "base/result.h"
#include "ops/types.h"

namespace vedette::weights {

// One named tensor. A quantized MLX triple (weight, scales, biases) is one tensor named by its weight.
// For 1-D tensors matrix.rows = 1. shape is the logical shape (quantized: unpacked columns).
// Shapes are the file's: a GPT-2 weight is [in, out] in safetensors and [out, in] in GGUF, whose converter transposes
// it.
struct StoredTensor {
  std::vector<int64_t> shape;
  ops::HostMatrix matrix;
  std::string file;  // for messages
};

// Vocabulary embedded in a GGUF file (keys `tokenizer.ggml.*`).
struct GgufVocabulary {
  std::string model;  // "llama" (SentencePiece), "gpt2" (BPE), "bert" (WordPiece), ...
  std::string pre;    // BPE pre-tokenizer kind
  std::vector<std::string> tokens;
  std::vector<float> scores;        // may be empty
  std::vector<int32_t> types;       // 1 normal, 2 unknown, 3 control, 4 user defined, 5 unused, 6 byte; may be empty
  std::vector<std::string> merges;  // "left right"
  std::optional<int32_t> bos, eos, eot, eom, unknown, separator, padding, mask, cls;
  std::optional<bool> add_bos, add_eos, add_space_prefix, remove_extra_whitespaces, escape_whitespaces;
};

// A Hugging Face tokenizer: the files' texts.
struct HfTokenizer {
  std::string tokenizer_json;
  Json tokenizer_config;    // null if absent
  Json special_tokens_map;  // null if absent
};

using TokenizerSource = std::variant<std::monostate, HfTokenizer, GgufVocabulary>;

struct Checkpoint {
  std::string path;        // folder or file as given
  std::string format;      // "safetensors", "mlx", "gguf"
  Json config;             // config.json's keys; for GGUF translated from its metadata
  Json generation_config;  // null if absent
  std::map<std::string, StoredTensor, std::less<>> tensors;
  TokenizerSource tokenizer;
  std::string chat_template;  // Jinja source; empty if none
  // Present in the files, but of an element type that nothing here reads: name -> "file: dtype I64".
  std::map<std::string, std::string, std::less<>> unreadable;
  int64_t tensor_bytes = 0;             // as stored
  std::shared_ptr<const void> storage;  // keeps the mappings alive; borrow from tensors only while this lives

  const StoredTensor* find(std::string_view name) const;
};

struct OpenOptions {
  bool tensors = true;  // false: config and tokenizer only (list, inspect of headers still lists tensors)
};

// Opens a folder (safetensors, optional model.safetensors.index.json) or a `.gguf` file (split files are
// found by their -00001-of-0000N names). Errors: kNotFound, kCorruptFile, kUnsupported.
Result<Checkpoint> open_checkpoint(const std::string& path, const OpenOptions& options = {});

// Non-zero status if a mapped file of this checkpoint was truncated after it was opened (a fault was
// caught while reading it); check after load and after steps that read weights in place.
Status storage_intact(const Checkpoint& checkpoint);

// Expands a whole tensor to float32, logical rows in order.
Result<std::vector<float>> to_float(const StoredTensor& tensor);

}  // namespace vedette::weights
