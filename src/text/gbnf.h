// llama.cpp's grammar notation (GBNF), translated to the Lark notation that the grammar compiler reads.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"

namespace vedette::text {

// Errors (kInvalidRequest) name line and column. What of a grammar is a regular language becomes terminals, the rest
// rules; token references (<name>, <[id]>) are kept.
Result<std::string> lark_from_gbnf(std::string_view grammar);

}  // namespace vedette::text
