#include "cli/benchmark_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "engine/memory.h"

namespace vedette::cli {
namespace {

using Kind = BenchmarkPoint::Kind;

const char* to_string(Kind kind) {
  return kind == Kind::kPrefill ? "prefill" : kind == Kind::kDecode ? "decode" : "rows";
}

Json optional_json(const std::optional<double>& value) {
  return value ? Json(*value) : Json();
}

std::optional<double> gb_per_sec(const BenchmarkReport& report, const BenchmarkRun& run) {
  const auto bytes = report.bytes_read_per_step(run);
  const double ms = run.ms_per_step().median;
  return bytes && ms > 0 ? std::optional(*bytes / ms * 1e-6) : std::nullopt;
}

std::optional<double> bandwidth_share(const BenchmarkReport& report, const BenchmarkRun& run) {
  const auto rate = gb_per_sec(report, run);
  return rate && report.read_bytes_s ? std::optional(*rate * 1e9 / *report.read_bytes_s) : std::nullopt;
}

Json run_json(const BenchmarkReport& report, const BenchmarkRun& run) {
  const BenchmarkPoint& point = run.point;
  Json out = Json::object();
  out.set("run", point.name());
  out.set("kind", to_string(point.kind));
  out.set(point.kind == Kind::kRows ? "rows" : "tokens", point.tokens);
  out.set("depth", point.depth);
  if (point.kind == Kind::kDecode) out.set("sequences", point.sequences);
  out.set("steps", run.steps);
  const Summary speed = run.tok_s();
  out.set("tok_s", speed.median);
  out.set("tok_s_min", speed.least);
  out.set("tok_s_max", speed.most);
  out.set("spread", speed.spread());
  if (point.kind == Kind::kDecode) out.set("decode_tok_s", speed.median);
  out.set("ms_per_step", run.ms_per_step().median);
  if (point.kind == Kind::kRows) out.set("cost_over_one_row", optional_json(report.cost_over_one_row(run)));
  out.set("kv_bytes", point.sequences * report.kv_bytes(point.depth + point.tokens));
  out.set("gb_per_sec", optional_json(gb_per_sec(report, run)));
  out.set("bandwidth_share", optional_json(bandwidth_share(report, run)));
  Json seconds = Json::array();
  for (const double one : run.seconds) seconds.push_back(Json(one));
  out.set("seconds", std::move(seconds));
  return out;
}

using Cells = std::array<std::string, 7>;

Cells run_cells(const BenchmarkReport& report, const BenchmarkRun& run) {
  const Summary speed = run.tok_s();
  const auto rate = gb_per_sec(report, run);
  const auto share = bandwidth_share(report, run);
  const auto cost = report.cost_over_one_row(run);
  return {run.point.name(),
          fmt::format("{:.1f}", speed.median),
          fmt::format("{:.1f} - {:.1f}", speed.least, speed.most),
          fmt::format("{:.2f}", run.ms_per_step().median),
          rate ? fmt::format("{:.2f}", *rate) : "",
          share ? fmt::format("{:.0f} %", 100 * *share) : "",
          cost ? fmt::format("{:.2f}", *cost) : ""};
}

std::string table(const std::vector<Cells>& rows) {
  std::array<size_t, std::tuple_size_v<Cells>> widths{};
  for (const Cells& row : rows)
    for (size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  std::string out;
  for (const Cells& row : rows) {
    std::string line = fmt::format("{:<{}}", row[0], widths[0]);
    for (size_t i = 1; i < row.size(); ++i)
      if (!rows.front()[i].empty()) line += fmt::format("  {:>{}}", row[i], widths[i]);
    line.erase(line.find_last_not_of(' ') + 1);
    out += line + "\n";
  }
  return out;
}

}  // namespace

std::string BenchmarkPoint::name() const {
  std::string out = kind == Kind::kPrefill  ? fmt::format("pp{}", tokens)
                    : kind == Kind::kDecode ? fmt::format("tg{}", tokens)
                                            : fmt::format("rows{}", tokens);
  if (sequences > 1) out += fmt::format(" x{}", sequences);
  if (depth > 0) out += fmt::format(" @{}", depth);
  return out;
}

Summary BenchmarkRun::tok_s() const {
  std::vector<double> speeds;
  speeds.reserve(seconds.size());
  for (const double one : seconds) speeds.push_back(static_cast<double>(tokens()) / one);
  return summarize(speeds);
}

Summary BenchmarkRun::ms_per_step() const {
  std::vector<double> times;
  times.reserve(seconds.size());
  for (const double one : seconds) times.push_back(1000 * one / static_cast<double>(steps));
  return summarize(times);
}

int64_t BenchmarkReport::kv_bytes_per_token() const {
  int64_t bytes = 0;
  for (const models::KvGroupPlan& group : kv_groups) bytes += group.bytes_per_token(kv_type);
  return bytes;
}

int64_t BenchmarkReport::kv_bytes(int64_t tokens) const {
  int64_t bytes = 0;
  for (const models::KvGroupPlan& group : kv_groups)
    bytes += group.bytes_per_token(kv_type) * (group.window > 0 ? std::min<int64_t>(tokens, group.window) : tokens);
  return bytes;
}

std::optional<double> BenchmarkReport::bytes_read_per_step(const BenchmarkRun& run) const {
  const BenchmarkPoint& point = run.point;
  if (point.kind == Kind::kPrefill) return std::nullopt;
  // Rows of one sequence read its K/V together; decoding reads a little more each step.
  const int64_t visible = point.kind == Kind::kRows ? point.depth + point.tokens : point.depth + point.tokens / 2;
  return static_cast<double>(bytes_per_step) + static_cast<double>(point.sequences * kv_bytes(visible));
}

std::optional<double> BenchmarkReport::cost_over_one_row(const BenchmarkRun& run) const {
  if (run.point.kind != Kind::kRows) return std::nullopt;
  for (const BenchmarkRun& other : runs) {
    if (other.point.kind != Kind::kRows || other.point.tokens != 1 || other.point.depth != run.point.depth) continue;
    const double one = other.ms_per_step().median;
    return one > 0 ? std::optional(run.ms_per_step().median / one) : std::nullopt;
  }
  return std::nullopt;
}

Json to_json(const BenchmarkReport& report) {
  Json out = Json::object();
  out.set("version", report.version);
  out.set("date", report.date);
  out.set("device", report.cpu);
  out.set("target", report.target);
  out.set("family", report.family);
  out.set("parameters", report.parameters);
  out.set("mode", "baseline");
  out.set("compute", report.compute);
  out.set("isa", report.isa);
  out.set("threads", report.threads);
  out.set("kv_type", ops::to_string(report.kv_type));
  out.set("weight_bytes", report.weight_bytes);
  out.set("weight_bytes_per_step", report.bytes_per_step);
  out.set("kv_bytes_per_token", report.kv_bytes_per_token());
  out.set("read_gb_per_sec", report.read_bytes_s ? Json(*report.read_bytes_s * 1e-9) : Json());
  out.set("prefill_chunk", report.prefill_chunk);
  out.set("repetitions", report.repetitions);
  out.set("seed", static_cast<int64_t>(report.seed));
  out.set("load_ms", report.load_ms);
  Json runs = Json::array();
  for (const BenchmarkRun& run : report.runs) runs.push_back(run_json(report, run));
  out.set("runs", std::move(runs));
  return out;
}

std::string to_text(const BenchmarkReport& report) {
  std::string out = fmt::format("Model      {} ({}, {:.1f} million parameters)\n", report.target, report.family,
                                static_cast<double>(report.parameters) * 1e-6);
  out += fmt::format("Machine    {}: {}, {} threads{}\n", report.cpu.empty() ? "unknown processor" : report.cpu,
                     report.isa, report.threads,
                     report.read_bytes_s ? fmt::format(", reads {:.1f} GB/s", *report.read_bytes_s * 1e-9) : "");
  out += fmt::format("Precision  compute {}, K/V {}\n", report.compute, ops::to_string(report.kv_type));
  out += fmt::format("Memory     weights {}, {} of them read by each step; K/V {} a token\n",
                     engine::format_bytes(report.weight_bytes), engine::format_bytes(report.bytes_per_step),
                     engine::format_bytes(report.kv_bytes_per_token()));
  out += fmt::format("Runs       medians of {}, prefill in chunks of {}, seed {}; {}, vedette {}\n\n",
                     report.repetitions, report.prefill_chunk, report.seed, report.date, report.version);
  const bool any_rows =
      std::ranges::any_of(report.runs, [](const BenchmarkRun& run) { return run.point.kind == Kind::kRows; });
  std::vector<Cells> rows = {{"TEST", "TOK/S", "LEAST - MOST", "MS/STEP", "GB/S", report.read_bytes_s ? "SHARE" : "",
                              any_rows ? "OVER 1 ROW" : ""}};
  for (const BenchmarkRun& run : report.runs) rows.push_back(run_cells(report, run));
  return out + table(rows);
}

}  // namespace vedette::cli
