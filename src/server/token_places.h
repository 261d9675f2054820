// Which tokens the pieces of an answer's text were written with.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "engine/engine.h"
#include "text/tokenizer.h"

namespace vedette::server {

// Content is told apart from reasoning, calls and their marks after the tokens were drawn, sometimes several tokens
// later; so tokens wait here until a piece of content claims them. A token that two pieces share goes to the first.
class TokenPlaces {
 public:
  explicit TokenPlaces(const text::Tokenizer& tokenizer) : tokenizer_(&tokenizer) {}

  void add(const std::vector<engine::TokenLogprobs>& drawn);
  // The tokens of a piece of content; those before it belong to no content.
  std::vector<engine::TokenLogprobs> take(std::string_view content);
  // All that wait belong to no content.
  void drop();

 private:
  struct Waiting {
    engine::TokenLogprobs token;
    size_t begin = 0, end = 0;  // in bytes_
  };

  const text::Tokenizer* tokenizer_;
  std::string bytes_;
  std::vector<Waiting> waiting_;
};

}  // namespace vedette::server
