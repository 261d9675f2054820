// `doctor` and `models`: this machine and the models on it.
#include <fmt/format.h>

#include <algorithm>

#include "cli/context.h"
#include "cli/settings.h"
#include "cli/terminal.h"
#include "cli/version.h"
#include "engine/memory.h"
#include "server/doctor.h"

namespace vedette::cli {
namespace {

std::string bytes_text(const std::optional<int64_t>& bytes) {
  return bytes ? engine::format_bytes(*bytes) : std::string("unknown");
}

std::string model_table(const std::vector<server::InventoryRow>& rows) {
  size_t width = 5;
  for (const server::InventoryRow& row : rows) width = std::max(width, row.entry.repo_id.size());
  std::string out = fmt::format("{:<{}}  {:>10}  {:<12}  {:>8}  {:>10}  {:<7}  {}\n", "MODEL", width, "SIZE", "FAMILY",
                                "CONTEXT", "NEEDS", "FITS", "WHERE");
  for (const server::InventoryRow& row : rows) {
    const std::string family = row.family.empty() ? (row.model_type.empty() ? "?" : row.model_type) : row.family;
    const std::string fits = row.family.empty() ? "cannot" : !row.fits ? "unknown" : *row.fits ? "yes" : "no";
    out += fmt::format("{:<{}}  {:>10}  {:<12}  {:>8}  {:>10}  {:<7}  {}\n", row.entry.repo_id, width,
                       engine::format_bytes(row.entry.size_bytes), family,
                       row.context_length > 0 ? std::to_string(row.context_length) : "-",
                       row.need_bytes ? engine::format_bytes(*row.need_bytes) : "-", fits, row.source);
  }
  return out;
}

std::string doctor_text(const server::DoctorReport& report, bool with_models) {
  const server::Machine& machine = report.machine;
  std::string out = fmt::format("Version      {}\n", report.version);
  out += fmt::format("Platform     {} {} {}\n", machine.platform, machine.os_version, machine.machine);
  out += fmt::format("Processor    {}: {}\n", machine.cpu.empty() ? "unknown" : machine.cpu,
                     fmt::join(machine.isas, ", "));
  out +=
      fmt::format("Threads      {} processors, {} threads by default\n", machine.processors, machine.default_threads);
  out += fmt::format("Memory       {} available of {}\n", bytes_text(machine.available_bytes),
                     bytes_text(machine.memory_bytes));
  out += fmt::format("Huge pages   {}\n", machine.huge_pages.empty() ? "unknown" : machine.huge_pages);
  out += fmt::format("Store        {} ({}, {} free)\n", report.store.path,
                     report.store.writable ? "writable" : "not writable", bytes_text(report.store.free_bytes));
  for (const hub::ModelFolder& folder : report.folders)
    out += fmt::format("Models in    {} ({}): {}\n", folder.path, folder.kind,
                       folder.exists ? std::to_string(folder.models.size()) : "no such folder");
  if (!report.host.empty())
    out += fmt::format("Port         {}:{} is {}\n", report.host, report.port, report.port_free ? "free" : "in use");
  if (with_models && !report.models.empty()) out += "\n" + model_table(report.models);
  out += "\n";
  for (const server::DoctorProblem& problem : report.problems)
    out += fmt::format("Problem      {}\n             {}\n", problem.message, problem.remedy);
  if (report.problems.empty()) out += "No problems found.\n";
  return out;
}

}  // namespace

Result<int> run_doctor(Context& context) {
  server::DoctorQuestion question;
  question.version = std::string(kVersion);
  question.store = read_store(context.options);
  question.host = context.options.text("--host");
  if (question.host && question.host->ends_with(".sock")) question.host.reset();
  question.port = static_cast<uint16_t>(context.options.integer("--port").value_or(8080));
  read_verbosity(context.options);
  const bool json = context.options.flag("--json"), models = context.options.flag("--models");
  VEDETTE_RETURN_IF_ERROR(start(context));
  server::Inventory inventory;
  const server::DoctorReport report = server::examine(question, inventory);
  VEDETTE_RETURN_IF_ERROR(
      print(json ? server::to_json(report).dump(2) + "\n" : printable(doctor_text(report, models))));
  return report.problems.empty() ? kExitDone : kExitError;
}

Result<int> run_models(Context& context) {
  const hub::StoreSettings store = read_store(context.options);
  read_verbosity(context.options);
  const bool json = context.options.flag("--json");
  VEDETTE_RETURN_IF_ERROR(start(context));
  const auto available = engine::available_memory();
  const std::vector<hub::ModelFolder> folders = hub::model_folders(store);
  const std::vector<server::InventoryRow> rows =
      server::Inventory().take(folders, available.ok() ? std::optional<int64_t>(*available) : std::nullopt);
  if (json) {
    Json out = Json::array();
    for (const server::InventoryRow& row : rows) out.push_back(server::to_json(row));
    VEDETTE_RETURN_IF_ERROR(print(out.dump(2) + "\n"));
  } else if (rows.empty()) {
    std::string places;
    for (const hub::ModelFolder& folder : folders) places += (places.empty() ? "" : ", ") + folder.path;
    VEDETTE_RETURN_IF_ERROR(
        print(printable(fmt::format("no models in {}; `vedette download OWNER/NAME` fetches one\n", places))));
  } else {
    VEDETTE_RETURN_IF_ERROR(print(printable(model_table(rows))));
  }
  return kExitDone;
}

}  // namespace vedette::cli
