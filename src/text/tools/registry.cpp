#include <array>

#include "text/tools/syntaxes.h"

namespace vedette::text {

// Most telling first: a template speaks the first syntax that recognises it.
std::span<const ToolSyntax* const> tool_syntaxes() {
  static const std::array<const ToolSyntax*, 16> kSyntaxes = {
      &harmony_syntax(), &atem_syntax(),   &gemma_syntax(),     &minimax_syntax(),
      &minicpm_syntax(), &seed_syntax(),   &dsml_syntax(),      &deepseek_syntax(),
      &kimi_syntax(),    &glm_syntax(),    &qwen_xml_syntax(),  &mistral_syntax(),
      &lfm2_syntax(),    &llama3_syntax(), &json_list_syntax(), &hermes_syntax()};
  return kSyntaxes;
}

const ToolSyntax* find_tool_syntax(std::string_view name) {
  for (const ToolSyntax* syntax : tool_syntaxes())
    if (syntax->name() == name) return syntax;
  return nullptr;
}

const ToolSyntax& detect_tool_syntax(std::string_view template_source) {
  for (const ToolSyntax* syntax : tool_syntaxes())
    if (syntax->spoken_by(template_source)) return *syntax;
  return hermes_syntax();
}

}  // namespace vedette::text
