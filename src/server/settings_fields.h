// The defaults of requests as GET and PATCH /v1/settings see them.
#pragma once

#include <string>
#include <vector>

#include "base/json.h"
#include "base/result.h"
#include "server/served_model.h"

namespace vedette::server {

// Values by name; each can be changed.
Json settings_json(const GenerationDefaults& defaults);
// What each is: [{name, type, min, max}].
Json settings_schema();

struct SettingsChange {
  std::vector<std::string> applied;
  std::vector<std::pair<std::string, std::string>> rejected;  // name, why
};
// Takes over every valid value; null brings back `otherwise`'s. replace: names that are absent are brought back too.
SettingsChange change_settings(const Json& values, bool replace, const GenerationDefaults& otherwise,
                               GenerationDefaults& defaults);

}  // namespace vedette::server
