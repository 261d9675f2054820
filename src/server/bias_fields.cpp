#include "server/bias_fields.h"

#include <cmath>
#include <limits>

#include "base/error.h"

namespace vedette::server {
namespace {

constexpr size_t kMostBiases = 100'000;

// A token of a bias: an id, or a text all of whose tokens get it.
Result<std::vector<int32_t>> biased_tokens(const std::string& path, const Json& token, const DialectContext& context) {
  if (token.is_int()) {
    if (token.as_int() < 0 || token.as_int() >= context.vocab_size)
      return wrong_value(path, fmt::format("a token id from 0 to {}", context.vocab_size - 1), &token);
    return std::vector<int32_t>{static_cast<int32_t>(token.as_int())};
  }
  if (!token.is_string()) return wrong_value(path, "a token id or a text", &token);
  return context.tokenizer.encode(token.as_string(), {.add_special = false, .parse_special = true});
}

Result<double> bias_value(const std::string& path, const Json& value) {
  if (value.is_bool() && !value.as_bool()) return -std::numeric_limits<double>::infinity();  // never
  if (!value.is_number() || std::isnan(value.as_double()) || std::abs(value.as_double()) > 1e6)
    return wrong_value(path, "a number from -1000000 to 1000000, or false", &value);
  return value.as_double();
}

}  // namespace

Status read_logit_bias(const Fields& fields, const DialectContext& context, sampling::SamplingParams& params) {
  const Json* bias = fields.get("logit_bias");
  if (bias == nullptr) return ok_status();
  auto add = [&](const std::string& path, const Json& token, const Json& value) -> Status {
    VEDETTE_ASSIGN_OR_RETURN(const std::vector<int32_t> ids, biased_tokens(path, token, context));
    VEDETTE_ASSIGN_OR_RETURN(const double number, bias_value(path, value));
    for (const int32_t id : ids) params.logit_bias.emplace_back(id, static_cast<float>(number));
    return ok_status();
  };
  const size_t count = bias->is_object() ? bias->as_object().size() : bias->is_array() ? bias->as_array().size() : 0;
  if (count > kMostBiases) return fields.wrong("logit_bias", fmt::format("at most {} entries", kMostBiases));
  if (bias->is_object()) {
    for (const auto& [key, value] : bias->as_object()) {
      const std::string path = "logit_bias." + key;
      const bool digits = !key.empty() && key.size() < 10 && key.find_first_not_of("0123456789") == std::string::npos;
      VEDETTE_RETURN_IF_ERROR(add(path, digits ? Json(std::stol(key)) : Json(key), value));
    }
    return ok_status();
  }
  if (!bias->is_array()) return fields.wrong("logit_bias", "an object or a list");
  for (size_t i = 0; i < count; ++i) {
    const Json& entry = bias->as_array()[i];
    const std::string path = fmt::format("logit_bias[{}]", i);
    if (!entry.is_array() || entry.as_array().size() != 2)
      return wrong_value(path, "a pair of a token and a number", &entry);
    VEDETTE_RETURN_IF_ERROR(add(path, entry.as_array()[0], entry.as_array()[1]));
  }
  return ok_status();
}

Result<std::optional<text::LanguageBias::Entries>> read_language_bias(const Fields& fields, std::string_view name) {
  using Entries = text::LanguageBias::Entries;
  const std::string path = fields.path(name);
  const auto named = [](const std::string& at, const Error& error) {
    return invalid_request(at, "{}: {}", at, error.message);
  };
  const Json* bias = fields.get(name);
  if (bias == nullptr) return std::optional<Entries>();
  if (bias->is_string()) {
    auto parsed = text::parse_language_bias(bias->as_string());
    if (!parsed.ok()) return named(path, parsed.error());
    return std::optional<Entries>(std::move(*parsed));
  }
  if (!bias->is_object()) return fields.wrong(name, "an object of languages, or a text as ja=-inf,zh=-10");
  Entries entries;
  for (const auto& [language, value] : bias->as_object()) {
    const std::string at = path + "." + language.substr(0, 40);
    const Result<double> number = value.is_string() ? text::parse_bias(value.as_string()) : bias_value(at, value);
    if (!number.ok()) return value.is_string() ? named(at, number.error()) : number.error();
    const Status set = text::set_language_bias(language, *number, entries);
    if (!set.ok()) return named(path, set.error());
  }
  return std::optional<Entries>(std::move(entries));
}

Json language_bias_json(const text::LanguageBias::Entries& entries) {
  Json out = Json::object();
  for (const auto& [language, bias] : entries)
    out.set(language, std::isinf(bias) ? Json("-inf") : Json(static_cast<double>(bias)));
  return out;
}

}  // namespace vedette::server
