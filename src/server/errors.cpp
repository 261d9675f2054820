// Error kinds as HTTP statuses, and OpenAI's envelope.
#include "base/utf8.h"
#include "server/dialect.h"

namespace vedette::server {

int status_of(const Error& error) {
  switch (error.kind) {
    case ErrorKind::kInvalidRequest:
      return 400;
    case ErrorKind::kNotFound:
      return 404;
    case ErrorKind::kUnsupported:
      // A field that cannot be honoured is the request's fault; a capability that is not there is the server's.
      return error.field.empty() ? 501 : 400;
    case ErrorKind::kOutOfBudget:
      return 400;
    case ErrorKind::kUnavailable:
      return 503;
    case ErrorKind::kCancelled:
      return 499;
    case ErrorKind::kCorruptFile:
    case ErrorKind::kInternal:
      return 500;
  }
  return 500;
}

namespace {

const char* openai_type(int status) {
  switch (status) {
    case 401:
      return "authentication_error";
    case 403:
      return "permission_error";
    case 404:
      return "not_found_error";
    case 501:
      return "not_supported_error";
    case 503:
      return "unavailable_error";
    default:
      return status >= 500 ? "server_error" : "invalid_request_error";
  }
}

}  // namespace

Json openai_error(const Error& error, int status) {
  Json inner = Json::object();
  inner.set("message", error.message);
  inner.set("type", openai_type(status));
  inner.set("code", static_cast<int64_t>(status));
  inner.set("param", error.field.empty() ? Json() : Json(error.field));
  Json out = Json::object();
  out.set("error", std::move(inner));
  return out;
}

void append_sse(std::string& out, std::string_view event, std::string_view data) {
  if (!event.empty()) {
    out += "event: ";
    out += event;
    out += '\n';
  }
  out += "data: ";
  // Single tokens and texts of requests may hold bytes that are no UTF-8.
  if (is_valid_utf8(data))
    out += data;
  else
    out += repair_utf8(data);
  out += "\n\n";
}

}  // namespace vedette::server
