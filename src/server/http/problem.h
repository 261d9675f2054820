// What the transport answers by itself: a status and one line, in the OpenAI envelope.
#pragma once

#include <string>

#include "server/http.h"

namespace vedette::server::transport {

struct Problem {
  int status = 400;
  std::string message;  // what was expected, what was found, what to do
};

HttpResponse problem_response(const Problem& problem);

}  // namespace vedette::server::transport
