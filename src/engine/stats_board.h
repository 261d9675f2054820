// Where the engine thread leaves its numbers for others.
#pragma once

#include <mutex>

#include "engine/engine.h"

namespace vedette::engine {

// One writer, any number of readers; each reads one consistent picture. Writing re-uses memory.
class StatsBoard {
 public:
  void publish(const EngineStats& stats) {
    const std::scoped_lock lock(mutex_);
    stats_ = stats;
  }
  EngineStats read() const {
    const std::scoped_lock lock(mutex_);
    return stats_;
  }

 private:
  mutable std::mutex mutex_;
  EngineStats stats_;
};

}  // namespace vedette::engine
