// A model argument to what lies on this machine, fetched from the hub first where it is nowhere.
#pragma once

#include <string>

#include "base/result.h"
#include "cli/settings.h"
#include "hub/download.h"

namespace vedette::cli {

// Errors of hub::resolve_model; where a fetch was tried, with why it failed.
Result<hub::ResolvedModel> find_model(const std::string& name, const ModelSettings& settings, bool quiet,
                                      const hub::DownloadWatch& watch = {});

// download_model with notices and a bar on standard error, beside the request's own progress.
Result<hub::DownloadReport> fetch_model(hub::DownloadRequest request, bool quiet);

}  // namespace vedette::cli
