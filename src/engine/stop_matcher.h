// Stop strings in a stream of text.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace vedette::engine {

// Works byte by byte, so the result does not depend on how the text is cut. A stop fires at the byte that completes
// it; of several completed by one byte the longest counts. Text is held back exactly as long as it may still become
// a stop. One per sequence; engine thread.
class StopMatcher {
 public:
  explicit StopMatcher(std::vector<std::string> stops);  // none of them empty

  // Appends to `out` what of the text so far can no longer be part of a stop. True once a stop has matched; the
  // match and whatever follows are dropped.
  bool push(std::string_view text, std::string& out);
  // The text has ended: what was held is no stop.
  void finish(std::string& out);

  bool matched() const { return matched_ >= 0; }
  std::string_view stop() const { return matched() ? std::string_view(stops_[size_t(matched_)].text) : ""; }

 private:
  // Knuth-Morris-Pratt: `length` bytes of the stop are the longest proper prefix that the text ends with.
  struct Stop {
    std::string text;
    std::vector<size_t> fallback;  // [i]: the longest proper prefix of text[0..i] that it also ends with
    size_t length = 0;
  };

  bool advance(char byte);

  std::vector<Stop> stops_;
  std::string held_;
  int matched_ = -1;
};

}  // namespace vedette::engine
