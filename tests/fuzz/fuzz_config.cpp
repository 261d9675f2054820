// Any bytes as config.json: refused with a message, or a spec that can be described. Every family is tried, because a
// random model_type is none of them.
#include <cstdint>
#include <cstdlib>
#include <string>

#include "fuzz_common.h"
#include "models/registry.h"
#include "weights/quantization.h"

using namespace vedette;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  auto json = parse_json(text, "config.json", {.max_bytes = 1u << 20});
  if (!json.ok()) {
    fuzz::check_message(json.error());
    return 0;
  }
  if (const auto quantization = weights::QuantizationConfig::parse(*json, "config.json"); !quantization.ok())
    fuzz::check_message(quantization.error());
  weights::Checkpoint checkpoint;
  checkpoint.path = "fuzz";
  checkpoint.config = std::move(*json);
  if (const auto family = models::find_family(checkpoint.config); !family.ok()) fuzz::check_message(family.error());
  for (const models::Family& family : models::families())
    if (const auto spec = family.build(checkpoint); !spec.ok()) fuzz::check_message(spec.error());
  return 0;
}
