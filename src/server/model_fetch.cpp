#include "server/model_fetch.h"

#include <utility>

#include "base/error.h"

namespace vedette::server {

Result<ServedModelOptions> ModelFetch::run(const std::string& name, const Resolver& resolve,
                                           const hub::StoreSettings& store) {
  hub::DownloadWatch watch;
  {
    const std::scoped_lock lock(mutex_);
    if (view_)
      return unavailable("model", "the model {} is on its way; wait until it is there or POST /admin/load/cancel",
                         view_->name);
    view_ = View{.name = name};
    stop_ = {};
    cleanup_ = false;
    watch.stop = stop_.get_token();
  }
  watch.progress = [this](const std::string& repo, int64_t done, int64_t total) {
    const std::scoped_lock lock(mutex_);
    view_->repo = repo;
    view_->bytes_done = done;
    view_->bytes_total = total;
  };
  auto options = resolve(name, watch);
  const std::scoped_lock lock(mutex_);
  // Too late for the download itself: whoever cancelled it is told that it ended all the same.
  if (options.ok() && stop_.stop_requested())
    options = vedette::cancelled("model", "loading {} was cancelled; its files are all there", name);
  const bool cancelled = !options.ok() && options.error().kind == ErrorKind::kCancelled;
  if (cancelled && cleanup_) {
    if (const Status removed = hub::discard_download(view_->repo, store); !removed.ok()) options = removed.error();
  }
  view_.reset();
  ++runs_;
  ended_.notify_all();
  return options;
}

bool ModelFetch::cancel(bool cleanup) {
  std::unique_lock lock(mutex_);
  if (!view_) return false;
  cleanup_ |= cleanup;
  stop_.request_stop();
  ended_.wait(lock, [this, run = runs_] { return runs_ != run; });
  return true;
}

Json download_json(const std::optional<ModelFetch::View>& fetch) {
  if (!fetch || fetch->repo.empty()) return {};
  Json out = Json::object();
  out.set("repo", fetch->repo);
  out.set("bytes_done", fetch->bytes_done);
  out.set("bytes_total", fetch->bytes_total);
  return out;
}

std::optional<ModelFetch::View> ModelFetch::view() const {
  const std::scoped_lock lock(mutex_);
  return view_;
}

}  // namespace vedette::server
