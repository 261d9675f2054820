// The reference files greedy_*.json, as make_greedy.py writes them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"

namespace vedette::golden {

struct Case {
  std::string prompt;
  std::vector<int32_t> prompt_ids;
  std::vector<int32_t> ids;     // greedy continuation in float32
  std::vector<double> margins;  // of each id: highest less second-highest logit
};

// The highest logits of each position of one prompt, in falling order.
struct TopLogits {
  std::vector<int32_t> prompt_ids;
  std::vector<std::vector<int32_t>> ids;
  std::vector<std::vector<double>> values;
};

struct GoldenFile {
  std::string model;  // file name
  std::vector<Case> cases;
  TopLogits logits;
};

// Errors (kNotFound, kCorruptFile) name the file and the field.
Result<GoldenFile> read_golden_file(const std::string& path);

}  // namespace vedette::golden
