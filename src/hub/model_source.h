// Where a model of the store came from, in a small file beside it.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"

namespace vedette::hub {

struct ModelSource {
  std::string revision, commit;    // "" where nothing is noted
  std::vector<std::string> files;  // relative paths
};

// Whatever cannot be read or trusted counts as not noted.
ModelSource read_source(const std::string& folder);
Status write_source(const std::string& folder, const ModelSource& source);

}  // namespace vedette::hub
