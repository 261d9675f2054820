// The figures of a benchmark as a bar chart.
#pragma once

#include "cli/benchmark_report.h"
#include "cli/drawing.h"

namespace vedette::cli {

// One panel for each kind of run there is: a bar for each median, a thin line from the least to the most.
Drawing draw_chart(const BenchmarkReport& report);

// Round numbers from 0 to at least `most`, three to eight steps.
std::vector<double> axis_ticks(double most);

}  // namespace vedette::cli
