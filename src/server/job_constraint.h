// The constraint of a job's replies: a forced call or an output format, behind the gate of the model's reasoning.
#pragma once

#include <memory>
#include <string_view>

#include "base/result.h"
#include "sampling/constraint.h"
#include "server/job.h"
#include "server/served_model.h"

namespace vedette::server {

// Compiled once for all prompts and choices of a job. Borrows the model and the job.
class JobConstraint {
 public:
  // Errors (kInvalidRequest) name the field: a schema or grammar that cannot be enforced, a forced call without tools,
  // a forced call beside an output format.
  static Result<JobConstraint> make(const ServedModel& model, const GenerateJob& job);
  // Of the replies to one prompt; null where they are free.
  Result<std::shared_ptr<const sampling::Constraint>> of(std::string_view prompt_text) const;

 private:
  JobConstraint(const ServedModel& model, const GenerateJob& job) : model_(&model), job_(&job) {}

  const ServedModel* model_;
  const GenerateJob* job_;
  std::shared_ptr<const sampling::Constraint> inner_;  // null: free text behind the gate
};

// Whether the model may reason in the replies of this job.
bool may_reason(const ServedModel& model, const GenerateJob& job);

// Whether the prompt ends inside a reasoning block that it opened.
bool opens_reasoning(const text::ReasoningMarks& marks, std::string_view prompt_text);

}  // namespace vedette::server
