#include "server/doctor.h"

#include <fmt/format.h>
#include <netdb.h>
#include <sys/socket.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <filesystem>
#include <utility>

#include "engine/memory.h"

namespace vedette::server {
namespace fs = std::filesystem;
namespace {

constexpr int64_t kLittleMemory = int64_t{2} << 30;
constexpr int64_t kLittleDisk = int64_t{1} << 30;

// Tried by listening, for a moment. A name that cannot be resolved is not free either.
bool can_listen(const std::string& host, uint16_t port) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_PASSIVE | AI_NUMERICSERV;
  addrinfo* found = nullptr;
  if (getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &found) != 0) return false;
  bool free = false;
  const int descriptor = socket(found->ai_family, found->ai_socktype, found->ai_protocol);
  if (descriptor >= 0) {
    const int yes = 1;
    setsockopt(descriptor, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes));
    free = bind(descriptor, found->ai_addr, found->ai_addrlen) == 0 && listen(descriptor, 1) == 0;
    close(descriptor);
  }
  freeaddrinfo(found);
  return free;
}

void find_problems(DoctorReport& report) {
  const Machine& machine = report.machine;
  auto add = [&report](std::string code, std::string message, std::string remedy) {
    report.problems.push_back({std::move(code), std::move(message), std::move(remedy)});
  };
  if (machine.isas.size() < 2)
    add("no_vector_kernels",
        fmt::format("{} has neither AVX2, AVX-512 nor Arm's dot product; the portable kernels are slow", machine.cpu),
        "run on a processor with AVX2 (x86-64-v3) or Armv8.2 DotProd, or expect a few tokens per second");
  if (!machine.available_bytes)
    add("memory_unknown", "the kernel does not tell how much memory is available",
        "mount /proc, or give --memory-limit");
  else if (*machine.available_bytes < kLittleMemory)
    add("little_memory", fmt::format("{} of memory are available", engine::format_bytes(*machine.available_bytes)),
        "close other programs or raise the container's memory limit; small models need 2 GiB");
  if (machine.huge_pages == "never")
    add("no_huge_pages", "transparent huge pages are off, which costs speed with large models",
        "echo madvise | sudo tee /sys/kernel/mm/transparent_hugepage/enabled");
  if (!report.store.writable)
    add("store_not_writable", fmt::format("the model store {} cannot be written", report.store.path),
        "fix its permissions, or name another with --models-dir or VEDETTE_MODELS_DIR");
  else if (report.store.free_bytes && *report.store.free_bytes < kLittleDisk)
    add("little_disk",
        fmt::format("{} are free where the model store {} lies", engine::format_bytes(*report.store.free_bytes),
                    report.store.path),
        "remove models with `vedette rm`, or name another disk with --models-dir");
  if (!report.host.empty() && !report.port_free)
    add("port_in_use", fmt::format("{}:{} cannot be listened on", report.host, report.port),
        "end the program that listens there, or serve on another --port");
  for (const InventoryRow& row : report.models) {
    if (row.format.empty())
      add("broken_model", fmt::format("{}: {}", row.entry.repo_id, row.problem),
          "download it again with `vedette download --force`, or remove it");
  }
}

Json folders_json(const std::vector<hub::ModelFolder>& folders) {
  Json out = Json::array();
  for (const hub::ModelFolder& folder : folders) {
    Json row = Json::object();
    row.set("kind", folder.kind);
    row.set("path", folder.path);
    row.set("exists", folder.exists);
    row.set("models", static_cast<int64_t>(folder.models.size()));
    out.push_back(std::move(row));
  }
  return out;
}

}  // namespace

StoreHealth look_at_store(const hub::StoreSettings& settings) {
  StoreHealth out;
  std::error_code error;
  out.path = fs::absolute(hub::store_root(settings), error).string();
  fs::path folder = out.path;
  while (!fs::exists(folder, error) && folder.has_parent_path() && folder != folder.parent_path())
    folder = folder.parent_path();
  out.writable = fs::is_directory(folder, error) && access(folder.c_str(), W_OK | X_OK) == 0;
  struct statvfs disk{};
  if (statvfs(folder.c_str(), &disk) == 0)
    out.free_bytes = static_cast<int64_t>(disk.f_bavail) * static_cast<int64_t>(disk.f_frsize);
  return out;
}

DoctorReport examine(const DoctorQuestion& question, Inventory& inventory) {
  DoctorReport report;
  report.version = question.version;
  report.machine = look_at_machine();
  report.store = look_at_store(question.store);
  report.folders = hub::model_folders(question.store);
  report.models = inventory.take(report.folders, report.machine.available_bytes);
  if (question.host) {
    report.host = *question.host;
    report.port = question.port;
    report.port_free = can_listen(report.host, report.port);
  }
  find_problems(report);
  return report;
}

Json to_json(const DoctorReport& report) {
  Json problems = Json::array();
  for (const DoctorProblem& problem : report.problems) {
    Json row = Json::object();
    row.set("code", problem.code);
    row.set("message", problem.message);
    row.set("remedy", problem.remedy);
    problems.push_back(std::move(row));
  }
  Json store = Json::object();
  store.set("path", report.store.path);
  store.set("writable", report.store.writable);
  store.set("free_bytes", report.store.free_bytes ? Json(*report.store.free_bytes) : Json());
  Json environment = to_json(report.machine);
  environment.set("version", report.version);
  environment.set("store", std::move(store));
  environment.set("model_dirs", folders_json(report.folders));
  if (!report.host.empty()) {
    Json port = Json::object();
    port.set("host", report.host);
    port.set("port", static_cast<int64_t>(report.port));
    port.set("free", report.port_free);
    environment.set("port", std::move(port));
  }
  Json models = Json::array();
  for (const InventoryRow& row : report.models) models.push_back(to_json(row));
  Json out = Json::object();
  out.set("ok", report.problems.empty());
  out.set("problems", std::move(problems));
  out.set("environment", std::move(environment));
  out.set("models", std::move(models));
  return out;
}

}  // namespace vedette::server
