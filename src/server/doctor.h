// Is this machine fit to serve, and if not, what to do: `vedette doctor` and GET /doctor.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/json.h"
#include "hub/model_store.h"
#include "server/machine.h"
#include "server/model_inventory.h"

namespace vedette::server {

struct DoctorQuestion {
  std::string version;
  hub::StoreSettings store;
  // Whether this address could be listened on; absent: not asked (a server's own port is its own).
  std::optional<std::string> host;
  uint16_t port = 0;
};

struct DoctorProblem {
  std::string code, message, remedy;
};

struct StoreHealth {
  std::string path;
  bool writable = false;              // it, or the nearest folder above it that exists
  std::optional<int64_t> free_bytes;  // of its disk
};

struct DoctorReport {
  std::string version;
  Machine machine;
  StoreHealth store;
  std::vector<hub::ModelFolder> folders;
  std::vector<InventoryRow> models;
  std::string host;  // "" if not asked
  uint16_t port = 0;
  bool port_free = true;
  std::vector<DoctorProblem> problems;
};

DoctorReport examine(const DoctorQuestion& question, Inventory& inventory);
StoreHealth look_at_store(const hub::StoreSettings& settings);
// {ok, problems[{code,message,remedy}], environment{…, model_dirs[]}, models[]}
Json to_json(const DoctorReport& report);

}  // namespace vedette::server
