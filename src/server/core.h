// What the routes of one server share.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "hub/model_store.h"
#include "server/event_feed.h"
#include "server/executor.h"
#include "server/gate.h"
#include "server/http.h"
#include "server/live_jobs.h"
#include "server/model_fetch.h"
#include "server/model_host.h"
#include "server/model_inventory.h"
#include "server/response_store.h"
#include "server/stream_store.h"

namespace vedette::server {

struct EndpointSettings {
  bool slots = true;
  bool metrics = false;
  bool props_post = false;    // POST /props is acknowledged
  bool settings = false;      // GET and PATCH /v1/settings
  bool show_prompts = false;  // prompt text in /slots
};

struct ServerSettings {
  HttpSettings http;
  GateSettings gate;
  EndpointSettings endpoints;
  int sse_ping_ms = 15'000;                    // a stream's silence before a keep-alive; below 0: never
  int decode_timeout_ms = 600'000;             // a job without progress is ended
  size_t most_unsent_bytes = size_t{1} << 20;  // a stream's unread bytes before its sequences pause
  int max_choices = 128;                       // n times prompts of one request
  std::string model_alias;                     // "": the model's own name
  ResponseStoreSettings responses;
  StreamStoreSettings streams;
  std::string version;
  hub::StoreSettings store;  // where models lie, for /doctor and /admin/models
  Resolver resolve;          // null: no other model is loaded
};

// Counters of the server's own; the engine has its own.
struct ServerCounters {
  std::atomic<int64_t> requests{0}, failures{0}, refused_busy{0}, cancelled{0};
  std::atomic<int64_t> last_request_ms{0};  // LiveJobs::now_ms()
};

struct ServerCore {
  explicit ServerCore(ServerSettings given);

  const ServerSettings settings;
  ServerCounters counters;
  ModelHost models;
  ModelFetch fetch;
  Inventory inventory;
  ResponseStore responses;
  StreamStore streams;
  std::shared_ptr<EventFeed> events;  // never null
  LiveJobs jobs;
  std::mutex settings_mutex;  // one change of settings at a time
  const int64_t started_at;   // seconds since 1970
  Executor executor;          // translates events; last, so that its tasks end while what they use is there
};

}  // namespace vedette::server
