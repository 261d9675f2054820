// A dialect: one API's requests to GenerateJob, and job events to its stream or body. Pure translation, one file each
// in server/dialects/.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "base/json.h"
#include "base/result.h"
#include "server/http.h"
#include "server/job.h"
#include "text/tokenizer.h"

namespace vedette::server {

// What translation may look at besides the body.
struct DialectContext {
  const HttpRequest& request;
  std::string model;  // as answers name it
  const text::Tokenizer& tokenizer;
  int64_t vocab_size = 0;
  int64_t context_length = 0;
  const sampling::SamplingParams& defaults;  // sampling of requests that say nothing
  bool has_template = true;
  class ResponseStore* responses = nullptr;  // of the caller's scope
  std::string scope;
};

// Turns the events of one job into what its client reads. One thread at a time. Frames are appended to `out`.
class AnswerWriter {
 public:
  virtual ~AnswerWriter() = default;

  // Non-streaming: the body of the answer.
  virtual Json body(const JobStart& start, const JobAnswer& answer) = 0;

  // Streaming, in order: begin, event*, then finish or fail.
  virtual void begin(const JobStart& start, std::string& out) = 0;
  virtual void event(const JobEvent& event, const JobStart& start, std::string& out) = 0;
  virtual void finish(const JobStart& start, const JobAnswer& answer, std::string& out) = 0;
  virtual void fail(const Error& error, std::string& out) = 0;  // after headers
  virtual void keep_alive(std::string& out) = 0;                // while nothing else is sent

  // The id by which a client may cancel the answer while it is made; "": none.
  virtual std::string answer_id(const JobStart& start) const {
    (void)start;
    return "";
  }
  // An answer was completed, streamed or not (the Responses dialect stores it).
  virtual void completed(const JobStart& start, const JobAnswer& answer) {
    (void)start;
    (void)answer;
  }
};

struct Translation {
  GenerateJob job;
  std::unique_ptr<AnswerWriter> writer;
};

struct Dialect {
  std::string_view name;  // "chat", "completions", "responses", "messages", "native"
  // Errors: kInvalidRequest with the field's path; kUnsupported with the field's path.
  Result<Translation> (*translate)(const Json& body, const DialectContext& context);
  // The body of an error answer.
  Json (*error_body)(const Error& error, int status);
};

extern const Dialect kChatDialect, kCompletionsDialect, kResponsesDialect, kMessagesDialect, kNativeDialect,
    kInfillDialect;

// The id of a chat completion.
std::string chat_id(const JobStart& start);

// HTTP status of an error: 400, 404, 413, 422 never, 500, 501 (kUnsupported of a capability), 503.
int status_of(const Error& error);
// {"error":{"message","type","code","param"}} of OpenAI's routes, and of routes without a dialect.
Json openai_error(const Error& error, int status);

// One server-sent event: "event: NAME\n" if named, "data: …\n\n".
void append_sse(std::string& out, std::string_view event, std::string_view data);

// The sampling fields that all dialects share, by llama-server's and OpenAI's names (temperature, top_p, top_k, min_p,
// typical_p, dry_*, xtc_*, mirostat*, penalties, seed, logit_bias, ...): read from the body over `job.sampling`, which
// holds the defaults; also stop, ignore_eos, loop detection, thinking budgets, cache_prompt, priority. Known fields of
// a wrong type or range are errors (kInvalidRequest) with their path; null counts as absent.
Status read_sampling_fields(const Json& body, const DialectContext& context, GenerateJob& job);
// Top-level fields that `known` does not list go to job.ignored_fields.
void note_unknown_fields(const Json& body, std::span<const std::string_view> known, GenerateJob& job);
// The names read_sampling_fields reads.
std::span<const std::string_view> sampling_field_names();

// Entries of an object that is passed on as it is (template variables, extra_body).
inline constexpr size_t kMostPassedOn = 1024;

}  // namespace vedette::server
