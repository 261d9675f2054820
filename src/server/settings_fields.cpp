#include "server/settings_fields.h"

#include <algorithm>

#include "base/error.h"
#include "server/fields.h"

namespace vedette::server {
namespace {

using Defaults = GenerationDefaults;

// One setting: how it is shown, read and brought back.
struct Setting {
  std::string_view name;
  std::string_view type;  // "number", "integer", "boolean", "object", "strings"
  double min, max;
  Json (*get)(const Defaults& defaults);
  Status (*set)(const Fields& fields, std::string_view name, double min, double max, Defaults& defaults);
};

template <auto Member>
constexpr Setting sampling_number(std::string_view name, double min, double max) {
  return {name,
          "number",
          min,
          max,
          [](const Defaults& defaults) { return Json(defaults.sampling.*Member); },
          [](const Fields& fields, std::string_view key, double least, double most, Defaults& defaults) -> Status {
            VEDETTE_ASSIGN_OR_RETURN(const auto value, fields.number(key, least, most));
            if (value) defaults.sampling.*Member = *value;
            return ok_status();
          }};
}

template <auto Member>
constexpr Setting sampling_integer(std::string_view name, double min, double max) {
  return {name,
          "integer",
          min,
          max,
          [](const Defaults& defaults) { return Json(int64_t{defaults.sampling.*Member}); },
          [](const Fields& fields, std::string_view key, double least, double most, Defaults& defaults) -> Status {
            VEDETTE_ASSIGN_OR_RETURN(const auto value,
                                     fields.integer(key, static_cast<int64_t>(least), static_cast<int64_t>(most)));
            if (value)
              defaults.sampling.*Member = static_cast<std::decay_t<decltype(defaults.sampling.*Member)>>(*value);
            return ok_status();
          }};
}

template <auto Member>
constexpr Setting default_integer(std::string_view name, double min, double max) {
  return {name,
          "integer",
          min,
          max,
          [](const Defaults& defaults) { return Json(int64_t{defaults.*Member}); },
          [](const Fields& fields, std::string_view key, double least, double most, Defaults& defaults) -> Status {
            VEDETTE_ASSIGN_OR_RETURN(const auto value,
                                     fields.integer(key, static_cast<int64_t>(least), static_cast<int64_t>(most)));
            if (value) defaults.*Member = *value;
            return ok_status();
          }};
}

template <auto Member>
constexpr Setting loop_integer(std::string_view name) {
  return {name,
          "integer",
          0,
          4096,
          [](const Defaults& defaults) { return Json(defaults.loop.*Member); },
          [](const Fields& fields, std::string_view key, double least, double most, Defaults& defaults) -> Status {
            VEDETTE_ASSIGN_OR_RETURN(const auto value,
                                     fields.integer(key, static_cast<int64_t>(least), static_cast<int64_t>(most)));
            if (value) defaults.loop.*Member = static_cast<int>(*value);
            return ok_status();
          }};
}

using sampling::SamplingParams;
constexpr double kMostCount = 1e9;

const Setting kSettings[] = {
    sampling_number<&SamplingParams::temperature>("temperature", 0, 100),
    sampling_integer<&SamplingParams::top_k>("top_k", 0, kMostCount),
    sampling_number<&SamplingParams::top_p>("top_p", 0, 1),
    sampling_number<&SamplingParams::min_p>("min_p", 0, 1),
    sampling_number<&SamplingParams::typical_p>("typical_p", 0, 1),
    sampling_number<&SamplingParams::top_n_sigma>("top_n_sigma", -1, 1000),
    sampling_number<&SamplingParams::repetition_penalty>("repeat_penalty", 0.01, 100),
    sampling_integer<&SamplingParams::repeat_last_n>("repeat_last_n", -1, kMostCount),
    sampling_number<&SamplingParams::presence_penalty>("presence_penalty", -100, 100),
    sampling_number<&SamplingParams::frequency_penalty>("frequency_penalty", -100, 100),
    sampling_number<&SamplingParams::dry_multiplier>("dry_multiplier", 0, 100),
    sampling_number<&SamplingParams::dry_base>("dry_base", 1, 100),
    sampling_integer<&SamplingParams::dry_allowed_length>("dry_allowed_length", 0, kMostCount),
    sampling_integer<&SamplingParams::dry_penalty_last_n>("dry_penalty_last_n", -1, kMostCount),
    sampling_number<&SamplingParams::xtc_probability>("xtc_probability", 0, 1),
    sampling_number<&SamplingParams::xtc_threshold>("xtc_threshold", 0, 1),
    default_integer<&Defaults::max_tokens>("max_tokens", -1, kMostCount),
    default_integer<&Defaults::thinking_budget>("reasoning_budget", -1, kMostCount),
    loop_integer<&engine::LoopLimits::max_pattern>("max_pattern_size"),
    loop_integer<&engine::LoopLimits::min_pattern>("min_pattern_size"),
    loop_integer<&engine::LoopLimits::min_count>("min_count"),
    {"chat_template_kwargs", "object", 0, 0, [](const Defaults& defaults) { return defaults.template_kwargs; },
     [](const Fields& fields, std::string_view key, double, double, Defaults& defaults) -> Status {
       VEDETTE_ASSIGN_OR_RETURN(const Json* value, fields.object(key));
       if (value != nullptr) defaults.template_kwargs = *value;
       return ok_status();
     }},
    {"enable_thinking", "boolean", 0, 0,
     [](const Defaults& defaults) { return defaults.thinking ? Json(*defaults.thinking) : Json(); },
     [](const Fields& fields, std::string_view key, double, double, Defaults& defaults) -> Status {
       VEDETTE_ASSIGN_OR_RETURN(const auto value, fields.boolean(key));
       if (value) defaults.thinking = value;
       return ok_status();
     }},
};

Json one(std::string_view name, Json value) {
  Json out = Json::object();
  out.set(name, std::move(value));
  return out;
}

// Brings a setting back to what `otherwise` has.
void bring_back(const Setting& setting, const Defaults& otherwise, Defaults& defaults) {
  if (setting.name == "enable_thinking") {
    defaults.thinking = otherwise.thinking;
  } else if (setting.name == "chat_template_kwargs") {
    defaults.template_kwargs = otherwise.template_kwargs;
  } else {
    const Json value = one(setting.name, setting.get(otherwise));
    (void)setting.set(Fields(value), setting.name, -1e15, 1e15, defaults);
  }
}

}  // namespace

Json settings_json(const GenerationDefaults& defaults) {
  Json out = Json::object();
  for (const Setting& setting : kSettings) out.set(setting.name, setting.get(defaults));
  return out;
}

Json settings_schema() {
  Json out = Json::array();
  for (const Setting& setting : kSettings) {
    Json entry = Json::object();
    entry.set("name", setting.name);
    entry.set("type", setting.type);
    if (setting.min != setting.max) {
      entry.set("min", setting.min);
      entry.set("max", setting.max);
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
    if (std::none_of(std::begin(kSettings), std::end(kSettings), known))
      change.rejected.emplace_back(name.substr(0, 80), "no such setting, or one that only a restart changes");
  }
  for (const Setting& setting : kSettings) {
    const Json* value = values.find(setting.name);
    if (value == nullptr && !replace) continue;
    GenerationDefaults tried = defaults;
    if (value == nullptr || value->is_null()) {
      bring_back(setting, otherwise, tried);
    } else if (const Status done = setting.set(fields, setting.name, setting.min, setting.max, tried); !done.ok()) {
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
