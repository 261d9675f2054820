#include "text/chat_prompt.h"

namespace vedette::text {

Result<std::vector<int32_t>> encode_chat(const Tokenizer& tokenizer, std::string_view rendered) {
  return tokenizer.encode(rendered, {.add_special = false, .parse_special = true});
}

}  // namespace vedette::text
