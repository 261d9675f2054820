// From a job's prompt to token ids: the chat template, or a stand-in where the checkpoint has none.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/json.h"
#include "base/result.h"
#include "server/job.h"
#include "server/served_model.h"

namespace vedette::server {

struct BuiltPrompt {
  std::string text;  // as rendered; for ids: their text
  std::vector<int32_t> ids;
  int64_t history_tokens = -1;     // before the mark that opens the reply
  std::vector<std::string> stop;   // texts that end a turn of the stand-in format
  std::vector<std::string> notes;  // what was changed so that the template takes it
};

// Renders and encodes. Tools are those of the job that tool_choice leaves. A template that refuses the conversation as
// it is (turns that do not alternate, a system turn it does not know) gets it with neighbouring turns of a role merged
// and the system text put before the first user turn. A template that knows no tools gets them in the system text.
// Errors (kInvalidRequest): the template's own, an empty conversation, ids outside the vocabulary, with the field.
Result<BuiltPrompt> build_prompt(const ServedModel& model, const JobPrompt& prompt, const GenerateJob& job);

// System texts without lines that clients change from request to request and that say nothing to the model: billing
// headers and token counts (docs/decisions). True if anything was dropped.
bool drop_volatile_lines(std::string& text);

}  // namespace vedette::server
