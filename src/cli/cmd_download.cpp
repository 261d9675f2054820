// `download` and `rm`: models of the store, from the hub and away.
#include <fmt/format.h>

#include <iostream>

#include "base/error.h"
#include "cli/context.h"
#include "cli/fetch_model.h"
#include "cli/settings.h"
#include "cli/terminal.h"
#include "engine/memory.h"
#include "hub/remove.h"

namespace vedette::cli {
namespace {

Result<std::string> repository_operand(const Context& context) {
  if (context.operands.empty())
    return invalid_request("--help", "{}: no model named; give OWNER/NAME", context.subcommand);
  return context.operands.front();
}

// Asks on the terminal; no answer is a no.
bool agrees(const hub::RemovalPlan& plan) {
  fmt::print(stderr, "remove {} ({} files, {}) from {}? [y/N] ", plan.repo_id, plan.files,
             engine::format_bytes(plan.size_bytes), printable(plan.path));
  std::fflush(stderr);
  std::string answer;
  if (!std::getline(std::cin, answer)) return false;
  return answer == "y" || answer == "Y" || answer == "yes";
}

}  // namespace

Result<int> run_download(Context& context) {
  const OptionValues& options = context.options;
  hub::DownloadRequest request;
  request.revision = options.text("--revision").value_or("main");
  request.store = read_store(options);
  request.hub = read_hub(options);
  request.local_dir = options.text("--local-dir").value_or("");
  request.include = options.texts("--include");
  request.exclude = options.texts("--exclude");
  request.force = options.flag("--force");
  const bool offline = options.flag("--offline"), quiet = read_verbosity(options).quiet;
  VEDETTE_RETURN_IF_ERROR(start(context));
  VEDETTE_ASSIGN_OR_RETURN(request.repo_id, repository_operand(context));
  if (offline)
    return invalid_request("--offline", "--offline ({}): nothing is downloaded; leave it out to fetch {}",
                           options.source("--offline"), request.repo_id);
  VEDETTE_ASSIGN_OR_RETURN(const hub::DownloadReport report, fetch_model(std::move(request), quiet));
  if (!quiet) {
    print_notice(report.from_cache ? std::string("the Hugging Face cache has it already; nothing was fetched")
                 : report.fetched_files == 0
                     ? fmt::format("{} files are there and whole; nothing was fetched", report.files)
                     : fmt::format("{} of {} files fetched, {} bytes", report.fetched_files, report.files,
                                   report.fetched_bytes));
  }
  VEDETTE_RETURN_IF_ERROR(print(path_text(report.path) + "\n"));
  return kExitDone;
}

Result<int> run_rm(Context& context) {
  hub::StoreSettings store = read_store(context.options);
  if (context.options.given("--revision")) store.revision = context.options.text("--revision");
  const bool yes = context.options.flag("--yes");
  const bool quiet = read_verbosity(context.options).quiet;
  VEDETTE_RETURN_IF_ERROR(start(context));
  VEDETTE_ASSIGN_OR_RETURN(const std::string repo_id, repository_operand(context));
  VEDETTE_ASSIGN_OR_RETURN(const hub::RemovalPlan plan, hub::plan_removal(repo_id, store));
  if (!yes) {
    if (!stdin_is_terminal())
      return invalid_request("--yes", "rm: standard input is no terminal to ask on; give --yes to remove {}", repo_id);
    if (!agrees(plan)) {
      print_notice("nothing was removed");
      return kExitError;
    }
  }
  VEDETTE_RETURN_IF_ERROR(hub::remove_model(plan));
  if (!quiet)
    print_notice(fmt::format("removed {} ({} files, {})", repo_id, plan.files, engine::format_bytes(plan.size_bytes)));
  return kExitDone;
}

}  // namespace vedette::cli
