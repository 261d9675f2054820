// The models on this machine: what they are and whether they fit, from their headers alone.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "base/json.h"
#include "hub/model_store.h"

namespace vedette::server {

struct InventoryRow {
  hub::StoreEntry entry;
  std::string source;                      // "store", …
  std::string format, model_type, family;  // family "": this build cannot run it
  std::string problem;                     // why not, or why it cannot be opened
  int64_t parameters = 0;
  int64_t weight_bytes = 0;
  int64_t context_length = 0;
  std::optional<int64_t> need_bytes;  // weights, K/V of kInventoryContext tokens, activations, headroom
  std::optional<bool> fits;           // against the memory available
};

// What `fits` reckons with, lowered to the model's own context.
inline constexpr int64_t kInventoryContext = 8192;

// Remembers what it saw of a model that has no problem until its size or date changes. Thread-safe.
class Inventory {
 public:
  // Every model in the folders, by name; opens the headers of those it does not know. available: bytes, or unknown. A
  // name that an earlier folder has is left out, as it would never be found.
  std::vector<InventoryRow> take(const std::vector<hub::ModelFolder>& folders, const std::optional<int64_t>& available);

 private:
  InventoryRow row_of(const hub::StoreEntry& entry);

  std::mutex mutex_;
  std::map<std::string, InventoryRow> known_;  // by path; of the last inventory
};
Json to_json(const InventoryRow& row);

}  // namespace vedette::server
