#include "text/tools/call_grammar.h"

#include <algorithm>

#include "text/tools/typed_value.h"

namespace vedette::text {

std::string lark_text(std::string_view text) {
  return Json(text).dump();
}

std::string lark_mark(std::string_view mark, std::span<const std::string> special) {
  for (const std::string& token : special) {
    if (token != mark) continue;
    const bool bracketed = mark.size() > 2 && mark.front() == '<' && mark.back() == '>' && mark[1] != '[' &&
                           mark.find_first_of("<> \t\n", 1) == mark.size() - 1;
    return bracketed ? std::string(mark) : "<[" + std::string(mark) + "]>";
  }
  return lark_text(mark);
}

std::string lark_marked(std::string_view text, std::span<const std::string> special) {
  std::string out;
  size_t plain = 0;
  for (size_t at = 0; at <= text.size();) {
    const std::string* found = nullptr;
    for (const std::string& mark : special) {
      const bool here = !mark.empty() && text.substr(at).starts_with(mark);
      if (here && (found == nullptr || mark.size() > found->size())) found = &mark;
    }
    if (found == nullptr && at < text.size()) {
      ++at;
      continue;
    }
    if (at > plain) out += lark_text(text.substr(plain, at - plain)) + " ";
    if (found == nullptr) break;
    out += lark_mark(*found, special) + " ";
    at += found->size();
    plain = at;
  }
  return out;
}

namespace {

// The end of the string, regular expression or token reference that begins at `at`; at + 1 where none does.
size_t lexeme_end(std::string_view grammar, size_t at) {
  const char c = grammar[at];
  if (grammar.substr(at).starts_with("<[")) {
    const size_t end = grammar.find("]>", at);
    return end == grammar.npos ? at + 1 : end + 2;
  }
  if (c == '<') {
    const size_t end = grammar.find_first_of("<> \t\n", at + 1);
    return end != grammar.npos && grammar[end] == '>' ? end + 1 : at + 1;
  }
  if (c != '"' && c != '/') return at + 1;
  size_t end = at + 1;
  while (end < grammar.size() && grammar[end] != c) end += grammar[end] == '\\' ? 2 : 1;
  return std::min(end + 1, grammar.size());
}

}  // namespace

std::string resolve_marks(std::string_view grammar, const std::function<int32_t(std::string_view text)>& token_id) {
  std::string out;
  for (size_t at = 0; at < grammar.size();) {
    const size_t end = lexeme_end(grammar, at);
    const std::string_view lexeme = grammar.substr(at, end - at);
    at = end;
    const bool reference = lexeme.starts_with("<[") && lexeme.ends_with("]>");
    const std::string_view name = reference ? lexeme.substr(2, lexeme.size() - 4) : std::string_view();
    if (name.find_first_not_of("0123456789-,^*") == name.npos) {
      out += lexeme;
    } else {
      out += "<[" + std::to_string(token_id(name)) + "]>";
    }
  }
  return out;
}

std::string lark_json(const Json& schema, const Json* root) {
  if (schema.is_bool() && schema.as_bool()) return "%json {}";
  if (!schema.is_object()) return R"(%json {"type": "object"})";
  Json whole = schema;
  for (const char* key : {"$defs", "definitions"}) {
    const Json* defs = root == nullptr ? nullptr : root->find(key);
    if (defs != nullptr && whole.find(key) == nullptr) whole.set(key, *defs);
  }
  return "%json " + whole.dump();
}

std::vector<const ToolSpec*> allowed_tools(std::span<const ToolSpec> tools, const ToolChoice& choice) {
  std::vector<const ToolSpec*> allowed;
  for (const ToolSpec& tool : tools)
    if (choice.kind != ToolChoiceKind::kNamed || tool.name == choice.name) allowed.push_back(&tool);
  return allowed;
}

std::string call_rules(std::span<const ToolSpec> tools, const ToolChoice& choice, const CallFrame& frame,
                       const CallBody& body) {
  std::string rules, calls, start = "start:";
  const auto allowed = allowed_tools(tools, choice);
  for (size_t n = 0; n < allowed.size(); ++n) {
    const std::string name = "call_" + std::to_string(n);
    calls += (n == 0 ? "call: " : " | ") + name;
    const std::string text = body(*allowed[n], n, rules);
    rules += name + ": " + text + "\n";
  }
  if (!frame.open.empty()) start += " " + frame.open;
  start += " call";
  if (choice.parallel) start += frame.between.empty() ? " call*" : " (" + frame.between + " call)*";
  if (!frame.close.empty()) start += " " + frame.close;
  return start + "\n" + calls + "\n" + rules;
}

namespace {

bool is_required(const Json& parameters, const std::string& name) {
  const Json* required = parameters.find("required");
  if (required == nullptr || !required->is_array()) return false;
  for (const Json& item : required->as_array())
    if (item.is_string() && item.as_string() == name) return true;
  return false;
}

// The texts of a string enum or constant; empty where the value is free.
std::vector<std::string> fixed_texts(const Json& schema) {
  std::vector<std::string> texts;
  if (const Json* value = schema.find("const"); value != nullptr && value->is_string()) return {value->as_string()};
  const Json* values = schema.find("enum");
  if (values == nullptr || !values->is_array()) return {};
  for (const Json& value : values->as_array()) {
    if (!value.is_string()) return {};
    texts.push_back(value.as_string());
  }
  return texts;
}

}  // namespace

std::vector<ParameterRule> parameter_rules(const ToolSpec& tool, size_t n, std::string& rules,
                                           const std::function<ParameterForm(const std::string& name)>& form) {
  std::vector<ParameterRule> parameters;
  const Json* properties = tool.parameters.find("properties");
  if (properties == nullptr || !properties->is_object()) return parameters;
  for (const auto& [name, schema] : properties->as_object()) {
    const std::string rule = "arg_" + std::to_string(n) + "_" + std::to_string(parameters.size());
    parameters.push_back({rule, is_required(tool.parameters, name)});
    const ParameterForm marks = form(name);
    const ValueTypes types = value_types(&schema, &tool.parameters);
    const auto texts = fixed_texts(schema);
    const bool free = !marks.json_strings && (types.string || !types.known);
    if (!free) {
      rules += rule + ": " + marks.open + " " + marks.json_open + " " + lark_json(schema, &tool.parameters) + " " +
               marks.close + "\n";
      continue;
    }
    const std::string open = marks.open + " " + marks.text_open;
    if (!texts.empty()) {
      rules += rule + ": " + open + " (";
      for (size_t i = 0; i < texts.size(); ++i) rules += (i == 0 ? "" : " | ") + lark_text(texts[i]);
      rules += ") " + marks.text_close + " " + marks.close + "\n";
    } else if (marks.close_regex.empty()) {
      rules += rule + ": " + open + " " + rule + "_text " + marks.text_close + " " + marks.close + "\n";
      rules += rule + "_text: /(.|\\n)*/\n";
    } else {
      rules += rule + ": " + open + " " + rule + "_text " + marks.after_text + "\n";
      rules += rule + (marks.lazy ? "_text[lazy]" : "_text") + ": /(.|\\n)*" + marks.close_regex + "/\n";
    }
  }
  return parameters;
}

std::string in_sequence(const std::vector<ParameterRule>& parameters) {
  std::string all;
  for (const ParameterRule& rule : parameters) all += rule.name + (rule.required ? " " : "? ");
  return all;
}

std::string comma_separated(const std::vector<ParameterRule>& parameters, std::string_view comma) {
  const std::string separator = lark_text(comma) + " ";
  std::string required, optional, starts;
  for (size_t i = 0; i < parameters.size(); ++i) {
    const ParameterRule& rule = parameters[i];
    if (rule.required) {
      required += (required.empty() ? "" : separator) + rule.name + " ";
      continue;
    }
    optional += "(" + separator + rule.name + ")? ";
    // Where none is required, any one may come first: each start is an alternative.
    starts += (starts.empty() ? "" : "| ") + rule.name + " ";
    for (size_t j = i + 1; j < parameters.size(); ++j) starts += "(" + separator + parameters[j].name + ")? ";
  }
  if (!required.empty()) return required + optional;
  return starts.empty() ? "" : "(" + starts + ")?";
}

}  // namespace vedette::text
