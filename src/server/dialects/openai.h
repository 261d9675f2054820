// What OpenAI's two older dialects share.
#pragma once

#include <string>

#include "base/json.h"
#include "server/dialect.h"
#include "server/fields.h"

namespace vedette::server {

// {prompt_tokens, completion_tokens, total_tokens, prompt_tokens_details, completion_tokens_details}.
Json openai_usage(const JobAnswer& answer);
// The end of a stream: a chunk with the usage where `usage` asks for it (`head` is a chunk without choices), and
// [DONE].
void end_openai_stream(Json head, bool usage, const JobAnswer& answer, std::string& out);
// The same after an error.
void fail_openai_stream(const Error& error, std::string& out);
// stream and stream_options of a request.
struct StreamOptions {
  bool stream = false;
  bool include_usage = false;
};
Result<StreamOptions> read_stream_options(const Fields& fields);
// response_format, with llama-server's grammar and json_schema beside it.
Status read_response_format(const Fields& fields, GenerateJob& job);
// enable_thinking, reasoning_effort, chat_template_kwargs; the most specific counts. Of every dialect with a template.
Status read_thinking_fields(const Fields& fields, Conversation& conversation);
// max_tokens by its names: from `least` (0 or 1) on, -1 for no limit.
Status read_max_tokens(const Fields& fields, std::span<const std::string_view> names, int64_t least, GenerateJob& job);
// A token as logprobs write it: text where it is UTF-8, and bytes.
std::string token_text(const text::Tokenizer& tokenizer, int32_t id);
Json token_bytes_json(const text::Tokenizer& tokenizer, int32_t id);
// [{token, logprob, bytes, top_logprobs: [{token, logprob, bytes}]}].
Json token_logprobs_json(const text::Tokenizer& tokenizer, std::span<const engine::TokenLogprobs> tokens);

}  // namespace vedette::server
