// What repeated measurements say together.
#pragma once

#include <algorithm>
#include <span>
#include <vector>

namespace vedette::cli {

struct Summary {
  double median = 0, least = 0, most = 0;
  // Largest less smallest, as a share of the median.
  double spread() const { return median > 0 ? (most - least) / median : 0; }
};

// Of at least one sample; all zero without. An even number of samples has the mean of the middle two as its median.
inline Summary summarize(std::span<const double> samples) {
  if (samples.empty()) return {};
  std::vector<double> sorted(samples.begin(), samples.end());
  std::ranges::sort(sorted);
  const size_t middle = sorted.size() / 2;
  const double median = sorted.size() % 2 == 1 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
  return {.median = median, .least = sorted.front(), .most = sorted.back()};
}

}  // namespace vedette::cli
