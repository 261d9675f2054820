// `benchmark`: speed of plain decoding on this machine, at points that the caller names.
//
// Every round runs each prefill and decode point once, so that what slows the machine down for a while slows down all
// of them; then come the steps of a few rows, which take turns in the same way.
#include <fmt/chrono.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <cstring>
#include <ctime>
#include <filesystem>

#include "base/error.h"
#include "cli/benchmark_chart.h"
#include "cli/benchmark_report.h"
#include "cli/context.h"
#include "cli/fetch_model.h"
#include "cli/settings.h"
#include "cli/terminal.h"
#include "cli/version.h"
#include "engine/load.h"
#include "engine/read_bandwidth.h"
#include "engine/speed.h"
#include "models/registry.h"
#include "ops/cpu/cpu_backend.h"
#include "sampling/sampling.h"
#include "server/machine.h"
#include "weights/file_output.h"

namespace vedette::cli {
namespace {

using Kind = BenchmarkPoint::Kind;

constexpr int64_t kMostTokens = 100'000'000, kMostSequences = 256, kMostRows = 1024;
constexpr size_t kMostInList = 64;
constexpr int64_t kWarmUpTokens = 16;

struct BenchmarkSettings {
  ModelSettings model;
  engine::LoadOptions load;
  std::vector<int64_t> prefill, decode, depths, sequences, rows;
  bool decode_by_max_tokens = false;
  int repetitions = 5;
  uint64_t seed = 0;
  std::string output_file, plot_file;
  bool json = false, quiet = false;
};

// Numbers separated by commas, each once, in the order given.
Result<std::vector<int64_t>> read_list(const OptionValues& options, std::string_view name, int64_t least,
                                       int64_t most) {
  std::vector<int64_t> out;
  const std::string text = options.text(name).value_or("");
  const std::vector<std::string> words = split_list(text, ",");
  if (words.size() > kMostInList || (words.empty() && options.given(name)))
    return invalid_request(std::string(name), "{} ({}): expected 1 to {} numbers separated by commas, found {}", name,
                           options.source(name), kMostInList, words.size());
  for (const std::string& word : words) {
    int64_t value = 0;
    const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
    if (error != std::errc() || end != word.data() + word.size() || value < least || value > most)
      return invalid_request(std::string(name),
                             "{} ({}): expected numbers from {} to {} separated by commas, found '{}'", name,
                             options.source(name), least, most, word.substr(0, 40));
    if (std::ranges::find(out, value) == out.end()) out.push_back(value);
  }
  return out;
}

std::string plot_format(const std::string& path) {
  return std::filesystem::path(path).extension().string();
}

// Before the first measurement: a file that cannot be written is not found out at the end.
Status check_writable(std::string_view option, const std::string& path) {
  if (path.empty()) return ok_status();
  std::error_code error;
  const std::filesystem::path parent = std::filesystem::path(path).parent_path();
  const bool exists = std::filesystem::exists(path, error);
  const std::string place = exists ? path : parent.empty() ? "." : parent.string();
  const bool folder = std::filesystem::is_directory(path, error);
  if (!folder && access(place.c_str(), W_OK) == 0) return ok_status();
  if (folder) errno = EISDIR;
  return unavailable(std::string(option), "{}: {}: cannot be written: {}; name a writable file", option, path,
                     std::strerror(errno));
}

// `--json FILE` of other programs: a file here is --output's.
Status take_operand(const Context& context, BenchmarkSettings& settings) {
  if (context.operands.empty()) return ok_status();
  const std::string& operand = context.operands.front();
  if (settings.json && operand.ends_with(".json"))
    return invalid_request("--json", "--json takes no value, found '{}'; --output {} writes that file", operand,
                           operand);
  if (!settings.model.model.empty())
    return invalid_request("--model", "[MODEL] was given twice: as '{}' and by its option", operand);
  settings.model.model = operand;
  return ok_status();
}

Result<BenchmarkSettings> read_benchmark(const Context& context) {
  const OptionValues& options = context.options;
  BenchmarkSettings settings;
  settings.model = read_model(options);
  VEDETTE_ASSIGN_OR_RETURN(settings.load, read_compute(options));
  settings.json = options.flag("--json");
  settings.quiet = read_verbosity(options).quiet;
  VEDETTE_RETURN_IF_ERROR(take_operand(context, settings));
  VEDETTE_ASSIGN_OR_RETURN(settings.prefill, read_list(options, "--prefill", 0, kMostTokens));
  VEDETTE_ASSIGN_OR_RETURN(settings.decode, read_list(options, "--decode", 0, kMostTokens));
  VEDETTE_ASSIGN_OR_RETURN(settings.depths, read_list(options, "--depth", 0, kMostTokens));
  VEDETTE_ASSIGN_OR_RETURN(settings.sequences, read_list(options, "--sequences", 1, kMostSequences));
  VEDETTE_ASSIGN_OR_RETURN(settings.rows, read_list(options, "--rows", 1, kMostRows));
  if (const auto tokens = options.integer("--max-tokens")) {
    if (options.given("--decode"))
      return invalid_request("--decode", "--decode and --max-tokens exclude each other; give one");
    if (*tokens < 0 || *tokens > kMostTokens)
      return invalid_request("--max-tokens", "--max-tokens ({}): expected a value from 0 to {} for benchmark, found {}",
                             options.source("--max-tokens"), kMostTokens, *tokens);
    settings.decode = {*tokens};
    settings.decode_by_max_tokens = true;
  }
  std::erase(settings.prefill, 0);
  std::erase(settings.decode, 0);
  if (settings.prefill.empty() && settings.decode.empty() && settings.rows.empty())
    return invalid_request("--decode", "nothing to measure: --prefill and --decode are 0 and there are no --rows");
  settings.repetitions = static_cast<int>(options.integer("--repetitions").value_or(5));
  const int64_t seed = options.integer("--seed").value_or(-1);
  settings.seed = seed >= 0 ? static_cast<uint64_t>(seed) : sampling::draw_seed() >> 11;
  settings.output_file = options.text("--output").value_or("");
  settings.plot_file = options.text("--plot").value_or("");
  if (!settings.plot_file.empty() && plot_format(settings.plot_file) != ".svg" &&
      plot_format(settings.plot_file) != ".png")
    return invalid_request("--plot", "--plot ({}): expected a file that ends in .svg or .png, found '{}'",
                           options.source("--plot"), settings.plot_file);
  return settings;
}

std::vector<BenchmarkRun> engine_runs(const BenchmarkSettings& settings) {
  std::vector<BenchmarkRun> runs;
  runs.reserve(settings.prefill.size() + settings.decode.size() * settings.depths.size() * settings.sequences.size());
  const int64_t chunk = settings.load.prefill_chunk;
  for (const int64_t tokens : settings.prefill)
    runs.push_back({.point = {.kind = Kind::kPrefill, .tokens = tokens}, .steps = (tokens + chunk - 1) / chunk});
  for (const int64_t tokens : settings.decode)
    for (const int64_t depth : settings.depths)
      for (const int64_t sequences : settings.sequences)
        runs.push_back({.point = {.kind = Kind::kDecode, .tokens = tokens, .depth = depth, .sequences = sequences},
                        .steps = tokens});
  return runs;
}

int64_t context_of(const BenchmarkPoint& point) {
  if (point.kind == Kind::kPrefill) return point.tokens;
  if (point.kind == Kind::kDecode) return engine::SpeedMeter::decode_context(point.tokens, point.depth);
  return point.depth + point.tokens;
}

// The flags that a point's length comes from.
std::string flags_of(const BenchmarkPoint& point, const BenchmarkSettings& settings) {
  if (point.kind == Kind::kPrefill) return "--prefill";
  const char* own = point.kind == Kind::kRows ? "--rows" : settings.decode_by_max_tokens ? "--max-tokens" : "--decode";
  return point.depth > 0 ? fmt::format("--depth or {}", own) : own;
}

// Every point, for what is to be known before the model is loaded.
std::vector<BenchmarkPoint> all_points(const BenchmarkSettings& settings) {
  std::vector<BenchmarkPoint> points;
  for (const BenchmarkRun& run : engine_runs(settings)) points.push_back(run.point);
  for (const int64_t depth : settings.depths)
    for (const int64_t rows : settings.rows) points.push_back({.kind = Kind::kRows, .tokens = rows, .depth = depth});
  return points;
}

// A model as the points need it: their longest context, as many sequences, no prefix cache.
Result<engine::LoadedDecoder> load(const BenchmarkSettings& settings, const weights::Checkpoint& checkpoint,
                                   const std::string& name) {
  VEDETTE_ASSIGN_OR_RETURN(const models::DecoderSpec spec, models::build_spec(checkpoint));
  engine::LoadOptions load = settings.load;
  BenchmarkPoint longest;
  for (const BenchmarkPoint& point : all_points(settings)) {
    if (context_of(point) > spec.context_length)
      return invalid_request("context_length", "the point {} needs a context of {} tokens, {} has {}; lower {}",
                             point.name(), context_of(point), name, spec.context_length, flags_of(point, settings));
    if (context_of(point) > context_of(longest)) longest = point;
    load.max_sequences = std::max(load.max_sequences, static_cast<int>(point.sequences));
    if (point.kind == Kind::kRows) load.max_logit_rows = std::max(load.max_logit_rows, static_cast<int>(point.tokens));
  }
  load.context_length = std::max<int64_t>(context_of(longest), 2);
  load.prefix_cache = false;
  ProgressBar bar("loading " + name, !settings.quiet);
  load.progress = [&](int64_t done, int64_t total) { bar.update(done, total); };
  auto loaded = engine::load_decoder(checkpoint, load);
  if (!loaded.ok()) {
    Error error = std::move(loaded).error();
    constexpr std::string_view kOther = "lower --ctx-size";  // no option here
    if (const size_t at = error.message.find(kOther); at != std::string::npos)
      error.message.replace(at, kOther.size(), fmt::format("lower {}", flags_of(longest, settings)));
    return error;
  }
  const models::Decoder& decoder = *loaded->decoder;
  const auto wanted = engine::blocks_for(decoder.kv_groups(), load.context_length, load.max_sequences,
                                         std::max(load.prefill_chunk, load.max_logit_rows));
  for (size_t i = 0; i < wanted.size(); ++i)
    if (decoder.config().kv_blocks[i] < wanted[i])
      return out_of_budget(
          "--sequences", "K/V of {} sequences of {} tokens needs {}, more than is available; lower --sequences or {}",
          load.max_sequences, load.context_length,
          engine::format_bytes(engine::kv_bytes(decoder.kv_groups(), wanted, decoder.config().kv_type)),
          flags_of(longest, settings));
  return loaded;
}

Result<double> measure_once(engine::SpeedMeter& meter, const BenchmarkPoint& point) {
  if (point.kind == Kind::kPrefill) return meter.prefill(point.tokens);
  return meter.decode(point.tokens, point.depth, static_cast<int>(point.sequences));
}

// A short form of the point, for the first touch of memory and the measure of the processor's clock.
Status warm_up(engine::SpeedMeter& meter, BenchmarkPoint point, int64_t chunk) {
  point.depth = 0;
  point.tokens = std::min(point.tokens, point.kind == Kind::kDecode ? kWarmUpTokens : chunk);
  VEDETTE_ASSIGN_OR_RETURN([[maybe_unused]] const double seconds, measure_once(meter, point));
  return ok_status();
}

Result<std::vector<BenchmarkRun>> measure(const BenchmarkSettings& settings, engine::LoadedDecoder& loaded) {
  engine::SpeedMeter meter(*loaded.decoder, settings.load.prefill_chunk, settings.seed, loaded.config.health);
  std::vector<BenchmarkRun> runs = engine_runs(settings);
  const int64_t depths = settings.rows.empty() ? 0 : static_cast<int64_t>(settings.depths.size());
  const int64_t total = settings.repetitions * static_cast<int64_t>(runs.size()) + depths;
  int64_t done = 0;
  ProgressBar bar("measuring", !settings.quiet);
  for (const BenchmarkRun& run : runs) VEDETTE_RETURN_IF_ERROR(warm_up(meter, run.point, settings.load.prefill_chunk));
  for (int repetition = 0; repetition < settings.repetitions; ++repetition) {
    for (BenchmarkRun& run : runs) {
      VEDETTE_ASSIGN_OR_RETURN(const double seconds, measure_once(meter, run.point));
      run.seconds.push_back(seconds);
      bar.update(++done, total);
    }
  }
  if (settings.rows.empty()) return runs;
  std::vector<int64_t> rows = settings.rows;
  if (std::ranges::find(rows, 1) == rows.end()) rows.insert(rows.begin(), 1);  // what the others are compared with
  for (const int64_t depth : settings.depths) {
    VEDETTE_ASSIGN_OR_RETURN(std::vector<std::vector<double>> seconds, meter.rows(rows, depth, settings.repetitions));
    for (size_t i = 0; i < rows.size(); ++i)
      runs.push_back({.point = {.kind = Kind::kRows, .tokens = rows[i], .depth = depth},
                      .steps = 1,
                      .seconds = std::move(seconds[i])});
    bar.update(++done, total);
  }
  return runs;
}

// Stored bytes of an embedding that serves as one alone: a step reads a row of it per token.
int64_t lookup_only_bytes(const weights::Checkpoint& checkpoint, const models::DecoderSpec& spec) {
  const auto embedding = checkpoint.tensors.find(spec.embedding);
  if (embedding == checkpoint.tensors.end() || spec.head.weight == spec.embedding) return 0;
  const ops::HostMatrix& matrix = embedding->second.matrix;
  return static_cast<int64_t>(matrix.data.size() + matrix.scales.size() + matrix.biases.size());
}

BenchmarkReport describe(const BenchmarkSettings& settings, const weights::Checkpoint& checkpoint,
                         const engine::LoadedDecoder& loaded, const std::string& name) {
  const engine::LoadReport& from = loaded.report;
  BenchmarkReport report;
  report.version = std::string(kVersion);
  report.date = fmt::format("{:%FT%TZ}", fmt::gmtime(std::time(nullptr)));
  report.target = name;
  report.family = from.family;
  report.parameters = from.parameters;
  report.cpu = server::look_at_machine().cpu;
  report.isa = from.backend.isa;
  report.compute = ops::to_string(from.backend.compute);
  report.threads = from.backend.threads;
  report.kv_type = from.kv_type;
  report.kv_groups = loaded.decoder->kv_groups();
  report.weight_bytes = from.memory.weight_bytes + from.memory.mapped_bytes;
  report.bytes_per_step = report.weight_bytes - lookup_only_bytes(checkpoint, loaded.decoder->spec());
  report.prefill_chunk = settings.load.prefill_chunk;
  report.repetitions = settings.repetitions;
  report.seed = settings.seed;
  report.load_ms = from.load_ms;
  return report;
}

// Written once all is measured.
Status write_files(const BenchmarkSettings& settings, const BenchmarkReport& report) {
  if (!settings.output_file.empty())
    VEDETTE_RETURN_IF_ERROR(weights::write_text_file(settings.output_file, to_json(report).dump(2) + "\n"));
  if (settings.plot_file.empty()) return ok_status();
  const Drawing drawing = draw_chart(report);
  return weights::write_text_file(settings.plot_file,
                                  plot_format(settings.plot_file) == ".png" ? to_png(drawing) : to_svg(drawing));
}

}  // namespace

Result<int> run_benchmark(Context& context) {
  VEDETTE_ASSIGN_OR_RETURN(const BenchmarkSettings settings, read_benchmark(context));
  VEDETTE_RETURN_IF_ERROR(start(context));
  VEDETTE_RETURN_IF_ERROR(check_writable("--output", settings.output_file));
  VEDETTE_RETURN_IF_ERROR(check_writable("--plot", settings.plot_file));
  VEDETTE_ASSIGN_OR_RETURN(const hub::ResolvedModel resolved,
                           find_model(settings.model.model, settings.model, settings.quiet));
  VEDETTE_ASSIGN_OR_RETURN(const weights::Checkpoint checkpoint, weights::open_checkpoint(resolved.path));
  // Before the model takes its memory.
  const int threads = settings.load.threads > 0 ? settings.load.threads : ops::cpu::default_thread_count();
  const Result<double> bandwidth = engine::measure_read_bandwidth(threads);
  if (!bandwidth.ok() && !settings.quiet) print_notice(bandwidth.error().message);
  VEDETTE_ASSIGN_OR_RETURN(engine::LoadedDecoder loaded, load(settings, checkpoint, resolved.name));
  BenchmarkReport report = describe(settings, checkpoint, loaded, resolved.name);
  if (bandwidth.ok()) report.read_bytes_s = *bandwidth;
  VEDETTE_ASSIGN_OR_RETURN(report.runs, measure(settings, loaded));
  VEDETTE_RETURN_IF_ERROR(write_files(settings, report));
  VEDETTE_RETURN_IF_ERROR(print(settings.json ? to_json(report).dump(2) + "\n" : printable(to_text(report))));
  return kExitDone;
}

}  // namespace vedette::cli
