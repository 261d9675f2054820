// From a request of a dialect to its answer, streamed or whole.
#pragma once

#include <memory>

#include "server/core.h"
#include "server/dialect.h"

namespace vedette::server {

// Translates, admits and answers; every refusal has its status and the dialect's envelope, before any header goes out.
// A client that goes away cancels its job, unless the stream is resumable; one that reads too slowly pauses it.
void generate(ServerCore& core, const Dialect& dialect, const HttpRequest& request,
              const std::shared_ptr<Responder>& responder);

// Only counts: {"input_tokens": N} or as `field` names it, through the same translation and template.
void count_tokens(ServerCore& core, const Dialect& dialect, const HttpRequest& request,
                  const std::shared_ptr<Responder>& responder);

// Answers with an error in the dialect's envelope (null: OpenAI's), with Retry-After where it helps.
void send_error(const Dialect* dialect, const Error& error, const HttpRequest& request,
                const std::shared_ptr<Responder>& responder, const HeaderList& headers);
void send_json(const Json& body, int status, const HeaderList& headers, const std::shared_ptr<Responder>& responder);

// The body as an object. Errors: kInvalidRequest with the position.
Result<Json> read_body(const HttpRequest& request);

}  // namespace vedette::server
