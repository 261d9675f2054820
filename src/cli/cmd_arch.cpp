// `arch`: the model families of the registry.
#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "base/json.h"
#include "cli/context.h"
#include "cli/settings.h"
#include "cli/terminal.h"
#include "cli/version.h"
#include "models/registry.h"

namespace vedette::cli {
namespace {

Json strings(const std::vector<std::string_view>& words) {
  Json array = Json::array();
  for (std::string_view word : words) array.push_back(word);
  return array;
}

Json to_json(const models::Family& family) {
  Json backends = Json::object();
  backends.set("cpu", "supported");
  Json row = Json::object();
  row.set("id", family.id);
  row.set("display_name", family.display_name);
  row.set("category", family.category);
  row.set("model_types", strings(family.model_types));
  row.set("aliases", Json::array());
  row.set("gguf_architectures", strings(family.gguf_architectures));
  row.set("runtimes", strings({"run", "generate", "eval"}));
  row.set("modalities_in", strings({"text"}));
  row.set("output", "text");
  row.set("backends", std::move(backends));
  row.set("tensor_parallel", false);
  row.set("pipeline_parallel", false);
  row.set("drafters", Json::array());
  row.set("kv_modes", strings({"f16", "bf16", "f32"}));
  return row;
}

// Categories in the order of their first family.
std::string grouped_text() {
  std::vector<std::string_view> categories;
  for (const models::Family& family : models::families()) {
    if (std::ranges::find(categories, family.category) == categories.end()) categories.push_back(family.category);
  }
  std::string out = "Supported Model Architectures:\n";
  for (std::string_view category : categories) {
    out += fmt::format("\n{}:\n", category);
    for (const models::Family& family : models::families()) {
      if (family.category == category)
        out += fmt::format("- {} ({})\n", family.display_name, fmt::join(family.model_types, ", "));
    }
  }
  return out;
}

}  // namespace

Result<int> run_arch(Context& context) {
  read_verbosity(context.options);
  const bool json = context.options.flag("--json");
  VEDETTE_RETURN_IF_ERROR(start(context));
  if (!json) {
    VEDETTE_RETURN_IF_ERROR(print(grouped_text()));
    return kExitDone;
  }
  Json list = Json::array();
  for (const models::Family& family : models::families()) list.push_back(to_json(family));
  Json document = Json::object();
  document.set("vedette_version", kVersion);
  document.set("families", std::move(list));
  VEDETTE_RETURN_IF_ERROR(print(document.dump(2) + "\n"));
  return kExitDone;
}

}  // namespace vedette::cli
