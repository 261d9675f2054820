#include "server/settings_fields.h"

#include <algorithm>
#include <functional>
#include <optional>
#include <type_traits>

#include "base/error.h"
#include "sampling/loop_detector.h"
#include "sampling/parameters.h"
#include "server/bias_fields.h"
#include "server/fields.h"

namespace vedette::server {
namespace {

using Defaults = GenerationDefaults;

// One setting: how it is shown, read and brought back.
struct Setting {
  std::string_view name;
  std::string_view type;
  std::optional<NumberRange> range;
  std::function<Json(const Defaults& defaults)> get;
  std::function<Status(const Fields& fields, Defaults& defaults)> set;
  std::function<void(const Defaults& from, Defaults& to)> copy;
};

template <typename T>
constexpr std::string_view type_of(const T&) {
  if constexpr (std::is_floating_point_v<T>) return "number";
  if constexpr (std::is_integral_v<T>) return "integer";
  if constexpr (std::is_same_v<T, Json> || std::is_same_v<T, text::LanguageBias::Entries>) return "object";
  if constexpr (std::is_same_v<T, std::optional<bool>>) return "boolean";
}

Json shown(const std::optional<bool>& value) {
  return value ? Json(*value) : Json();
}
Json shown(const text::LanguageBias::Entries& entries) {
  return language_bias_json(entries);
}
Json shown(const auto& value) {
  return Json(value);
}

Status store(const Fields& fields, std::string_view name, NumberRange range, auto& out) {
  return fields.store(name, range, out);
}
Status store(const Fields& fields, std::string_view name, NumberRange, Json& out) {
  VEDETTE_ASSIGN_OR_RETURN(const Json* value, fields.object(name));
  if (value != nullptr) out = *value;
  return ok_status();
}
Status store(const Fields& fields, std::string_view name, NumberRange, std::optional<bool>& out) {
  VEDETTE_ASSIGN_OR_RETURN(const auto value, fields.boolean(name));
  if (value) out = value;
  return ok_status();
}

Status store(const Fields& fields, std::string_view name, NumberRange, text::LanguageBias::Entries& out) {
  VEDETTE_ASSIGN_OR_RETURN(auto value, read_language_bias(fields, name));
  if (value) out = std::move(*value);
  return ok_status();
}

// at: the place within defaults.
template <typename At>
Setting setting(std::string_view name, At at, std::optional<NumberRange> range = {}) {
  const Defaults defaults;
  Setting out{name, type_of(at(defaults)), range, {}, {}, {}};
  out.get = [at](const Defaults& from) { return shown(at(from)); };
  out.set = [=](const Fields& fields, Defaults& to) {
    return store(fields, name, range.value_or(NumberRange{}), at(to));
  };
  out.copy = [at](const Defaults& from, Defaults& to) { at(to) = at(from); };
  return out;
}

std::vector<Setting> all_settings() {
  std::vector<Setting> out;
  for (const sampling::Parameter& parameter : sampling::parameters())
    std::visit(
        [&](auto member) {
          const auto at = [member](auto& defaults) -> auto& { return defaults.sampling.*member; };
          out.push_back(setting(parameter.names[0], at, parameter.range));
        },
        parameter.member);
  const NumberRange count = sampling_ranges::kCountOrAll, loop = sampling::kLoopNumber;
  out.push_back(setting("max_tokens", [](auto& defaults) -> auto& { return defaults.max_tokens; }, count));
  out.push_back(setting("reasoning_budget", [](auto& defaults) -> auto& { return defaults.thinking_budget; }, count));
  out.push_back(setting("max_pattern_size", [](auto& defaults) -> auto& { return defaults.loop.max_pattern; }, loop));
  out.push_back(setting("min_pattern_size", [](auto& defaults) -> auto& { return defaults.loop.min_pattern; }, loop));
  out.push_back(setting("min_count", [](auto& defaults) -> auto& { return defaults.loop.min_count; }, loop));
  out.push_back(setting("language_bias", [](auto& defaults) -> auto& { return defaults.language_bias.entries; }));
  out.push_back(setting("chat_template_kwargs", [](auto& defaults) -> auto& { return defaults.template_kwargs; }));
  out.push_back(setting("enable_thinking", [](auto& defaults) -> auto& { return defaults.thinking; }));
  return out;
}

const std::vector<Setting>& settings() {
  static const std::vector<Setting> all = all_settings();
  return all;
}

}  // namespace

Json settings_json(const GenerationDefaults& defaults) {
  Json out = Json::object();
  for (const Setting& setting : settings()) out.set(setting.name, setting.get(defaults));
  return out;
}

Json settings_schema() {
  Json out = Json::array();
  for (const Setting& setting : settings()) {
    Json entry = Json::object();
    entry.set("name", setting.name);
    entry.set("type", setting.type);
    if (setting.range) {
      entry.set("min", setting.range->min);
      entry.set("max", setting.range->max);
    }
    out.push_back(std::move(entry));
  }
  return out;
}

SettingsChange change_settings(const Json& values, bool replace, const GenerationDefaults& otherwise,
                               GenerationDefaults& defaults) {
  SettingsChange change;
  const Fields fields(values);
  for (const auto& [name, value] : values.as_object()) {
    const auto known = [&](const Setting& setting) { return setting.name == name; };
    if (std::ranges::none_of(settings(), known))
      change.rejected.emplace_back(name.substr(0, 80), "no such setting, or one that only a restart changes");
  }
  for (const Setting& setting : settings()) {
    const Json* value = values.find(setting.name);
    if (value == nullptr && !replace) continue;
    GenerationDefaults tried = defaults;
    if (value == nullptr || value->is_null()) {
      setting.copy(otherwise, tried);
    } else if (const Status done = setting.set(fields, tried); !done.ok()) {
      change.rejected.emplace_back(setting.name, done.error().message);
      continue;
    }
    if (const Status valid = sampling::validate(tried.sampling); !valid.ok()) {
      change.rejected.emplace_back(setting.name, valid.error().message);
      continue;
    }
    defaults = std::move(tried);
    change.applied.emplace_back(setting.name);
  }
  return change;
}

}  // namespace vedette::server
