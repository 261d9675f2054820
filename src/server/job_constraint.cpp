#include "server/job_constraint.h"

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "text/tools/call_grammar.h"

namespace vedette::server {
namespace {

bool forces_call(const GenerateJob& job) {
  return job.tool_choice.kind == text::ToolChoiceKind::kRequired ||
         job.tool_choice.kind == text::ToolChoiceKind::kNamed;
}

Status check_tool_choice(const GenerateJob& job) {
  if (!forces_call(job)) return ok_status();
  if (job.tools.empty())
    return invalid_request("tool_choice", "tool_choice: a call is required, but tools names no function; add one");
  if (job.format.grammar)
    return invalid_request("tool_choice",
                           "tool_choice: a required call and {} exclude each other; leave one of them out",
                           job.format.field.empty() ? "an output format" : job.format.field);
  const auto named = [&](const text::ToolSpec& tool) { return tool.name == job.tool_choice.name; };
  if (job.tool_choice.kind == text::ToolChoiceKind::kNamed && std::none_of(job.tools.begin(), job.tools.end(), named))
    return invalid_request("tool_choice", "tool_choice: no tool is named '{}'; name one of tools",
                           job.tool_choice.name);
  return ok_status();
}

Error at_field(Error error, const std::string& field) {
  if (field.empty()) return error;
  error.message = field + ": " + error.message;
  error.field = field;
  return error;
}

Result<std::unique_ptr<sampling::Constraint>> inner_constraint(const ServedModel& model, const GenerateJob& job) {
  if (forces_call(job)) {
    const text::Grammar grammar{text::GrammarKind::kLark, model.message_format.tools->call_grammar(
                                                              job.tools, job.tool_choice, model.special_marks)};
    VEDETTE_ASSIGN_OR_RETURN(const text::GrammarCompiler* grammars, model.grammars());
    auto compiled = grammars->compile(grammar);
    if (!compiled.ok()) return at_field(std::move(compiled).error(), "tools");
    return compiled;
  }
  const std::optional<text::Grammar> grammar = job.format.grammar ? job.format.grammar : model.defaults.load()->grammar;
  if (!grammar) return std::unique_ptr<sampling::Constraint>();
  VEDETTE_ASSIGN_OR_RETURN(const text::GrammarCompiler* grammars, model.grammars());
  auto compiled = grammars->compile(*grammar);
  if (!compiled.ok()) return at_field(std::move(compiled).error(), job.format.field);
  return compiled;
}

}  // namespace

bool may_reason(const ServedModel& model, const GenerateJob& job) {
  if (!job.split_message || !model.message_format.reasoning || job.prompts.empty()) return false;
  const auto* conversation = std::get_if<Conversation>(&job.prompts[0]);
  if (conversation == nullptr || conversation->thinking == Thinking::kOff) return false;
  if (conversation->thinking == Thinking::kOn) return true;
  return model.defaults.load()->thinking.value_or(true);
}

bool opens_reasoning(const text::ReasoningMarks& marks, std::string_view prompt_text) {
  const size_t open = prompt_text.rfind(marks.open);
  return open != std::string_view::npos && prompt_text.find(marks.close, open) == std::string_view::npos;
}

Result<JobConstraint> JobConstraint::make(const ServedModel& model, const GenerateJob& job) {
  VEDETTE_RETURN_IF_ERROR(check_tool_choice(job));
  JobConstraint constraint(model, job);
  VEDETTE_ASSIGN_OR_RETURN(constraint.inner_, inner_constraint(model, job));
  return constraint;
}

Result<std::shared_ptr<const sampling::Constraint>> JobConstraint::of(std::string_view prompt_text) const {
  using Shared = std::shared_ptr<const sampling::Constraint>;
  const ServedModel& model = *model_;
  if (!may_reason(model, *job_)) return inner_;
  if (!inner_ && job_->thinking_budget < 0 && !job_->end_reasoning) return Shared();
  const text::ReasoningMarks& marks = *model.message_format.reasoning;
  text::ReasoningGate gate;
  gate.starts_inside = opens_reasoning(marks, prompt_text);
  gate.may_open = !gate.starts_inside;
  gate.budget = job_->thinking_budget;
  gate.ended = job_->end_reasoning;
  gate.end = model.report.eos;
  gate.tokenizer = &model.tokenizer();
  gate.close_text = marks.close;
  VEDETTE_ASSIGN_OR_RETURN(gate.open, text::mark_ids(model.tokenizer(), marks.open));
  VEDETTE_ASSIGN_OR_RETURN(gate.close, text::mark_ids(model.tokenizer(), marks.close));
  return Shared(text::gate_reasoning(std::move(gate), inner_ ? inner_->clone() : nullptr));
}

}  // namespace vedette::server
