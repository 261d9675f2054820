// One HTTP/1.1 request from bytes, whatever pieces they come in.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string_view>

#include "server/http.h"
#include "server/http/problem.h"
#include "server/http/wire.h"

namespace vedette::server::transport {

// Stricter than the grammar where two readers of one message could differ (request smuggling): Content-Length once, not
// beside Transfer-Encoding; no folded fields, no bare CR or LF, no NUL; one Host. One owner, one thread.
class RequestParser {
 public:
  explicit RequestParser(const HttpSettings& settings);
  ~RequestParser();

  enum class Step { kNeedMore, kComplete, kProblem };
  // Reads from the start of `input`; `consumed` bytes are not needed again. With kNeedMore, the next input begins after
  // them and holds at least the rest. At kComplete, what is left of `input` belongs to the next request.
  Step feed(std::string_view input, size_t& consumed);

  bool started() const;           // a byte of the request has been seen
  bool has_header() const;        // the header is complete
  bool expects_continue() const;  // waits for "100 Continue" before it sends its body
  AnswerForm form() const;        // as far as it is known
  const Problem& problem() const;
  HttpRequest take();  // at kComplete

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// What a connection reads ahead; no step needs more input than this at once.
size_t most_input_bytes(const HttpSettings& settings);

}  // namespace vedette::server::transport
