// Hands a checkpoint's tensors to a back end, one by one, as a spec asks for them.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "models/spec.h"
#include "ops/backend.h"
#include "weights/checkpoint.h"

namespace vedette::models {

struct LoadedLinear {
  ops::Matrix matrix;
  ops::Vector bias;
};

// Lives while a Decoder loads. A whole tensor that is used twice (a tied embedding and head) is loaded once.
class WeightLoader {
 public:
  using Progress = std::function<void(int64_t done_bytes, int64_t total_bytes)>;
  WeightLoader(const weights::Checkpoint& checkpoint, const DecoderSpec& spec, ops::Backend& backend,
               const Progress& progress);

  Result<LoadedLinear> linear(const LinearSpec& spec);
  Result<ops::Matrix> table(const std::string& name, int64_t rows, int64_t cols);
  Result<ops::NormParams> norm(const NormSpec& spec);
  // alpha_p = softplus(stored alpha_p), alpha_n = beta + softplus(stored alpha_n); zeros for other activations.
  Result<ops::ActivationParams> activation(const MlpSpec& spec);
  // Equal tables share one vector.
  Result<ops::Vector> frequencies(const std::vector<float>& values);

 private:
  Result<const weights::StoredTensor*> find(const std::string& name) const;
  Result<ops::Matrix> load(const ops::HostMatrix& matrix, const std::string& share_as);
  Result<std::vector<float>> values(const std::string& name, int64_t count);
  Result<float> scalar(const std::string& name);

  const weights::Checkpoint& checkpoint_;
  ops::Backend& backend_;
  const Progress& progress_;
  std::map<std::string, ops::Matrix> whole_;
  std::map<std::vector<float>, ops::Vector> frequencies_;
  int64_t done_bytes_ = 0;
  int64_t total_bytes_ = 0;
};

// The part of a stored tensor that a linear uses, as a matrix [out, in]: slices and transpositions only change how the
// bytes are read. Errors: a tensor whose size does not fit, rows out of range.
Result<ops::HostMatrix> select_rows(const weights::StoredTensor& stored, const LinearSpec& spec);

}  // namespace vedette::models
