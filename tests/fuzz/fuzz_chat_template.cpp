// Any bytes as a chat template: refused with a message, or rendered within its bounds.
#include <cstdint>
#include <string_view>

#include "fuzz_common.h"
#include "text/chat_template.h"

using namespace vedette;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto chat_template = text::ChatTemplate::parse({reinterpret_cast<const char*>(data), size});
  if (!chat_template.ok()) {
    fuzz::check_message(chat_template.error());
    return 0;
  }
  auto messages = parse_json(R"([{"role":"system","content":"s"},{"role":"user","content":[{"type":"text","text":"t"}]},
      {"role":"assistant","content":null,"tool_calls":[{"function":{"name":"f","arguments":{"a":1.5}}}]}])",
                             "messages");
  text::ChatRenderInput input;
  if (messages.ok()) input.messages = std::move(*messages);
  input.bos_token = "<s>";
  input.now = 0;
  if (const auto rendered = chat_template->render(input); !rendered.ok() && rendered.error().message.empty())
    std::abort();
  return 0;
}
