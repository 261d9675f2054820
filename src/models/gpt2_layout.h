// What GPT-2 and GPT-BigCode share: their config keys, tensor names and layer shape.
#pragma once

#include <string>
#include <string_view>

#include "models/blocks.h"

namespace vedette::models {

// Reads n_embd, n_head, n_layer, n_inner, n_positions (or their newer names) and finds the tensor prefix,
// with or without "transformer.".
Dense read_gpt2(ConfigReader& config, std::string_view activation);

// Embedding, learned positions, head, final norm.
DecoderSpec start_gpt2(ConfigReader& config, const Dense& dense);

// ln_1, attention, ln_2, feed-forward under `prefix` ("transformer.h.0.").
LayerSpec gpt2_layer(const Dense& dense, const std::string& prefix, const AttentionSpec& attention, const MlpSpec& mlp);

}  // namespace vedette::models
