// Texts that become prompts.
#pragma once

#include <string>
#include <string_view>

#include "base/json.h"
#include "base/result.h"

namespace vedette::cli {

// A turn of a conversation, as chat templates take them.
Json message(std::string_view role, std::string_view content);

// A prompt must be UTF-8 and not empty; `where` names it in messages.
Status check_prompt_text(std::string_view text, std::string_view where);
// A whole file, or standard input for "-". Errors name the file and the option it was given to.
Result<std::string> read_prompt_file(const std::string& path, std::string_view option = "--prompt-file");

}  // namespace vedette::cli
