// The bytes of an answer's head.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "server/http.h"

namespace vedette::server::transport {

// What the request says about the form of its answer.
struct AnswerForm {
  bool http_1_0 = false;    // no chunks: a stream ends with the connection
  bool head = false;        // no body
  bool keep_alive = false;  // the connection stays open afterwards
};

// Whether answers of that status have a body at all (not 1xx, 204 and 304).
bool status_has_body(int status);
std::string_view reason_phrase(int status);

// Status line and fields, with the empty line. `length` absent: a stream, chunked unless HTTP/1.0. Framing fields among
// `headers` are left out, for they are written here; control characters in names and values become spaces.
std::string format_head(int status, std::string_view content_type, const HeaderList& headers,
                        std::optional<size_t> length, const AnswerForm& form);

}  // namespace vedette::server::transport
