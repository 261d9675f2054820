// Loading and unloading while the server runs.
#include <optional>
#include <thread>

#include "base/error.h"
#include "server/fields.h"
#include "server/generate.h"
#include "server/route.h"

namespace vedette::server {
namespace {

constexpr int kUnloadMs = 30'000;

Json status_json(const ServerCore& core) {
  const ModelHost::View view = core.models.view();
  const std::optional<ModelFetch::View> fetch = core.fetch.view();
  using State = ModelHost::State;
  Json out = Json::object();
  out.set("ready", view.state == State::kReady);
  out.set("loading", view.state == State::kLoading || fetch.has_value());
  out.set("model", view.name.empty() ? Json() : Json(view.name));
  out.set("error", view.error.empty() ? Json() : Json(view.error));
  Json progress = Json::object();
  progress.set("bytes_done", view.bytes_done);
  progress.set("bytes_total", view.bytes_total);
  out.set("download", download_json(fetch));
  out.set("load", view.state == State::kLoading ? std::move(progress) : Json());
  return out;
}

}  // namespace

void handle_admin_status(const RouteCall& call) {
  send_json(status_json(call.core), 200, {}, call.responder);
}

// Validates, fetches what is not there, lets go of the model there is, loads the new one, and answers when it is ready.
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
  auto options = call.core.fetch.run(**name, call.core.settings.resolve, call.core.settings.store);
  if (!options.ok()) {
    Error error = std::move(options).error();
    const bool kept = error.kind == ErrorKind::kNotFound || error.kind == ErrorKind::kCancelled ||
                      error.kind == ErrorKind::kUnavailable;
    if (!kept) error.kind = ErrorKind::kInvalidRequest;
    error.field = "model";
    return fail(error);
  }
  if (*context && **context > 0) options->load.context_length = **context;
  call.core.events->end_streams();  // they tell of one model
  if (const Status loaded = call.core.models.load(std::move(*options)); !loaded.ok()) {
    Error error = loaded.error();
    error.field = *context && error.field == "context_length" ? "context_window" : "model";
    if (error.kind == ErrorKind::kCorruptFile) error.kind = ErrorKind::kInvalidRequest;  // another model would do
    return fail(error);
  }
  send_json(status_json(call.core), 200, {}, call.responder);
}

// Answers when the download has ended; weights that are being read are not called off.
void handle_admin_cancel(const RouteCall& call) {
  bool cleanup = false;
  if (!call.request.body.empty()) {
    const auto body = read_body(call.request);
    if (!body.ok()) return send_error(nullptr, body.error(), call.request, call.responder, {});
    const auto asked = Fields(*body).boolean("cleanup");
    if (!asked.ok()) return send_error(nullptr, asked.error(), call.request, call.responder, {});
    cleanup = asked->value_or(false);
  }
  const bool cancelled = call.core.fetch.cancel(cleanup);
  Json out = Json::object();
  out.set("success", cancelled);
  if (!cancelled) out.set("message", "nothing is being downloaded");
  send_json(out, 200, {}, call.responder);
}

void handle_admin_unload(const RouteCall& call) {
  Json out = Json::object();
  out.set("success", call.core.models.unload(kUnloadMs));
  send_json(out, 200, {}, call.responder);
}

}  // namespace vedette::server
