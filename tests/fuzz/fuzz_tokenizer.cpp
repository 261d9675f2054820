// Any bytes as tokenizer.json: refused with a message, or a tokenizer that encodes and decodes.
#include <cstdint>
#include <string>

#include "fuzz_common.h"
#include "text/detokenizer.h"
#include "text/tokenizer.h"

using namespace vedette;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string json(reinterpret_cast<const char*>(data), size);
  const auto tokenizer = text::Tokenizer::create(weights::HfTokenizer{json, nullptr, nullptr});
  if (!tokenizer.ok()) {
    fuzz::check_message(tokenizer.error());
    return 0;
  }
  for (const char* text : {"", "Hello, world <s>", "\xe4\xb8\xad\xe6\x96\x87 12345\n\n  x", "\xff\xc3"}) {
    for (const bool parse : {false, true}) {
      const auto ids = tokenizer->encode(text, {.add_special = parse, .parse_special = parse});
      if (!ids.ok()) {
        fuzz::check_message(ids.error());
        continue;
      }
      (void)tokenizer->decode(*ids, parse);
      text::Detokenizer detokenizer(*tokenizer);
      for (const int32_t id : *ids) (void)detokenizer.push(id);
      (void)detokenizer.finish();
    }
  }
  return 0;
}
