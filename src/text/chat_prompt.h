// Ids of a rendered chat, as transformers' apply_chat_template(tokenize=True) gives them.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "text/tokenizer.h"

namespace vedette::text {

// The template writes BOS itself where the model wants one, so none is added: special tokens in the text become their
// ids and nothing else is put around it. A prompt thus has BOS once, or not at all where the template leaves it out.
Result<std::vector<int32_t>> encode_chat(const Tokenizer& tokenizer, std::string_view rendered);

}  // namespace vedette::text
