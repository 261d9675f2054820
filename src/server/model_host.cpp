#include "server/model_host.h"

#include <chrono>
#include <utility>

#include "base/error.h"

namespace vedette::server {

ModelHost::~ModelHost() = default;

Result<std::shared_ptr<ServedModel>> ModelHost::current() const {
  const std::scoped_lock lock(mutex_);
  if (model_) return model_;
  if (view_.state == State::kLoading)
    return unavailable("", "the model {} is loading; try again in a moment", view_.name);
  if (view_.state == State::kSleeping)
    return unavailable("", "the model {} sleeps; a generation request wakes it", view_.name);
  return unavailable("", "no model is loaded; POST /admin/load with {{\"model\": \"owner/name\"}} loads one");
}

Status ModelHost::load(ServedModelOptions options) {
  const State state = view().state;
  if (state != State::kReady && state != State::kSleeping) return load_over(std::move(options), std::nullopt);
  VEDETTE_ASSIGN_OR_RETURN(OpenedModel opened, open_model(options));
  return load_over(std::move(options), std::move(opened));
}

Status ModelHost::begin_load(const ServedModelOptions& options) {
  std::shared_ptr<ServedModel> old;  // freed outside the lock; jobs under way keep it until they end
  const std::scoped_lock lock(mutex_);
  if (view_.state == State::kLoading)
    return unavailable("model", "the model {} is loading already; wait until it is ready", view_.name);
  old = std::move(model_);
  model_ = nullptr;
  view_ = {State::kLoading, options.id, 0, 0, ""};
  return ok_status();
}

Status ModelHost::fail_load(const Error& error) {
  const std::scoped_lock lock(mutex_);
  view_.state = State::kFailed;
  view_.error = error.message;
  return error;
}

Status ModelHost::load_over(ServedModelOptions options, std::optional<OpenedModel> opened) {
  VEDETTE_RETURN_IF_ERROR(begin_load(options));
  const auto report = std::move(options.load.progress);
  options.load.progress = [this, &report](int64_t done, int64_t total) {
    {
      const std::scoped_lock lock(mutex_);
      view_.bytes_done = done;
      view_.bytes_total = total;
    }
    if (report) report(done, total);
  };
  auto model = opened ? load_model(std::move(*opened), options) : serve_model(options);
  options.load.progress = nullptr;
  if (!model.ok()) return fail_load(model.error());
  const std::scoped_lock lock(mutex_);
  model_ = std::move(*model);
  view_.state = State::kReady;
  options_ = std::move(options);
  return ok_status();
}

Result<std::shared_ptr<ServedModel>> ModelHost::wake() {
  if (view().state == State::kSleeping) {
    const std::scoped_lock waking(waking_);
    if (view().state == State::kSleeping) {
      ServedModelOptions options;
      {
        const std::scoped_lock lock(mutex_);
        options = options_;
      }
      VEDETTE_RETURN_IF_ERROR(load_over(std::move(options), std::nullopt));
    }
  }
  return current();
}

void ModelHost::sleep() {
  std::shared_ptr<ServedModel> old;  // freed outside the lock
  const std::scoped_lock lock(mutex_);
  if (!model_ || model_.use_count() > 1) return;
  old = std::move(model_);
  model_ = nullptr;
  view_.state = State::kSleeping;
}

bool ModelHost::unload(int wait_ms) {
  std::shared_ptr<ServedModel> old;
  {
    const std::scoped_lock lock(mutex_);
    if (!model_ && view_.state != State::kSleeping) return false;
    old = std::move(model_);
    model_ = nullptr;
    view_ = {};
  }
  const auto until = std::chrono::steady_clock::now() + std::chrono::milliseconds(wait_ms);
  while (old && old.use_count() > 1 && std::chrono::steady_clock::now() < until)
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  return true;
}

ModelHost::View ModelHost::view() const {
  const std::scoped_lock lock(mutex_);
  return view_;
}

}  // namespace vedette::server
