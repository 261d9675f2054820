// One broken checkpoint, and what its error must name.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "weights/test_files.h"

namespace vedette::hostile {

namespace wt = weights::testing;

struct Case {
  std::string name;
  // Writes the files and returns the path to open.
  std::function<std::string(const wt::TempFolder&)> write;
  // Texts of the message: file, tensor or key, and the numbers that disagree.
  std::vector<std::string> expected;
};

std::vector<Case> safetensors_cases();
std::vector<Case> mlx_cases();
std::vector<Case> gguf_cases();
std::vector<Case> folder_cases();

// A folder of config.json and model.safetensors.
std::string model_folder(const wt::TempFolder& folder, const std::string& config, const std::string& safetensors);

}  // namespace vedette::hostile
