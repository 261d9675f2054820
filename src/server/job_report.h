// What each answer tells of itself: x_vedette.
#pragma once

#include <string>
#include <vector>

#include "base/json.h"
#include "server/job.h"
#include "server/served_model.h"

namespace vedette::server {

// Speeds, re-use and its limits, the seed, what was changed or ignored. Times in seconds, rates in tokens per second;
// null where nothing was measured.
Json report_job(const ServedModel& model, const GenerateJob& job, const JobStart& start, const JobAnswer& answer);

}  // namespace vedette::server
