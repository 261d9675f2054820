// `serve`: a model over HTTP until SIGINT or SIGTERM.
#include <fmt/format.h>
#include <malloc.h>
#include <pthread.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <thread>

#include "base/error.h"
#include "base/log.h"
#include "cli/context.h"
#include "cli/fetch_model.h"
#include "cli/memory_budget.h"
#include "cli/serve_settings.h"
#include "cli/terminal.h"
#include "hub/model_store.h"
#include "ops/cpu/cpu_backend.h"
#include "ops/cpu/pool.h"
#include "server/job_run.h"
#include "server/server.h"

namespace vedette::cli {
namespace {

constexpr int kGraceMs = 10'000;
constexpr int kWarmupTokens = 2;

// The last part of a name or path, without ".gguf".
std::string served_id(const std::string& name) {
  std::filesystem::path path(name);
  while (!path.has_filename() && path.has_parent_path()) path = path.parent_path();
  std::string id = path.filename().string();
  if (id.ends_with(".gguf")) id.erase(id.size() - 5);
  return id.empty() ? name : id;
}

// A model's name to all that loading it takes, with this server's settings.
Result<server::ServedModelOptions> resolve(const ServeSettings& settings, const std::string& name,
                                           const hub::DownloadWatch& watch = {}) {
  VEDETTE_ASSIGN_OR_RETURN(const hub::ResolvedModel resolved, find_model(name, settings.named, settings.quiet, watch));
  server::ServedModelOptions out = settings.model;
  out.path = resolved.path;
  out.id = out.aliases.empty() ? served_id(resolved.name) : out.aliases.front();
  out.load.check_memory = !settings.force;
  out.before_load = [&settings](const weights::Checkpoint& checkpoint, const server::ServedModel&,
                                engine::LoadOptions& load) -> Status {
    if (settings.estimate_memory) {
      MemoryQuery query;
      query.memory = settings.memory;
      query.load = load;
      query.tokens = 0;
      VEDETTE_RETURN_IF_ERROR(preflight_memory(checkpoint, std::move(query), settings.force, settings.quiet));
    }
    return apply_memory_limit(settings.memory, settings.force, checkpoint, load);
  };
  return out;
}

// SIGINT and SIGTERM are waited for, in place of a handler; blocked in every thread made after this.
sigset_t block_ending_signals() {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGINT);
  sigaddset(&signals, SIGTERM);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  return signals;
}

// A few tokens, so that the first request finds warm weights.
void warm_up(server::ServerCore& core) {
  const auto model = core.models.current();
  if (!model.ok()) return;
  server::GenerateJob job;
  job.prompts.emplace_back(std::string("Hello"));
  job.split_message = false;
  job.max_tokens = kWarmupTokens;
  job.cache_prompt = false;
  job.sampling.temperature = 0;
  if (auto run = server::JobRun::start(*model, std::move(job), "", core.executor); run.ok()) (*run)->listen({});
}

std::string ready_line(const server::ServedModel& model) {
  const engine::LoadReport& report = model.report;
  return fmt::format(
      "{} ({}) is ready: compute {}, {}, {} threads, K/V {}, context {}, {} sequences, loaded in {:.1f} s", model.id,
      model.family, ops::to_string(report.backend.compute), report.backend.isa, report.backend.threads,
      ops::to_string(report.kv_type), report.context_length, report.max_sequences, report.load_ms / 1000);
}

class Serving {
 public:
  explicit Serving(const ServeSettings& settings) : settings_(settings) {}

  Result<int> run(server::ServedModelOptions model) {
    const sigset_t signals = block_ending_signals();
    server::ServerSettings given = settings_.server;
    given.resolve = [this](const std::string& name, const hub::DownloadWatch& watch) {
      return resolve(settings_, name, watch);
    };
    VEDETTE_ASSIGN_OR_RETURN(server_, server::Server::start(std::move(given)));
    housekeeping_ = std::make_shared<server::Housekeeping>(server_->core(), settings_.housekeeping);
    server_->core().jobs.add(housekeeping_);
    if (!settings_.quiet) print_notice(fmt::format("listening on {}", server_->address()));
    std::thread loader;
    if (!settings_.no_model)
      loader = std::thread([this, options = std::move(model)]() mutable { load(std::move(options)); });
    int signal = 0;
    sigwait(&signals, &signal);
    if (loader.joinable()) {
      // A load under way has nothing to save.
      if (server_->core().models.view().state == server::ModelHost::State::kLoading) std::_Exit(128 + signal);
      loader.join();
    }
    if (failure_) return std::move(*failure_);
    if (!settings_.quiet) print_notice("stopping; requests under way have 10 seconds, a second signal ends at once");
    std::thread impatient([&signals] {
      int again = 0;
      sigwait(&signals, &again);
      std::_Exit(128 + again);
    });
    impatient.detach();
    server_->stop(kGraceMs);
    return kExitDone;
  }

 private:
  void load(server::ServedModelOptions options) {
    std::optional<ProgressBar> bar(std::in_place, "loading " + options.id, !settings_.quiet);
    options.load.progress = [&](int64_t done, int64_t total) { bar->update(done, total); };
    const Status loaded = server_->core().models.load(std::move(options));
    bar.reset();
    if (!loaded.ok()) {
      failure_ = loaded.error();
      kill(getpid(), SIGTERM);
      return;
    }
    if (const auto model = server_->core().models.current(); model.ok() && !settings_.quiet)
      print_notice(ready_line(**model));
    if (settings_.warmup) warm_up(server_->core());
  }

  const ServeSettings& settings_;
  std::unique_ptr<server::Server> server_;
  std::shared_ptr<server::Housekeeping> housekeeping_;
  std::optional<Error> failure_;  // written before the signal, read after it
};

// As llama-server prints it.
Status print_cache_list(const hub::StoreSettings& store) {
  const std::vector<hub::StoreEntry> entries = hub::list_store(hub::store_root(store));
  std::string out = fmt::format("number of models in cache: {}\n", entries.size());
  for (size_t i = 0; i < entries.size(); ++i) out += fmt::format("{:4}. {}\n", i + 1, entries[i].repo_id);
  return print(printable(out));
}

}  // namespace

Result<int> run_serve(Context& context) {
  VEDETTE_ASSIGN_OR_RETURN(ServeSettings settings, read_serve(context.options));
  const bool cache_list = context.options.flag("--cache-list"), completion = context.options.flag("--completion-bash");
  const auto log_file = context.options.text("--log-file");
  VEDETTE_RETURN_IF_ERROR(start(context));
  if (cache_list || completion) {
    VEDETTE_RETURN_IF_ERROR(completion ? print(options_completion_bash()) : print_cache_list(settings.named.store));
    return kExitDone;
  }
  if (log_file) VEDETTE_RETURN_IF_ERROR(log::set_file(*log_file));
  // Many threads with an allocation pool each would keep what all of them once used.
  mallopt(M_ARENA_MAX, 2);
  // All models of the process share these.
  const int threads = settings.model.load.threads;
  settings.model.load.pool = std::make_shared<ops::cpu::Pool>(threads > 0 ? threads : ops::cpu::default_thread_count());
  server::ServedModelOptions model;
  if (settings.no_model && !settings.named.model.empty())
    return invalid_request("--no-model", "--no-model and a model exclude each other; give one");
  if (!settings.no_model) {
    if (settings.named.model.empty()) settings.named.model = hub::kDefaultModel;
    VEDETTE_ASSIGN_OR_RETURN(model, resolve(settings, settings.named.model));
  }
  return Serving(settings).run(std::move(model));
}

}  // namespace vedette::cli
