// How many rows a prefill chunk may have for a step to stay short: a cancel takes effect between steps.
#pragma once

#include <algorithm>
#include <cstdint>

namespace vedette::engine {

// Measures the running model; results do not depend on it, since rows do not depend on their chunk. Engine thread.
class ChunkPace {
 public:
  // budget_ms: of one step; 0: no limit.
  explicit ChunkPace(double budget_ms) : budget_ms_(budget_ms) {}

  // Rows of the next chunk; 0: any number.
  int64_t rows() const {
    if (budget_ms_ <= 0) return 0;
    if (row_ms_ <= 0) return kFirstRows;
    return std::max(kLeastRows, static_cast<int64_t>(std::min(budget_ms_ / row_ms_, 1e6)));
  }

  // A step with a chunk took `ms` for `rows` rows. A slow step counts at once, a fast one by half, so that one hiccup
  // costs a few small chunks and a run of luck no long step.
  void measured(int64_t rows, double ms) {
    const double row_ms = ms / static_cast<double>(rows);
    row_ms_ = row_ms > row_ms_ ? row_ms : (row_ms_ + row_ms) / 2;
  }

 private:
  static constexpr int64_t kFirstRows = 64;
  // Below it a step costs about the same: reading the weights.
  static constexpr int64_t kLeastRows = 16;

  double budget_ms_;
  double row_ms_ = 0;
};

}  // namespace vedette::engine
