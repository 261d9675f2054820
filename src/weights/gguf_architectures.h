// Which Hugging Face family a GGUF architecture is, and how its tensors are called there.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "base/json.h"
#include "base/result.h"
#include "weights/checkpoint.h"
#include "weights/gguf.h"

namespace vedette::weights {

struct TensorName {
  std::string_view gguf;
  std::string_view hf;
};

// What the GGUF converter did to the tensors of an architecture; undone when reading.
enum class FusedQkv : uint8_t {
  kKeep,     // Hugging Face has it fused, in the same order
  kSplit,    // Hugging Face has q, k, v apart
  kPerHead,  // Hugging Face interleaves q, k, v per head (GPT-NeoX)
};

class GgufConfig;  // gguf_config.h

struct GgufArchitecture {
  std::string_view name;              // general.architecture
  std::string_view model_type;        // config.json's
  std::string_view layers;            // prefix of layer n: "model.layers."
  std::span<const TensorName> top;    // whole names without .weight / .bias
  std::span<const TensorName> layer;  // inside a layer
  std::string_view eps_key;           // config key of the norm's epsilon
  bool rms = true;                    // else layer norm
  bool permuted = false;              // rows of q and k reordered for interleaved rotation
  bool norm_plus_one = false;         // 1 was added to norm weights
  FusedQkv fused_qkv = FusedQkv::kSplit;
  void (*extra)(GgufConfig&) = nullptr;  // further config keys
};

// Errors: kUnsupported naming the architecture and those that are supported.
Result<const GgufArchitecture*> find_architecture(const GgufFile& gguf, const std::string& file);
std::span<const GgufArchitecture> gguf_architectures();

}  // namespace vedette::weights
