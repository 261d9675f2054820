// Which sampling parameters can be carried out.
#include <algorithm>
#include <limits>
#include <type_traits>

#include "base/error.h"
#include "sampling/links.h"
#include "sampling/parameters.h"

namespace vedette::sampling {
namespace {

// A name of the caller's for a message: one short line of plain text.
std::string shown(std::string_view name) {
  constexpr size_t kLongest = 40;
  std::string text;
  for (const char c : name.substr(0, kLongest)) text += c >= ' ' && c <= '~' ? c : '?';
  return "'" + text + (name.size() > kLongest ? "...'" : "'");
}

Status check_numbers(const SamplingParams& params) {
  for (const Parameter& parameter : parameters()) {
    const auto check = [&](auto member) -> Status {
      const auto value = params.*member;
      const auto [min, max] = parameter.range;
      const double number = static_cast<double>(value);
      if (number >= min && number <= max) return ok_status();  // false for NaN
      constexpr bool kWhole = std::is_integral_v<std::remove_cv_t<decltype(value)>>;
      return invalid_request(std::string(parameter.names[0]), "{} is {}, must be {} from {} to {}", parameter.names[0],
                             value, kWhole ? "an integer" : "a number", min, max);
    };
    VEDETTE_RETURN_IF_ERROR(std::visit(check, parameter.member));
  }
  return ok_status();
}

bool is_bias(float bias) {
  return bias < std::numeric_limits<float>::infinity();  // false for NaN
}

Status check_biases(const SamplingParams& params) {
  for (const auto& [id, bias] : params.logit_bias) {
    if (id < 0) return invalid_request("logit_bias", "logit_bias: token id {} must not be negative", id);
    if (!is_bias(bias))
      return invalid_request("logit_bias", "logit_bias of token {} is {}, must be a finite number or -infinity", id,
                             bias);
  }
  if (!params.bias_table) return ok_status();
  for (size_t id = 0; id < params.bias_table->size(); ++id)
    if (!is_bias((*params.bias_table)[id]))
      return invalid_request("language_bias", "language_bias of token {} is {}, must be a finite number or -infinity",
                             id, (*params.bias_table)[id]);
  return ok_status();
}

Status check_order(const std::vector<std::string>& order) {
  std::vector<const Link*> seen;
  for (size_t i = 0; i < order.size(); ++i) {
    const Link* link = find_link(order[i]);
    if (link == nullptr)
      return invalid_request("samplers", "samplers names {} as number {}, must be of: {}", shown(order[i]), i + 1,
                             known_links());
    if (std::find(seen.begin(), seen.end(), link) != seen.end())
      return invalid_request("samplers", "samplers names '{}' twice, as number {}", link->name, i + 1);
    seen.push_back(link);
  }
  return ok_status();
}

}  // namespace

Status validate(const SamplingParams& params) {
  VEDETTE_RETURN_IF_ERROR(check_numbers(params));
  VEDETTE_RETURN_IF_ERROR(check_biases(params));
  return check_order(params.order);
}

}  // namespace vedette::sampling
