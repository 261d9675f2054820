// `list`: the models in the store.
#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <ctime>
#include <filesystem>

#include "base/error.h"
#include "base/json.h"
#include "cli/context.h"
#include "cli/settings.h"
#include "cli/terminal.h"
#include "engine/memory.h"
#include "hub/model_store.h"

namespace vedette::cli {
namespace {

void sort_entries(std::vector<hub::StoreEntry>& entries, const std::string& key) {
  if (key == "size") {
    std::ranges::stable_sort(entries, std::ranges::greater{}, &hub::StoreEntry::size_bytes);
  } else if (key == "modified") {
    std::ranges::stable_sort(entries, std::ranges::greater{},
                             [](const hub::StoreEntry& entry) { return entry.modified.value_or(INT64_MIN); });
  }
}

Json to_json(const std::vector<hub::StoreEntry>& entries) {
  Json array = Json::array();
  for (const hub::StoreEntry& entry : entries) {
    Json row = Json::object();
    row.set("repo_id", entry.repo_id);
    row.set("size_bytes", entry.size_bytes);
    row.set("path", entry.path);
    row.set("modified", entry.modified ? Json(*entry.modified) : Json());
    array.push_back(std::move(row));
  }
  return array;
}

std::string date(const std::optional<int64_t>& seconds) {
  if (!seconds) return "-";
  const std::time_t time = static_cast<std::time_t>(*seconds);
  std::tm local{};
  if (localtime_r(&time, &local) == nullptr) return "-";
  return fmt::format("{:%Y-%m-%d %H:%M}", local);
}

std::string table(const std::vector<hub::StoreEntry>& entries, bool with_path) {
  size_t width = 5;
  for (const hub::StoreEntry& entry : entries) width = std::max(width, entry.repo_id.size());
  std::string out =
      fmt::format("{:<{}}  {:>10}  {:<16}{}\n", "MODEL", width, "SIZE", "MODIFIED", with_path ? "  PATH" : "");
  for (const hub::StoreEntry& entry : entries) {
    out += fmt::format("{:<{}}  {:>10}  {:<16}{}{}\n", entry.repo_id, width, engine::format_bytes(entry.size_bytes),
                       date(entry.modified), with_path ? "  " : "", with_path ? entry.path : "");
  }
  return out;
}

// "" where the working folder has no ./models with models in it.
std::string local_models(const std::string& key, bool with_path) {
  std::vector<hub::StoreEntry> entries = hub::list_store("models");
  if (entries.empty()) return "";
  sort_entries(entries, key);
  return "\nin ./models, which is looked at before the store:\n" + table(entries, with_path);
}

}  // namespace

Result<int> run_list(Context& context) {
  const hub::StoreSettings store = read_store(context.options);
  const Verbosity verbosity = read_verbosity(context.options);
  const bool json = context.options.flag("--json");
  const std::string key = context.options.text("--sort").value_or("name");
  VEDETTE_RETURN_IF_ERROR(start(context));
  if (json + verbosity.quiet + verbosity.verbose > 1)
    return invalid_request("--json", "--json, --quiet and --verbose exclude each other; give one");

  std::error_code error;
  if (!store.models_dir.empty() && !std::filesystem::is_directory(store.models_dir, error))
    return not_found("--models-dir", "--models-dir ({}): {}: expected a folder, found {}; name the model store's root",
                     context.options.source("--models-dir"), store.models_dir,
                     std::filesystem::exists(store.models_dir, error) ? "a file" : "nothing");
  std::vector<hub::StoreEntry> entries = hub::list_store(hub::store_root(store));
  sort_entries(entries, key);
  if (json) {
    VEDETTE_RETURN_IF_ERROR(print(to_json(entries).dump(2) + "\n"));
  } else if (verbosity.quiet) {
    std::string names;
    for (const hub::StoreEntry& entry : entries) names += entry.repo_id + "\n";
    VEDETTE_RETURN_IF_ERROR(print(names));
  } else {
    const std::string stored =
        entries.empty() ? fmt::format("no models in {}\n", hub::store_root(store)) : table(entries, verbosity.verbose);
    VEDETTE_RETURN_IF_ERROR(print(printable(stored + local_models(key, verbosity.verbose))));
  }
  return kExitDone;
}

}  // namespace vedette::cli
