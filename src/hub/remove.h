// Removing a model from the store.
#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"
#include "hub/model_store.h"

namespace vedette::hub {

struct RemovalPlan {
  std::string repo_id, path;
  int64_t size_bytes = 0, files = 0;
};

// Only a folder <store>/<owner>/<name> itself; never a link, nor what lies outside the store by way of one. Errors:
// kInvalidRequest (no such name; a link), kNotFound (with where else the model lies).
Result<RemovalPlan> plan_removal(const std::string& repo_id, const StoreSettings& settings);
// Links inside are removed, what they lead to is not. An owner's folder left empty goes too.
Status remove_model(const RemovalPlan& plan);

}  // namespace vedette::hub
