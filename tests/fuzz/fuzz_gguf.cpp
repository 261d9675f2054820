// Any bytes as a GGUF file: refused, or its configuration, vocabulary and every tensor can be read.
#include <cstdint>
#include <cstdlib>
#include <vector>

#include "fuzz_common.h"
#include "weights/readers.h"

using namespace vedette;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::vector<std::byte> bytes = fuzz::copy(data, size);
  const auto checkpoint = weights::read_gguf_bytes(bytes, "fuzz");
  if (checkpoint.ok())
    fuzz::read_all(*checkpoint);
  else
    fuzz::check_message(checkpoint.error());
  return 0;
}
