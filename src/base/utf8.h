// UTF-8 helpers for untrusted bytes (Unicode 15, table 3-7: maximal subparts).
#pragma once

#include <string>
#include <string_view>

namespace vedette {

bool is_valid_utf8(std::string_view bytes);
// Each maximal ill-formed subsequence becomes U+FFFD.
std::string repair_utf8(std::string_view bytes);
void append_repaired(std::string_view bytes, std::string& out);
// Length of the longest prefix that does not end inside a character that more bytes could complete.
size_t complete_utf8_prefix(std::string_view bytes);

// For one line of a terminal or a log: repaired, and every control character shown as \xNN, but for line breaks, which
// are kept or become spaces.
enum class LineBreaks { kKeep, kSpaces };
std::string without_controls(std::string_view text, LineBreaks breaks);

// Text of at most `most` bytes: of a longer one, its two ends with " ... " between them, cut between characters.
std::string shortened(std::string_view text, size_t most);

}  // namespace vedette
