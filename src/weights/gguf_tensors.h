// GGUF tensors under Hugging Face names, with what the converter did to them undone.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "weights/checkpoint.h"
#include "weights/gguf.h"
#include "weights/gguf_architectures.h"
#include "weights/storage.h"

namespace vedette::weights {

// Head counts that say how fused and permuted rows lie.
struct GgufHeads {
  int64_t heads = 0;
  int64_t kv_heads = 0;
  int64_t head_dim = 0;
  int64_t layers = 0;
};

// "blk.3.attn_q.weight" -> "model.layers.3.self_attn.q_proj.weight"; a name that no rule knows stays as it is.
std::string hf_tensor_name(const GgufArchitecture& architecture, std::string_view name);

// Adds the tensors of one file to the checkpoint. Errors (kCorruptFile): a name twice, rows that fit no head count.
Status add_gguf_tensors(const GgufFile& gguf, const GgufArchitecture& architecture, const GgufHeads& heads,
                        const std::string& file, Storage& storage, Checkpoint& checkpoint);

// Apertus keeps its activation's parameters in metadata (xielu.*); as tensors of each layer's mlp.act_fn.
Status add_xielu_tensors(const GgufFile& gguf, const GgufHeads& heads, const std::string& file, Storage& storage,
                         Checkpoint& checkpoint);

}  // namespace vedette::weights
