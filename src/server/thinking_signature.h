// The signature of Anthropic's thinking blocks. Nothing is signed here, but reasoning that a client asked not to see
// travels in it, so that the next turn has it back: the template renders it, and the prefix cache finds it.
#pragma once

#include <string>
#include <string_view>

namespace vedette::server {

// Carries `hidden`, which may be empty.
std::string thinking_signature(std::string_view hidden);
// What a signature carries; empty where that is nothing, or where another server made it.
std::string hidden_thinking(std::string_view signature);

}  // namespace vedette::server
