// The request of OpenAI's Responses API.
#pragma once

#include <map>
#include <optional>
#include <string>

#include "base/json.h"
#include "base/result.h"
#include "server/dialect.h"

namespace vedette::server {

// What the answer repeats of its request, and what it needs later.
struct ResponsesRequest {
  Json echo;           // fields of the response object that the request set
  Json input_items;    // of this request alone
  Json history_items;  // of earlier turns (previous_response_id or conversation)
  std::optional<std::string> conversation;
  bool store = true;
  std::map<std::string, std::string> namespaces;  // of flattened tools, by name
};

// Fills the job. Errors name the field; what this server does not run (background mode, built-in tools that are forced,
// files) is refused by name, tools that are merely offered are left out with a warning.
Result<ResponsesRequest> read_responses_request(const Json& body, const DialectContext& context, GenerateJob& job);

}  // namespace vedette::server
