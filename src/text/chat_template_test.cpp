#include "text/chat_template.h"

#include <gtest/gtest.h>

#include <map>
#include <string>

#include "base/mapped_file.h"
#include "text/chat_fallback.h"

namespace vedette::text {
namespace {

std::string golden(const std::string& name) {
  const std::string path = std::string(VEDETTE_SOURCE_DIR) + "/tests/golden/tokenizer/" + name;
  auto text = read_text_file(path, 1 << 24);
  EXPECT_TRUE(text.ok()) << path;
  return text.ok() ? *text : std::string();
}

ChatRenderInput input_of(const Json& given, int64_t now) {
  ChatRenderInput input;
  input.messages = *given.find("messages");
  if (const Json* tools = given.find("tools")) input.tools = *tools;
  if (const Json* add = given.find("add_generation_prompt")) input.add_generation_prompt = add->as_bool();
  if (const Json* extra = given.find("extra")) input.extra = *extra;
  input.bos_token = "<s>";
  input.eos_token = "</s>";
  input.now = now;
  return input;
}

ChatRenderInput one_message(const char* content) {
  ChatRenderInput input;
  Json message = Json::object();
  message.set("role", "user");
  message.set("content", content);
  input.messages = Json(Json::Array{message});
  return input;
}

// Every template and conversation as transformers renders it; where it raises, so do we, with the template's text.
TEST(ChatTemplate, EqualsTransformers) {
  const auto parsed = parse_json(golden("chat_cases.json"), "chat_cases.json");
  ASSERT_TRUE(parsed.ok()) << parsed.error().message;
  int texts = 0, errors = 0;
  for (const Json& one : parsed->find("cases")->as_array()) {
    const std::string name = one.find("template")->as_string();
    if (name == "SmolLM2") continue;  // its template is in the model: tokenizer_golden_test
    const std::string label = name + " / " + one.find("name")->as_string();
    const auto chat_template = ChatTemplate::parse(golden("chat/" + name + ".jinja"));
    ASSERT_TRUE(chat_template.ok()) << label << ": " << chat_template.error().message;
    const Json& given = *parsed->find("inputs")->find(one.find("input")->as_string());
    const auto rendered = chat_template->render(input_of(given, parsed->find("now")->as_int()));
    if (const Json* text = one.find("text")) {
      ++texts;
      ASSERT_TRUE(rendered.ok()) << label << ": " << rendered.error().message;
      EXPECT_EQ(*rendered, text->as_string()) << label;
    } else {
      ++errors;
      ASSERT_FALSE(rendered.ok()) << label << ": " << *rendered;
      EXPECT_EQ(rendered.error().kind, ErrorKind::kInvalidRequest) << label;
      if (const Json* raised = one.find("raised"); raised->is_string()) {
        EXPECT_EQ(rendered.error().message, raised->as_string()) << label;
      }
    }
  }
  EXPECT_GE(texts, 140);
  EXPECT_GE(errors, 8);
}

// A template that cannot be read is refused with its line and column.
TEST(ChatTemplate, SyntaxErrorHasLineAndColumn) {
  const std::map<std::string, std::string> cases = {
      {"{{ a }}\n{% for x in %}{% endfor %}", "line 2, column "},
      {"one\ntwo {{ 'abc' }", "line 2, column "},
      {"{% if a %}", "line 1, column "},
      {"{{ a }}\n\n   {% nonsense %}", "line 3, column 7"},
      {"{% endfor %}", "line 1, column "},
      {"{{ a | no_such_filter }}", ""},
  };
  for (const auto& [source, where] : cases) {
    const auto chat_template = ChatTemplate::parse(source);
    if (where.empty()) {  // known only when it is rendered
      ASSERT_TRUE(chat_template.ok());
      const auto rendered = chat_template->render(one_message("x"));
      ASSERT_FALSE(rendered.ok());
      EXPECT_NE(rendered.error().message.find("no_such_filter"), std::string::npos) << rendered.error().message;
      continue;
    }
    ASSERT_FALSE(chat_template.ok()) << source;
    EXPECT_EQ(chat_template.error().kind, ErrorKind::kCorruptFile);
    EXPECT_NE(chat_template.error().message.find(where), std::string::npos) << chat_template.error().message;
    EXPECT_EQ(chat_template.error().message.find('\n'), std::string::npos);
  }
}

TEST(ChatTemplate, RenderErrorShowsTheLine) {
  const auto chat_template = ChatTemplate::parse("ok\n{{ messages[0].content + 1 }}\n");
  ASSERT_TRUE(chat_template.ok());
  const auto rendered = chat_template->render(one_message("x"));
  ASSERT_FALSE(rendered.ok());
  EXPECT_NE(rendered.error().message.find("line 2"), std::string::npos) << rendered.error().message;
  EXPECT_NE(rendered.error().message.find("messages[0].content + 1"), std::string::npos) << rendered.error().message;
}

// A template cannot hang or exhaust the process: its work is bounded.
TEST(ChatTemplate, WorkIsBounded) {
  for (const char* source :
       {"{% for a in range(99999) %}{% for b in range(99999) %}{% for c in range(99999) %}x{% endfor %}{% endfor %}{% "
        "endfor %}",
        "{{ 'x' * 100000000000 }}", "{{ [0] * 100000000000 }}", "{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}",
        "{% set ns = namespace(x='ab') %}{% for i in range(64) %}{% set ns.x = ns.x ~ ns.x %}{% endfor %}{{ ns.x }}",
        "{{ '%99999999999d' | format(1) }}", "{{ 'x'.center(99999999999) }}"}) {
    const auto chat_template = ChatTemplate::parse(source);
    ASSERT_TRUE(chat_template.ok()) << source;
    EXPECT_FALSE(chat_template->render(one_message("x")).ok()) << source;
  }
}

TEST(ChatTemplate, DeepValuesDoNotOverflowTheStack) {
  const auto chat_template = ChatTemplate::parse(
      "{% set ns = namespace(x=[]) %}{% for i in range(90000) %}{% set ns.x = [ns.x] %}{% endfor %}done");
  ASSERT_TRUE(chat_template.ok());
  const auto rendered = chat_template->render(one_message("x"));
  if (rendered.ok()) {
    EXPECT_EQ(*rendered, "done");
  }
}

TEST(ChatTemplate, StrangeInputIsAnErrorOrText) {
  const auto chat_template = ChatTemplate::parse("{% for m in messages %}{{ m.role }}{{ m.content }}{% endfor %}");
  ASSERT_TRUE(chat_template.ok());
  for (const Json& messages :
       {Json(nullptr), Json(3), Json("text"), Json::object(), Json(Json::Array{1, nullptr, "x"})}) {
    ChatRenderInput input;
    input.messages = messages;
    (void)chat_template->render(input);
  }
  ChatRenderInput input = one_message("bad \xff bytes");
  (void)chat_template->render(input);
  EXPECT_FALSE(ChatTemplate::parse("{{ \xff }}").ok());
  EXPECT_TRUE(ChatTemplate::parse("\xff text").ok());
}

TEST(ChatFallback, WritesRolesAndContents) {
  const auto parsed =
      parse_json(R"([{"role":"system","content":"S"},{"role":"user","content":[{"type":"text","text":"a"},
      {"type":"text","text":"b"}]}])",
                 "test");
  ASSERT_TRUE(parsed.ok());
  const auto text = render_chat_fallback(*parsed, nullptr, true, "<bos>");
  ASSERT_TRUE(text.ok());
  EXPECT_EQ(*text, "<bos>system: S\n\nuser: ab\n\nassistant:");
  EXPECT_EQ(render_chat_fallback(Json("x"), nullptr, true, "").error().field, "messages");
  EXPECT_EQ(render_chat_fallback(Json(Json::Array{Json::object()}), nullptr, true, "").error().field,
            "messages[0].role");
  EXPECT_EQ(render_chat_fallback(*parsed, Json(Json::Array{1}), true, "").error().field, "tools");
  const auto image = parse_json(R"([{"role":"user","content":[{"type":"image"}]}])", "test");
  EXPECT_EQ(render_chat_fallback(*image, nullptr, true, "").error().field, "messages[0].content[0]");
}

}  // namespace
}  // namespace vedette::text
