// The options of `serve` as the structs of the server.
#pragma once

#include <optional>
#include <string>

#include "base/options.h"
#include "base/result.h"
#include "cli/settings.h"
#include "server/core.h"
#include "server/housekeeping.h"
#include "server/served_model.h"

namespace vedette::cli {

struct ServeSettings {
  server::ServerSettings server;
  server::HousekeepingSettings housekeeping;
  server::ServedModelOptions model;  // all but path and id
  ModelSettings named;
  MemorySettings memory;
  bool no_model = false;
  bool warmup = true;
  bool quiet = false;
  bool estimate_memory = false, force = false;
};

Result<ServeSettings> read_serve(const OptionValues& options);

}  // namespace vedette::cli
