// The table of model families: one line each, one file each in models/families/.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "base/result.h"
#include "models/spec.h"
#include "weights/checkpoint.h"

namespace vedette::models {

struct Family {
  std::string_view id;
  std::string_view display_name;
  std::string_view category;                  // "Dense text"
  std::vector<std::string_view> model_types;  // values of config.json's model_type
  std::vector<std::string_view> gguf_architectures;
  // Builds the spec from the checkpoint's config (its tensor list may settle what the config leaves open,
  // e.g. a stored head). Errors name the config key.
  Result<DecoderSpec> (*build)(const weights::Checkpoint& checkpoint);
};

std::span<const Family> families();

// By config.json's model_type (lower-cased). Errors: kUnsupported naming the type and what is supported.
Result<const Family*> find_family(const Json& config);

// find_family + build + every tensor checked against the checkpoint (missing, surplus, wrong shapes by name).
Result<DecoderSpec> build_spec(const weights::Checkpoint& checkpoint);

}  // namespace vedette::models
