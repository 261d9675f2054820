// Biases of a request: of tokens and of languages.
#pragma once

#include <optional>
#include <string_view>

#include "server/dialect.h"
#include "server/fields.h"
#include "text/language_bias.h"

namespace vedette::server {

// OpenAI's {"123": -100}, or llama-server's [[123, -100], ["text", false]].
Status read_logit_bias(const Fields& fields, const DialectContext& context, sampling::SamplingParams& params);

// {"ja": -10, "zh": false} or "ja=-10,zh=-inf"; false and "-inf": never. Absent: nothing.
Result<std::optional<text::LanguageBias::Entries>> read_language_bias(const Fields& fields, std::string_view name);
Json language_bias_json(const text::LanguageBias::Entries& entries);

}  // namespace vedette::server
