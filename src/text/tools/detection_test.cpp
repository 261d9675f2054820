#include <gtest/gtest.h>

#include "text/message_parser.h"

namespace vedette::text {
namespace {

struct Case {
  const char* source;  // what a template of the family says
  const char* syntax;
  const char* open;  // of the reasoning marks; empty: none
};

constexpr Case kCases[] = {
    {"", "hermes", ""},
    {"{{ messages[0].content }}", "hermes", ""},
    {R"({{ '<tool_call>\n{"name": "' + tool_call.name + '", "arguments": ' }}{{ '<think>\n' }}</think>)", "hermes",
     "<think>"},
    {R"({{ '\n<tool_call>\n<function=' + tool_call.name + '>\n' }}{{ '<parameter=' + args_name + '>\n' }})", "qwen_xml",
     ""},
    {R"({{ '<|tool_call>call:' + function['name'] + '{' }}{{ '<|channel>thought\n' }}<|think|>)", "gemma",
     "<|channel>thought"},
    {R"({{ "[TOOL_CALLS][" }})", "mistral", ""},
    {R"({{ '[TOOL_CALLS]' }}{{ name + '[ARGS]' }}{{ '[THINK]' + block['thinking'] + '[/THINK]' }})", "mistral",
     "[THINK]"},
    {R"({{ "<|python_tag|>" + tool_call.name + ".call(" }})", "llama3", ""},
    {R"(<|start_header_id|>{{ '{"name": "' + tool_call.name + '", ' }}{{ '"parameters": ' }})", "llama3", ""},
    {R"(<|start_header_id|><tool_call>{{ '"parameters": ' }})", "hermes", ""},
    {R"({{ '<tool_call>' + tc.name }}<arg_key>{{ k }}</arg_key>{{ '<think></think>' }})", "glm", "<think>"},
    {"<|tool_calls_section_begin|><|tool_call_begin|>{{ id }}<think>{{ rc }}</think>", "kimi", "<think>"},
    {"{{ '<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>' }}{{ '<think>' }}", "deepseek", "<think>"},
    {"{%- set dsml_token = '｜DSML｜' -%}</think>", "dsml", "<think>"},
    {R"(<atem:function_calls>\n<atem:invoke name="{{ ' to=self<|message|>' }}<|eom|>)", "atem", "to=self<|message|>"},
    {R"(<|tool_call_start|>[{{ calls }}]<think>)", "lfm2", "<think>"},
    {R"({{ '<function name="' ~ tool_call.name ~ '">' }}<param name=</think>)", "minicpm", "<think>"},
    {"{%- set toolcall_begin_token = '<minimax:tool_call>' -%}</think>", "minimax", "<think>"},
    {"{%- set think = '<seed:think>' -%}'<seed:tool_call>' <function=", "seed", "<seed:think>"},
    {"<|START_THINKING|>{{ r }}<|END_THINKING|><|START_ACTION|>[", "json_list", "<|START_THINKING|>"},
    {"followed by <|tool_call|> and a JSON list", "json_list", ""},
    {R"({{ "<|start|>assistant<|channel|>analysis<|message|>" }} channel commentary must commentary <|end|>)",
     "harmony", "<|channel|>analysis<|message|>"},
};

TEST(Detection, TemplatesTellSyntaxAndReasoning) {
  for (const Case& c : kCases) {
    EXPECT_STREQ(detect_tool_syntax(c.source).name(), c.syntax) << c.source;
    const auto marks = detect_reasoning(c.source);
    EXPECT_EQ(marks ? marks->open : "", c.open) << c.source;
  }
}

TEST(Detection, EverySyntaxIsFoundByItsName) {
  for (const ToolSyntax* syntax : tool_syntaxes()) {
    EXPECT_EQ(find_tool_syntax(syntax->name()), syntax);
    EXPECT_FALSE(syntax->markers().empty()) << syntax->name();
    for (std::string_view mark : syntax->markers()) EXPECT_FALSE(mark.empty());
  }
  EXPECT_EQ(find_tool_syntax("nope"), nullptr);
}

}  // namespace
}  // namespace vedette::text
