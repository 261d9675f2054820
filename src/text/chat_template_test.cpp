#include "text/chat_template.h"

#include <gtest/gtest.h>

#include <map>
#include <string>

#include "base/mapped_file.h"
#include "text/chat_fallback.h"

namespace vedette::text {
namespace {

constexpr char kRefusal[] = " (the template refuses these messages: change them or the template)";

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

std::string repeated(std::string_view text, int count) {
  std::string out;
  for (int i = 0; i < count; ++i) out += text;
  return out;
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
        EXPECT_EQ(rendered.error().message, "chat template: " + raised->as_string() + kRefusal) << label;
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

// Steps that cost little fuel and take much memory: sums of long lists, long texts repeated by lists and filters.
TEST(ChatTemplate, MemoryIsBounded) {
  const std::string list = "{% set a = range(90000)|list %}{% set t = 'x' * 900000 %}";
  const std::string sum = "(a" + repeated("+a", 900) + ")";
  for (const std::string& expression :
       {sum + "|length", std::string("([t] * 90000) ~ ''"), std::string("range(9000)|tojson(separators=(t, t))"),
        std::string("raise_exception([t] * 90000)")}) {
    const auto chat_template = ChatTemplate::parse(list + "{{ " + expression + " }}");
    ASSERT_TRUE(chat_template.ok()) << chat_template.error().message;
    const auto rendered = chat_template->render(one_message("x"));
    ASSERT_FALSE(rendered.ok()) << expression.substr(0, 60);
    const std::string& message = rendered.error().message;
    EXPECT_TRUE(message.find("engine ran out of fuel") != std::string::npos ||
                message == "chat template: expected at most 1024 MiB of values, found more; use a simpler template" ||
                message == "chat template: expected to be done within 10 seconds, was not; use a simpler template")
        << expression.substr(0, 60) << ": " << message;
  }
}

// What a rendering beyond the limits holds is lost: its template may take less from then on, and still serves.
TEST(ChatTemplate, ATemplateThatWasGivenUpMayTakeLess) {
  const auto chat_template = ChatTemplate::parse(
      "{% if messages[0].content == 'much' %}{{ ['x' * 900000] * 90000 ~ '' }}{% else %}"
      "{{ messages[0].content }}{% endif %}");
  ASSERT_TRUE(chat_template.ok()) << chat_template.error().message;
  for (const auto& [memory, time] : {std::pair{"most 1024 MiB", "within 10 s"}, {"most 64 MiB", "within 2 s"}}) {
    const auto rendered = chat_template->render(one_message("much"));
    ASSERT_FALSE(rendered.ok());
    const std::string& message = rendered.error().message;
    EXPECT_TRUE(message.find(memory) != std::string::npos || message.find(time) != std::string::npos) << message;
    const auto others = chat_template->render(one_message("Hello"));
    ASSERT_TRUE(others.ok()) << others.error().message;
    EXPECT_EQ(*others, "Hello");
  }
}

// What no count of steps bounds, comparing long texts, is bounded by time.
TEST(ChatTemplate, TimeIsBounded) {
  const auto chat_template = ChatTemplate::parse(
      "{% set a = 'x y ' * 900000 %}{% set b = 'x y ' * 900000 %}{% for i in range(99000) %}{% for j in range(20) %}"
      "{% if a == b %}{% endif %}{% endfor %}{% endfor %}");
  ASSERT_TRUE(chat_template.ok()) << chat_template.error().message;
  const auto rendered = chat_template->render(one_message("x"));
  ASSERT_FALSE(rendered.ok());
  EXPECT_EQ(rendered.error().message,
            "chat template: expected to be done within 10 seconds, was not; use a simpler template");
}

void expect_one_line(const Error& error) {
  EXPECT_TRUE(error.message.starts_with("chat template: ")) << error.message;
  EXPECT_EQ(error.message.find('\n'), std::string::npos);
  EXPECT_LT(error.message.size(), 600u);
}

// Chains of any operator, that would become trees deeper than a stack, are refused by place.
TEST(ChatTemplate, LongChainsAreRefused) {
  const std::string one = "{{ 1";
  const std::string long_if = "{% if 0 %}" + repeated("{% elif 1 %}", 20000) + "{% endif %}";
  for (const std::string& source : {"{{ " + repeated("not ", 20000) + "1 }}",
                                    "{{ " + repeated("-", 20000) + "1 }}",
                                    one + repeated("+1", 50000) + " }}",
                                    one + repeated("~1", 50000) + " }}",
                                    one + repeated("**1", 50000) + " }}",
                                    one + repeated(" and 1", 20000) + " }}",
                                    one + repeated(" or 1", 20000) + " }}",
                                    one + repeated(" if 1 else 1", 20000) + " }}",
                                    one + repeated(" == 1", 20000) + " }}",
                                    one + repeated("|string", 20000) + " }}",
                                    one + repeated(" is string", 20000) + " }}",
                                    "{{ messages" + repeated(".a", 50000) + " }}",
                                    "{{ messages" + repeated("[0]", 50000) + " }}",
                                    "{{ a" + repeated("()", 50000) + " }}",
                                    "{{ " + repeated("[", 50000) + " }}",
                                    "{{ " + repeated("(", 900) + "1" + repeated(")", 900) + " }}",
                                    "{% set x = 1" + repeated("+1", 50000) + " %}",
                                    "{% if 1" + repeated("+1", 50000) + " %}{% endif %}",
                                    "{{ {'a':{'b':1}}" + repeated("+1", 50000) + " }}",
                                    one + repeated("+1", 50000),
                                    long_if,
                                    repeated("{% if 1 %}", 20000),
                                    repeated("{% for a in b %}", 20000),
                                    std::string(600000, 'x'),
                                    "{# " + std::string(600000, 'x') + " #}"}) {
    const auto chat_template = ChatTemplate::parse(source);
    ASSERT_FALSE(chat_template.ok()) << source.substr(0, 60);
    EXPECT_EQ(chat_template.error().kind, ErrorKind::kCorruptFile);
    expect_one_line(chat_template.error());
  }
}

// Just inside the limits a template is read, rendered and freed.
TEST(ChatTemplate, LongChainsWithinLimitsWork) {
  const std::map<std::string, std::string> cases = {
      {"{{ 1" + repeated("+1", 990) + " }}", "991"},
      {"{{ " + repeated("not ", 1990) + "1 }}", "True"},
      {"{{ 'a'" + repeated("|string", 990) + " }}", "a"},
      {"{% set x = 'a'" + repeated("~'a'", 900) + " %}{{ x|length }}", "901"},
      {"{% if 0 %}" + repeated("{% elif 0 %}", 499) + "{% else %}e{% endif %}", "e"},
      {repeated("{% if 1 %}", 100) + "x" + repeated("{% endif %}", 100), "x"}};
  for (const auto& [source, text] : cases) {
    const auto chat_template = ChatTemplate::parse(source);
    ASSERT_TRUE(chat_template.ok()) << source.substr(0, 60) << chat_template.error().message;
    const auto rendered = chat_template->render(one_message("x"));
    ASSERT_TRUE(rendered.ok()) << source.substr(0, 60) << rendered.error().message;
    EXPECT_EQ(*rendered, text) << source.substr(0, 60);
  }
}

// Values that a loop or a long text nests without end, that refer to each other in chains, or to themselves.
TEST(ChatTemplate, EndlessValuesAreRefused) {
  const auto loop = [](const std::string& set, const std::string& then) {
    return "{% set ns = namespace(a=[1]) %}{% for i in range(90000) %}{% set " + set + " %}{% endfor %}" + then;
  };
  const std::string nest = "ns.a = [ns.a]";
  for (const std::string& source :
       {loop(nest, "{{ ns.a }}"), loop(nest, "{{ ns.a|string }}"), loop(nest, "{{ {ns.a: 1} }}"), loop(nest, "done"),
        loop(nest, "{{ ns.a|tojson }}"), loop(nest, "{{ ns.a == ns.a }}"), loop("ns.a = {'b': ns.a}", "{{ ns.a }}"),
        loop("ns.a = (ns.a, 1)", "{{ ns.a }}"), loop("ns.a, ns.b = [ns.a], 1", "{{ ns.a }}"),
        loop("ns.a | default([ns.a], true) %}{% endset", "{{ ns.a }}"), loop("ns.a = ns.a|map('string')|list, 1", ""),
        loop("ns.a = ns.a|batch(1)|list", "{{ ns.a }}"), loop("ns.a = namespace(b=ns.a)", "{{ ns.a }}"),
        std::string("{% set ns = namespace() %}{% set ns.a = ns %}{{ ns }}"),
        std::string("{% set ns = namespace() %}{% set ns.a = [{'b': ns}] %}{{ ns }}"),
        std::string("{% for i in [1] %}{% set ns = namespace() %}{% set ns.a = loop %}{% endfor %}"),
        std::string("{% macro m() %}{% endmacro %}{% set ns = namespace() %}{% set ns.a = m %}{{ ns }}"),
        "{% set x = [1] %}" + repeated("{% set x = [x] %}", 20000) + "{{ x }}",
        "{% set x = 1 %}" + repeated("{% set x = namespace(x=x) %}", 15000) + "{{ x }}"}) {
    const auto chat_template = ChatTemplate::parse(source);
    ASSERT_TRUE(chat_template.ok()) << source.substr(0, 120) << ": " << chat_template.error().message;
    const auto rendered = chat_template->render(one_message("x"));
    ASSERT_FALSE(rendered.ok()) << source.substr(0, 120);
    expect_one_line(rendered.error());
  }
}

// Lists that grow in a loop, as templates collect messages, are lists and not chains of sums.
TEST(ChatTemplate, ListsGrowInALoop) {
  const std::map<std::string, std::string> cases = {
      {"{% set ns = namespace(a=[]) %}{% for i in range(2000) %}{% set ns.a = ns.a + [i] %}{% endfor %}{{ ns.a|length "
       "}} "
       "{{ ns.a[1999] }}",
       "2000 1999"},
      {"{% set ns = namespace(a=range(2000)) %}{% for i in range(1998) %}{% set ns.a = ns.a[1:] %}{% endfor %}{{ ns.a "
       "}}",
       "[1998, 1999]"},
      {"{% for i in [1, 2] %}{% set outer = loop %}{% for j in [1] %}{{ outer.index }}{% endfor %}{% endfor %}", "12"},
      {"{% set a, b = 1, (2, 3) %}{{ a }}{{ b[1] }}{% set c = {'k': [1]} %}{{ c.k[0] }}{% set d = undefined_name %}"
       "{{ d is defined }}",
       "131False"}};
  for (const auto& [source, text] : cases) {
    const auto chat_template = ChatTemplate::parse(source);
    ASSERT_TRUE(chat_template.ok()) << source << chat_template.error().message;
    const auto rendered = chat_template->render(one_message("x"));
    ASSERT_TRUE(rendered.ok()) << source << rendered.error().message;
    EXPECT_EQ(*rendered, text) << source;
  }
}

// What a macro, a caller or a recursive loop passes on to itself is bounded as an assignment is.
TEST(ChatTemplate, CallsDoNotNestValues) {
  const std::string open = repeated("[", 60), close = repeated("]", 60);
  const std::string sum = repeated("+[1]", 200);
  const auto render = [](const std::string& source) {
    const auto chat_template = ChatTemplate::parse(source);
    EXPECT_TRUE(chat_template.ok()) << chat_template.error().message;
    return chat_template->render(one_message("x"));
  };
  const auto macro = [](const std::string& argument) {
    return "{% macro m(x, n) %}{% if n %}{{ m(" + argument +
           ", n - 1) }}{% else %}{{ x|length }}{% endif %}{% endmacro %}{{ m([1], 12) }}";
  };
  const auto deep = render(macro(open + "x" + close));
  ASSERT_FALSE(deep.ok());
  expect_one_line(deep.error());
  const auto sums = render(macro("x" + sum));
  ASSERT_TRUE(sums.ok()) << sums.error().message;
  EXPECT_EQ(*sums, "2401");
  const auto loop = render("{% for x in [[1]] recursive %}{{ loop([" + open + "x" + close + "]) }}{% endfor %}");
  ASSERT_FALSE(loop.ok());
  expect_one_line(loop.error());
  const auto optional =
      render("{% macro m(a, b) -%}\n  {{ a }}{{ b is defined }}{% endmacro %}{{ m(1) }}{{ m(1, 2) }}");
  ASSERT_TRUE(optional.ok()) << optional.error().message;
  EXPECT_EQ(*optional, "1False1True");
}

TEST(ChatTemplate, ErrorsNameTheTemplate) {
  const auto raising = ChatTemplate::parse("{{ raise_exception(\"no\") }}");
  ASSERT_TRUE(raising.ok());
  const auto rendered = raising->render(one_message("x"));
  ASSERT_FALSE(rendered.ok());
  EXPECT_EQ(rendered.error().message, std::string("chat template: no") + kRefusal);
  const auto endless = ChatTemplate::parse("{{ raise_exception('\x1b[2J\xc2\x9b\n' ~ 'x' * 100000) }}");
  ASSERT_TRUE(endless.ok());
  const std::string message = endless->render(one_message("x")).error().message;
  EXPECT_TRUE(message.starts_with("chat template:  [2J  xxx")) << message;
  EXPECT_LT(message.size(), 1200u);
  const auto latin = ChatTemplate::parse("caf\xe9 {{ messages }}");
  ASSERT_FALSE(latin.ok());
  EXPECT_EQ(latin.error().kind, ErrorKind::kCorruptFile);
  EXPECT_EQ(latin.error().message,
            "chat template: expected UTF-8 text, found an invalid byte at 3; save the template as UTF-8");
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
