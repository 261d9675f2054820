// Any bytes as a safetensors file of a quantized model: refused, or every tensor can be read to its last element.
#include <cstdint>
#include <cstdlib>
#include <vector>

#include "fuzz_common.h"
#include "weights/readers.h"

using namespace vedette;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const Json config = fuzz::affine_config();
  const std::vector<std::byte> bytes = fuzz::copy(data, size);
  const auto checkpoint = weights::read_safetensors_bytes(bytes, config, "fuzz");
  if (checkpoint.ok())
    fuzz::read_all(*checkpoint);
  else
    fuzz::check_message(checkpoint.error());
  return 0;
}
