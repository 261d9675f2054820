// The machine and the models on it: doctor, machine, the models that could be loaded, configurations of clients.
#include "server/machine.h"

#include <algorithm>
#include <cctype>
#include <mutex>

#include "engine/memory.h"
#include "server/doctor.h"
#include "server/generate.h"
#include "server/integrations.h"
#include "server/route.h"

namespace vedette::server {
namespace {

// Characters of a host and port; anything else is not put into a configuration.
bool is_plain_host(const std::string& host) {
  return !host.empty() && host.size() <= 300 && std::ranges::all_of(host, [](unsigned char c) {
    return std::isalnum(c) != 0 || c == '.' || c == '-' || c == '_' || c == ':' || c == '[' || c == ']';
  });
}

std::string base_url(const RouteCall& call) {
  const HttpSettings& http = call.core.settings.http;
  const std::string* host = call.request.header("host");
  const std::string place = host != nullptr && is_plain_host(*host) ? *host : "127.0.0.1:" + std::to_string(http.port);
  return (http.certificate_file.empty() ? "http://" : "https://") + place + http.api_prefix;
}

}  // namespace

void handle_doctor(const RouteCall& call) {
  send_json(
      to_json(examine({.version = call.core.settings.version, .store = call.core.settings.store}, call.core.inventory)),
      200, {}, call.responder);
}

// Speeds that nobody measured are null.
void handle_machine(const RouteCall& call) {
  Json out = to_json(look_at_machine());
  out.set("chip", *out.find("cpu"));
  out.set("bandwidth_gb_per_sec", Json());
  Json served = Json();
  if (const auto model = call.core.models.current(); model.ok()) {
    const engine::LoadReport& report = (*model)->report;
    const engine::EngineStats stats = (*model)->engine->stats();
    served.set("model", (*model)->id);
    served.set("threads", report.backend.threads);
    served.set("isa", report.backend.isa);
    served.set("compute", ops::to_string(report.backend.compute));
    served.set("weight_bytes_per_token", report.estimate.weight_bytes);
    served.set("kv_bytes", report.estimate.kv_bytes);
    served.set("decode_tokens_per_sec", stats.decode_seconds > 0
                                            ? Json(static_cast<double>(stats.generated_tokens) / stats.decode_seconds)
                                            : Json());
    served.set("ceiling_tokens_per_sec", Json());
  }
  out.set("served", std::move(served));
  send_json(out, 200, {}, call.responder);
}

void handle_admin_models(const RouteCall& call) {
  const auto available = engine::available_memory();
  const auto current = call.core.models.current();
  const std::string loaded_path = current.ok() ? (*current)->path : "";
  Json rows = Json::array();
  for (const InventoryRow& row :
       call.core.inventory.take(hub::model_folders(call.core.settings.store),
                                available.ok() ? std::optional<int64_t>(*available) : std::nullopt)) {
    Json json = to_json(row);
    json.set("installed", true);
    json.set("ready", !row.family.empty());
    json.set("loaded", !loaded_path.empty() && loaded_path.starts_with(row.entry.path));
    rows.push_back(std::move(json));
  }
  const StoreHealth store = look_at_store(call.core.settings.store);
  Json disk = Json::object();
  disk.set("path", store.path);
  disk.set("free_bytes", store.free_bytes ? Json(*store.free_bytes) : Json());
  Json out = Json::object();
  out.set("models", std::move(rows));
  out.set("loaded", current.ok() ? Json((*current)->id) : Json());
  out.set("disk", std::move(disk));
  out.set("available_memory_bytes", available.ok() ? Json(*available) : Json());
  send_json(out, 200, {}, call.responder);
}

void handle_admin_integrations(const RouteCall& call) {
  ServedAddress address;
  address.base_url = base_url(call);
  address.needs_key = !call.core.settings.gate.keys.empty();
  if (const auto model = call.core.models.current(); model.ok()) {
    address.model = (*model)->id;
    address.context_length = (*model)->engine->context_length();
    const int64_t cap = (*model)->defaults.load()->max_tokens_cap;
    address.max_output_tokens = cap > 0 ? cap : address.context_length;
  } else {
    address.model = call.core.models.view().name;
  }
  if (address.model.empty()) address.model = "MODEL";
  send_json(integrations(address), 200, {}, call.responder);
}

}  // namespace vedette::server
