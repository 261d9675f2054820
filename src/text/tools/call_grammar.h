// Pieces of the Lark grammars (llguidance's dialect) that force a call.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "text/message_parser.h"

namespace vedette::text {

// A Lark string.
std::string lark_text(std::string_view text);
// A mark: a token reference where it is a special token, else a Lark string. A token whose text is not of the form
// <..> is referred to as <[text]>, which resolve_marks turns into its id.
std::string lark_mark(std::string_view mark, std::span<const std::string> special);
// A text in which marks may stand: strings and token references, one after the other.
std::string lark_marked(std::string_view text, std::span<const std::string> special);
// A grammar with every <[text]> replaced by <[id]>; token_id gives the id of a special token's text. Before compiling.
std::string resolve_marks(std::string_view grammar, const std::function<int32_t(std::string_view text)>& token_id);
// "%json {..}" for the schema; null stands for any object. root: where $defs come from.
std::string lark_json(const Json& schema, const Json* root = nullptr);

// The tools that a choice allows.
std::vector<const ToolSpec*> allowed_tools(std::span<const ToolSpec> tools, const ToolChoice& choice);

// "start: <open> call (<between> call)* <close>" and one rule call_N for each allowed tool, whose body is written by
// `body` (it may append rules of its own to `rules`, named after N). Empty open, between and close are left out.
struct CallFrame {
  std::string open = {}, between = {}, close = {};  // Lark expressions
};
using CallBody = std::function<std::string(const ToolSpec& tool, size_t n, std::string& rules)>;
std::string call_rules(std::span<const ToolSpec> tools, const ToolChoice& choice, const CallFrame& frame,
                       const CallBody& body);

// How a syntax writes one parameter. All but close_regex are Lark expressions.
struct ParameterForm {
  std::string open = {};         // before the value
  std::string close = {};        // after it
  std::string close_regex = {};  // a regular expression of the mark that ends a free string; empty: close is a token
  bool lazy = true;              // close_regex ends the string where it first matches, else a token after it does
  std::string after_text = {};   // what follows that mark
  std::string text_open = {};    // what stands before a free string, after open
  std::string text_close = {};   // a token after a free string where it differs from close
  std::string json_open = {};    // what stands before other values, after open
  bool json_strings = false;     // strings too are written as JSON
};
struct ParameterRule {
  std::string name;
  bool required = false;
};
// A rule for each parameter of a tool in the order of its schema. Strings are free text up to their closer (of an
// enum: its texts), other values are JSON of their schema.
std::vector<ParameterRule> parameter_rules(const ToolSpec& tool, size_t n, std::string& rules,
                                           const std::function<ParameterForm(const std::string& name)>& form);
// The parameters one after the other, or with commas between them (the required ones first).
std::string in_sequence(const std::vector<ParameterRule>& parameters);
std::string comma_separated(const std::vector<ParameterRule>& parameters, std::string_view comma);

}  // namespace vedette::text
