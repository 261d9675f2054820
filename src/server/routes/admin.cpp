// Loading and unloading while the server runs.
#include <thread>

#include "base/error.h"
#include "server/fields.h"
#include "server/generate.h"
#include "server/route.h"

namespace vedette::server {
namespace {

constexpr int kUnloadMs = 30'000;

Json status_json(const ModelHost::View& view) {
  using State = ModelHost::State;
  Json out = Json::object();
  out.set("ready", view.state == State::kReady);
  out.set("loading", view.state == State::kLoading);
  out.set("model", view.name.empty() ? Json() : Json(view.name));
  out.set("error", view.error.empty() ? Json() : Json(view.error));
  Json progress = Json::object();
  progress.set("bytes_done", view.bytes_done);
  progress.set("bytes_total", view.bytes_total);
  out.set("load", view.state == State::kLoading ? std::move(progress) : Json());
  return out;
}

}  // namespace

void handle_admin_status(const RouteCall& call) {
  send_json(status_json(call.core.models.view()), 200, {}, call.responder);
}

// Validates, lets go of the model there is, loads the new one, and answers when it is ready.
void handle_admin_load(const RouteCall& call) {
  auto fail = [&](const Error& error) { send_error(nullptr, error, call.request, call.responder, {}); };
  const auto body = read_body(call.request);
  if (!body.ok()) return fail(body.error());
  const Fields fields(*body);
  const auto name = fields.string("model");
  if (!name.ok()) return fail(name.error());
  if (!*name || (*name)->empty()) return fail(fields.wrong("model", "owner/name, a folder or a file"));
  const auto context = fields.integer("context_window", 0, 1'000'000'000);
  if (!context.ok()) return fail(context.error());
  if (!call.core.settings.resolve) return fail(unsupported("", "this server loads no other models"));
  auto options = call.core.settings.resolve(**name);
  if (!options.ok()) {
    Error error = std::move(options).error();
    if (error.kind != ErrorKind::kNotFound) error.kind = ErrorKind::kInvalidRequest;
    error.field = "model";
    return fail(error);
  }
  if (*context && **context > 0) options->load.context_length = **context;
  call.core.events->end_streams();  // they tell of one model
  const Status loaded = call.core.models.load(std::move(*options));
  if (!loaded.ok()) return fail(loaded.error());
  send_json(status_json(call.core.models.view()), 200, {}, call.responder);
}

void handle_admin_unload(const RouteCall& call) {
  Json out = Json::object();
  out.set("success", call.core.models.unload(kUnloadMs));
  send_json(out, 200, {}, call.responder);
}

}  // namespace vedette::server
