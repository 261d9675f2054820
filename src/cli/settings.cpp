#include "cli/settings.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <limits>

#include "base/error.h"
#include "base/log.h"
#include "cli/language_bias_options.h"
#include "ops/cpu/cpu_backend.h"

namespace vedette::cli {
namespace {

// A whole text as a number.
std::optional<double> to_number(std::string_view text) {
  double value = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

std::optional<ops::DType> kv_type(const std::string& name) {
  if (name == "f32") return ops::DType::kF32;
  if (name == "bf16") return ops::DType::kBF16;
  if (name == "f16" || name == "fp16") return ops::DType::kF16;
  return std::nullopt;
}

}  // namespace

std::vector<std::string> split_list(std::string_view text, std::string_view separators) {
  std::vector<std::string> out;
  size_t begin = 0;
  while (begin <= text.size()) {
    const size_t end = std::min(text.find_first_of(separators, begin), text.size());
    std::string item(text.substr(begin, end - begin));
    item.erase(0, item.find_first_not_of(" \t\r\n"));
    item.erase(item.find_last_not_of(" \t\r\n") + 1);
    if (!item.empty()) out.push_back(std::move(item));
    begin = end + 1;
  }
  return out;
}

std::vector<std::string> split_lists(const std::vector<std::string>& texts, std::string_view separators) {
  std::vector<std::string> out;
  for (const std::string& text : texts)
    for (std::string& item : split_list(text, separators)) out.push_back(std::move(item));
  return out;
}

hub::StoreSettings read_store(const OptionValues& options) {
  hub::StoreSettings store;
  store.models_dir = options.text("--models-dir").value_or("");
  store.cache_dir = options.text("--cache-dir").value_or("");
  return store;
}

hub::HubSettings read_hub(const OptionValues& options) {
  hub::HubSettings hub;
  hub.endpoint = options.text("--hf-endpoint").value_or(hub.endpoint);
  hub.token = options.text("--token").value_or("");
  if (const char* other = std::getenv("HUGGING_FACE_HUB_TOKEN"); hub.token.empty() && other != nullptr)
    hub.token = other;
  hub.extra_ca_file = options.text("--extra-ca-certs").value_or("");
  return hub;
}

ModelSettings read_model(const OptionValues& options) {
  ModelSettings settings;
  settings.model = options.text("--model").value_or("");
  settings.store = read_store(options);
  settings.store.default_org = options.text("--default-org").value_or("");
  if (options.given("--revision")) settings.store.revision = options.text("--revision");
  settings.hub = read_hub(options);
  settings.offline = options.flag("--offline");
  return settings;
}

Result<std::optional<ops::DType>> read_kv_type(const OptionValues& options) {
  const auto mode = options.text("--kv-cache-mode");
  auto keys = options.text("--cache-type-k"), values = options.text("--cache-type-v");
  if (!keys && !values && !mode) return std::optional<ops::DType>();
  if (!keys) keys = mode;
  if (!values) values = mode;
  // A side that is not named stays f16.
  const auto key_type = kv_type(keys.value_or("f16")), value_type = kv_type(values.value_or("f16"));
  if (key_type != value_type) {
    return unsupported("--cache-type-k",
                       "--cache-type-k {} with --cache-type-v {}: keys and values have one type in this build; give "
                       "both the same",
                       keys.value_or("f16"), values.value_or("f16"));
  }
  return key_type;
}

Result<engine::ComputeChoice> parse_compute(const std::string& mode) {
  if (mode == "auto") return engine::ComputeChoice::kAuto;
  if (mode == "i8") return engine::ComputeChoice::kI8;
  if (mode == "i16") return engine::ComputeChoice::kI16;
  if (mode == "f32") return engine::ComputeChoice::kF32;
  return invalid_request("--compute", "compute mode '{}': expected auto, i8, i16 or f32", mode);
}

Result<engine::LoadOptions> read_compute(const OptionValues& options) {
  engine::LoadOptions load;
  (void)options.text("--device");  // cpu is the only choice
  VEDETTE_ASSIGN_OR_RETURN(load.compute, parse_compute(options.text("--compute").value_or("auto")));
  load.threads = static_cast<int>(options.integer("--threads").value_or(0));
  load.isa = options.text("--isa").value_or("");
  load.prefill_chunk = static_cast<int>(options.integer("--prefill-chunk-size").value_or(512));
  load.repack = options.text("--repack") != "off";
  VEDETTE_ASSIGN_OR_RETURN(load.kv_type, read_kv_type(options));
  VEDETTE_ASSIGN_OR_RETURN([[maybe_unused]] ops::cpu::Isa isa, ops::cpu::choose_isa(load.isa));
  return load;
}

std::optional<int64_t> parse_size(const std::string& text) {
  struct Unit {
    std::string_view suffix;
    double bytes;
  };
  constexpr std::array<Unit, 14> kUnits = {{{"KiB", 0x1p10},
                                            {"MiB", 0x1p20},
                                            {"GiB", 0x1p30},
                                            {"TiB", 0x1p40},
                                            {"KB", 1e3},
                                            {"MB", 1e6},
                                            {"GB", 1e9},
                                            {"TB", 1e12},
                                            {"K", 0x1p10},
                                            {"M", 0x1p20},
                                            {"G", 0x1p30},
                                            {"T", 0x1p40},
                                            {"B", 1},
                                            {"", 1}}};
  for (const Unit& unit : kUnits) {
    if (!text.ends_with(unit.suffix)) continue;
    std::string_view digits = std::string_view(text).substr(0, text.size() - unit.suffix.size());
    while (digits.ends_with(' ')) digits.remove_suffix(1);
    const auto number = to_number(digits);
    if (!number || !(*number >= 0) || *number * unit.bytes > 0x1p62) return std::nullopt;
    return static_cast<int64_t>(*number * unit.bytes);
  }
  return std::nullopt;
}

Result<MemorySettings> read_memory(const OptionValues& options) {
  MemorySettings settings;
  if (auto text = options.text("--memory-limit")) {
    settings.limit_bytes = parse_size(*text);
    if (!settings.limit_bytes) {
      return invalid_request("--memory-limit",
                             "--memory-limit ({}): expected bytes or a size as 8GB or 512MiB, found '{}'",
                             options.source("--memory-limit"), text->substr(0, 60));
    }
    if (*settings.limit_bytes == 0) settings.limit_bytes.reset();
  }
  settings.headroom = std::max(1.0, options.number("--headroom-factor").value_or(engine::kMemoryHeadroom));
  return settings;
}

Result<std::pair<int32_t, float>> parse_logit_bias(const std::string& text) {
  const Error wrong = invalid_request("--logit-bias", "--logit-bias: expected ID=BIAS, ID+BIAS or ID-BIAS, found '{}'",
                                      text.substr(0, 60));
  const size_t mark = text.find_first_of("=+-");
  if (mark == std::string::npos || mark == 0) return wrong;
  int32_t id = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + mark, id);
  if (error != std::errc() || end != text.data() + mark || id < 0) return wrong;
  std::string number = text.substr(mark + 1);
  if (number.starts_with('+')) number.erase(0, 1);
  const auto value = to_number(number);
  if (!value || std::isnan(*value)) return wrong;
  const double bias = text[mark] == '-' ? -*value : *value;
  // Finite: an infinite bias stands for one that no logit outweighs.
  const double limit = std::numeric_limits<float>::max();
  return std::pair(id, static_cast<float>(std::isinf(bias) ? bias : std::clamp(bias, -limit, limit)));
}

Result<std::vector<std::string>> samplers_by_letter(const std::string& letters) {
  auto order = sampling::order_of_letters(letters);
  if (!order.ok())
    return invalid_request("--sampler-seq", "--sampler-seq: expected letters of {}, found '{}'",
                           sampling::known_letters(), letters.substr(0, 60));
  return order;
}

Result<sampling::SamplingParams> read_sampling(const OptionValues& options) {
  sampling::SamplingParams params;
  (void)options.text("--mode");  // both choices decode plainly
  params.temperature = options.number("--temperature").value_or(0);
  params.top_k = options.integer("--top-k").value_or(0);
  params.top_p = options.number("--top-p").value_or(1);
  params.min_p = options.number("--min-p").value_or(0);
  params.repetition_penalty = options.number("--repetition-penalty").value_or(1);
  params.frequency_penalty = options.number("--frequency-penalty").value_or(0);
  params.presence_penalty = options.number("--presence-penalty").value_or(0);
  params.repeat_last_n = options.integer("--repeat-last-n").value_or(-1);
  params.typical_p = options.number("--typical-p").value_or(1);
  params.top_n_sigma = options.number("--top-n-sigma").value_or(-1);
  params.p_less = options.flag("--p-less");
  params.xtc_probability = options.number("--xtc-probability").value_or(0);
  params.xtc_threshold = options.number("--xtc-threshold").value_or(0.1);
  params.dynatemp_range = options.number("--dynatemp-range").value_or(0);
  params.dynatemp_exponent = options.number("--dynatemp-exp").value_or(1);
  params.mirostat = static_cast<int>(options.integer("--mirostat").value_or(0));
  params.mirostat_eta = options.number("--mirostat-lr").value_or(0.1);
  params.mirostat_tau = options.number("--mirostat-ent").value_or(5);
  params.adaptive_target = options.number("--adaptive-target").value_or(-1);
  params.adaptive_decay = options.number("--adaptive-decay").value_or(0.9);
  params.dry_multiplier = options.number("--dry-multiplier").value_or(0);
  params.dry_base = options.number("--dry-base").value_or(1.75);
  params.dry_allowed_length = options.integer("--dry-allowed-length").value_or(2);
  params.dry_penalty_last_n = options.integer("--dry-penalty-last-n").value_or(-1);
  params.order = split_list(options.text("--samplers").value_or(""), ";,");
  if (const auto letters = options.text("--sampler-seq"); letters && params.order.empty()) {
    VEDETTE_ASSIGN_OR_RETURN(params.order, samplers_by_letter(*letters));
  }
  for (const std::string& text : options.texts("--logit-bias")) {
    VEDETTE_ASSIGN_OR_RETURN(auto bias, parse_logit_bias(text));
    params.logit_bias.push_back(bias);
  }
  const int64_t seed = options.integer("--seed").value_or(-1);
  params.seed = seed >= 0 ? static_cast<uint64_t>(seed) : sampling::draw_seed() >> 11;
  VEDETTE_RETURN_IF_ERROR(sampling::validate(params));
  return params;
}

Result<server::GenerationDefaults> read_generation(const OptionValues& options) {
  server::GenerationDefaults out;
  VEDETTE_ASSIGN_OR_RETURN(out.sampling, read_sampling(options));
  VEDETTE_ASSIGN_OR_RETURN(out.language_bias, read_language_bias_options(options));
  out.temperature_set = options.given("--temperature");
  out.top_k_set = options.given("--top-k");
  out.top_p_set = options.given("--top-p");
  out.min_p_set = options.given("--min-p");
  out.penalty_set = options.given("--repetition-penalty");
  if (options.given("--dry-sequence-breaker")) {
    out.dry_breakers = split_lists(options.texts("--dry-sequence-breaker"));
    if (out.dry_breakers == std::vector<std::string>{"none"}) out.dry_breakers.clear();
  }
  return out;
}

Verbosity read_verbosity(const OptionValues& options) {
  Verbosity verbosity{options.flag("--verbose"), options.flag("--quiet")};
  log::set_level(verbosity.verbose ? log::Level::kInfo : verbosity.quiet ? log::Level::kError : log::Level::kWarning);
  return verbosity;
}

}  // namespace vedette::cli
