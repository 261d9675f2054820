// What a server does besides answering: gives memory back under pressure, and lets an idle model sleep.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "server/core.h"
#include "server/live_jobs.h"

namespace vedette::server {

struct HousekeepingSettings {
  bool memory_guard = true;
  int64_t sleep_after_ms = -1;  // below 0: never
};

// Ticked by LiveJobs; must outlive it as a shared_ptr held by the server's owner.
class Housekeeping final : public LiveJob {
 public:
  Housekeeping(ServerCore& core, const HousekeepingSettings& settings) : core_(core), settings_(settings) {}
  void tick(int64_t now_ms) override;
  void abort(const Error&) override {}

 private:
  ServerCore& core_;
  const HousekeepingSettings settings_;
  int64_t next_check_ms_ = 0;
};

// Share of the last ten seconds, in percent, in which some task waited for memory; of /proc/pressure/memory's text.
std::optional<double> memory_pressure(std::string_view text);

}  // namespace vedette::server
