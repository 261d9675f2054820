#include "cli/fetch_model.h"

#include <fmt/format.h>

#include <optional>

#include "base/error.h"
#include "cli/terminal.h"

namespace vedette::cli {

Result<hub::DownloadReport> fetch_model(hub::DownloadRequest request, bool quiet) {
  std::optional<ProgressBar> bar(std::in_place, "fetching " + request.repo_id, !quiet);
  request.progress = [&bar, watcher = std::move(request.progress)](int64_t done, int64_t total) {
    bar->update(done, total);
    if (watcher) watcher(done, total);
  };
  if (!quiet) request.notice = [](const std::string& line) { print_notice(line); };
  return hub::download_model(request);
}

Result<hub::ResolvedModel> find_model(const std::string& name, const ModelSettings& settings, bool quiet,
                                      const hub::DownloadWatch& watch) {
  const std::string missing = hub::missing_model(name, settings.store);
  if (missing.empty() || settings.offline || missing == hub::kDefaultModel)
    return hub::resolve_model(name, settings.store);
  hub::DownloadRequest request;
  request.repo_id = missing;
  request.revision = settings.store.revision.value_or("main");
  request.store = settings.store;
  request.hub = settings.hub;
  request.stop = watch.stop;
  if (watch.progress) {
    request.progress = [&](int64_t done, int64_t total) { watch.progress(missing, done, total); };
    request.progress(0, 0);
  }
  const auto fetched = fetch_model(std::move(request), quiet);
  if (fetched.ok()) return hub::resolve_model(name, settings.store);
  Error error = fetched.error();
  if (error.kind == ErrorKind::kCancelled) return error;
  const auto nowhere = hub::resolve_model(name, settings.store);
  if (!nowhere.ok() && nowhere.error().kind == ErrorKind::kNotFound)
    error.message = fmt::format("{}; fetching it failed: {}", nowhere.error().message, error.message);
  error.field = "model";
  return error;
}

}  // namespace vedette::cli
