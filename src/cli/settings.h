// Option values as the structs of the layers below. Each function reads its options, which marks them as used.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/options.h"
#include "base/result.h"
#include "engine/load.h"
#include "hub/download.h"
#include "hub/model_store.h"
#include "ops/types.h"
#include "sampling/sampling.h"
#include "server/served_model.h"

namespace vedette::cli {

struct ModelSettings {
  std::string model;  // as named, may be empty
  hub::StoreSettings store;
  hub::HubSettings hub;
  bool offline = false;  // what is nowhere on this machine is not fetched
};
ModelSettings read_model(const OptionValues& options);
hub::StoreSettings read_store(const OptionValues& options);
hub::HubSettings read_hub(const OptionValues& options);

// --cache-type-k, --cache-type-v, --kv-cache-mode. Absent: chosen at load.
Result<std::optional<ops::DType>> read_kv_type(const OptionValues& options);

// --compute, --threads, --isa, --device, --prefill-chunk-size, --repack and the K/V type. The instruction set is
// checked against this machine.
Result<engine::LoadOptions> read_compute(const OptionValues& options);
Result<engine::ComputeChoice> parse_compute(const std::string& mode);

struct MemorySettings {
  std::optional<int64_t> limit_bytes;  // absent: what the machine has available
  double headroom = engine::kMemoryHeadroom;
};
Result<MemorySettings> read_memory(const OptionValues& options);
// "8GB", "512MB", "1.5GiB", "100000": bytes; units of 1000 with B, of 1024 with iB.
std::optional<int64_t> parse_size(const std::string& text);

// Items between separators, without blanks around them; empty ones are left out.
std::vector<std::string> split_list(std::string_view text, std::string_view separators);
// The items of a repeatable option whose values may be lists themselves.
std::vector<std::string> split_lists(const std::vector<std::string>& texts, std::string_view separators = ",");

// A seed below 0 or absent is drawn here, so that it can be reported exactly in JSON (53 bits).
Result<sampling::SamplingParams> read_sampling(const OptionValues& options);
// The same with what was given explicitly and --dry-sequence-breaker.
Result<server::GenerationDefaults> read_generation(const OptionValues& options);
// Names of samplers for llama-server's letters.
Result<std::vector<std::string>> samplers_by_letter(const std::string& letters);
// "ID=BIAS", "ID+BIAS", "ID-BIAS"; BIAS may be inf.
Result<std::pair<int32_t, float>> parse_logit_bias(const std::string& text);

// --verbose and --quiet; sets the log level.
struct Verbosity {
  bool verbose = false, quiet = false;
};
Verbosity read_verbosity(const OptionValues& options);

}  // namespace vedette::cli
