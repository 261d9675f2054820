// GET and PATCH /v1/settings: the defaults of requests, while the server runs.
#include <mutex>

#include "base/error.h"
#include "server/fields.h"
#include "server/generate.h"
#include "server/route.h"
#include "server/settings_fields.h"

namespace vedette::server {
namespace {

// False where the answer is given already: the endpoint is off, or no model is loaded.
Result<std::shared_ptr<ServedModel>> model_of(const RouteCall& call) {
  if (!call.core.settings.endpoints.settings)
    return unsupported("", "/v1/settings is off; start the server with --settings");
  return call.core.models.current();
}

Json view_of(const GenerationDefaults& defaults) {
  Json out = Json::object();
  out.set("schema", settings_schema());
  out.set("values", settings_json(defaults));
  return out;
}

}  // namespace

void handle_settings(const RouteCall& call) {
  const auto model = model_of(call);
  if (!model.ok()) return send_error(nullptr, model.error(), call.request, call.responder, {});
  send_json(view_of(*(*model)->defaults.load()), 200, {}, call.responder);
}

// A plain object of values merges; {"op": "merge" | "replace", "values": {…}} says which. Valid ones are published in
// one swap, others are listed in `rejected`.
void handle_settings_change(const RouteCall& call) {
  const auto fail = [&](const Error& error) { send_error(nullptr, error, call.request, call.responder, {}); };
  const auto model = model_of(call);
  if (!model.ok()) return fail(model.error());
  const auto body = read_body(call.request);
  if (!body.ok()) return fail(body.error());
  const Fields fields(*body);
  const Json* values = &*body;
  bool replace = false;
  if (fields.has("op") || fields.has("values")) {
    const auto op = fields.string("op");
    if (!op.ok()) return fail(op.error());
    if (*op && **op != "merge" && **op != "replace") return fail(fields.wrong("op", "merge or replace"));
    replace = *op && **op == "replace";
    const auto inner = fields.object("values");
    if (!inner.ok()) return fail(inner.error());
    if (*inner == nullptr) return fail(fields.wrong("values", "an object"));
    values = *inner;
  }
  const std::scoped_lock lock(call.core.settings_mutex);
  GenerationDefaults defaults = *(*model)->defaults.load();
  const SettingsChange change = change_settings(*values, replace, *(*model)->first_defaults, defaults);
  (*model)->defaults = std::make_shared<const GenerationDefaults>(std::move(defaults));
  Json rejected = Json::object();
  for (const auto& [name, why] : change.rejected) rejected.set(name, why);
  Json applied = Json::array();
  for (const std::string& name : change.applied) applied.push_back(name);
  Json out = view_of(*(*model)->defaults.load());
  out.set("applied", std::move(applied));
  out.set("rejected", std::move(rejected));
  send_json(out, 200, {}, call.responder);
}

}  // namespace vedette::server
