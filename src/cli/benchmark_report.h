// What `vedette benchmark` measured, as JSON and as text.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/json.h"
#include "cli/statistics.h"
#include "models/decoder.h"
#include "ops/types.h"

namespace vedette::cli {

struct BenchmarkPoint {
  enum class Kind : uint8_t { kPrefill, kDecode, kRows } kind = Kind::kDecode;
  int64_t tokens = 0;  // of the prompt; decoded, of each sequence; rows of a step
  int64_t depth = 0;   // tokens before them
  int64_t sequences = 1;

  std::string name() const;  // "pp512", "tg128", "tg128 x8 @4096", "rows8 @4096"
};

struct BenchmarkRun {
  BenchmarkPoint point;
  int64_t steps = 1;            // of one repetition
  std::vector<double> seconds;  // of each repetition

  int64_t tokens() const { return point.tokens * point.sequences; }  // of one repetition
  Summary tok_s() const;
  Summary ms_per_step() const;
};

struct BenchmarkReport {
  std::string version, date;  // date: UTC, "2026-01-31T12:00:00Z"
  std::string target, family;
  int64_t parameters = 0;
  std::string cpu, isa, compute;
  int64_t threads = 0;
  ops::DType kv_type = ops::DType::kF16;
  std::vector<models::KvGroupPlan> kv_groups;
  int64_t weight_bytes = 0;            // as loaded
  int64_t bytes_per_step = 0;          // of them, what a step reads: all but an embedding that is not the head too
  std::optional<double> read_bytes_s;  // what this machine reads at most
  int64_t prefill_chunk = 0, repetitions = 0;
  uint64_t seed = 0;
  double load_ms = 0;
  std::vector<BenchmarkRun> runs;

  int64_t kv_bytes_per_token() const;
  // K/V of so many tokens of one sequence, those outside a window left out.
  int64_t kv_bytes(int64_t tokens) const;
  // Bytes that a step of the run reads on average, weights and K/V. Absent for prefill, which computes more than it
  // reads.
  std::optional<double> bytes_read_per_step(const BenchmarkRun& run) const;
  // Time of a step over that with one row at the same depth; absent where that was not measured.
  std::optional<double> cost_over_one_row(const BenchmarkRun& run) const;
};

Json to_json(const BenchmarkReport& report);
std::string to_text(const BenchmarkReport& report);

}  // namespace vedette::cli
