// The tool syntaxes, one file each; registry.cpp lists them.
#pragma once

#include "text/message_parser.h"

namespace vedette::text {

const ToolSyntax& atem_syntax();
const ToolSyntax& deepseek_syntax();
const ToolSyntax& dsml_syntax();
const ToolSyntax& gemma_syntax();
const ToolSyntax& glm_syntax();
const ToolSyntax& harmony_syntax();
const ToolSyntax& hermes_syntax();
const ToolSyntax& json_list_syntax();
const ToolSyntax& kimi_syntax();
const ToolSyntax& lfm2_syntax();
const ToolSyntax& llama3_syntax();
const ToolSyntax& minicpm_syntax();
const ToolSyntax& minimax_syntax();
const ToolSyntax& mistral_syntax();
const ToolSyntax& qwen_xml_syntax();
const ToolSyntax& seed_syntax();

}  // namespace vedette::text
