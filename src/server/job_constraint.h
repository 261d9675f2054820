// The constraint of a job's replies: a forced call or an output format, behind the gate of the model's reasoning.
#pragma once

#include <memory>
#include <string_view>

#include "base/result.h"
#include "sampling/constraint.h"
#include "server/job.h"
#include "server/served_model.h"

namespace vedette::server {

// Null where replies are free. Errors (kInvalidRequest) name the field: a schema or grammar that cannot be enforced, a
// forced call without tools, a forced call beside an output format.
Result<std::shared_ptr<const sampling::Constraint>> make_constraint(const ServedModel& model, const GenerateJob& job,
                                                                    std::string_view prompt_text);

// Whether the prompt ends inside a reasoning block that it opened.
bool opens_reasoning(const text::ReasoningMarks& marks, std::string_view prompt_text);

}  // namespace vedette::server
