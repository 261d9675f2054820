#include "models/weight_loader.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/error.h"
#include "base/mapped_file.h"

namespace vedette::models {

namespace {

int64_t bytes_of(const ops::HostMatrix& matrix) {
  return static_cast<int64_t>(matrix.data.size() + matrix.scales.size() + matrix.biases.size());
}

Error wrong_size(const std::string& name, int64_t rows, int64_t cols, int64_t want_rows, int64_t want_cols) {
  return corrupt_file(name, "tensor '{}' is {} x {}, the model needs {} x {}", name, rows, cols, want_rows, want_cols);
}

// `count` rows from `first` of something with `rows` equal rows.
std::span<const std::byte> slice(std::span<const std::byte> data, int64_t rows, int64_t first, int64_t count) {
  const size_t row = data.size() / static_cast<size_t>(rows);
  return data.subspan(static_cast<size_t>(first) * row, static_cast<size_t>(count) * row);
}

float softplus(float x) {
  return x > 20.0f ? x : std::log1p(std::exp(x));
}

}  // namespace

Result<ops::HostMatrix> select_rows(const weights::StoredTensor& stored, const LinearSpec& spec) {
  ops::HostMatrix matrix = stored.matrix;
  if (spec.transposed) {
    if (!matrix.row_map.empty())
      return unsupported(spec.weight, "tensor '{}' has reordered rows and is stored transposed", spec.weight);
    std::swap(matrix.rows, matrix.cols);
    matrix.transposed = !matrix.transposed;
    matrix.stored_rows = matrix.rows;
  }
  if (matrix.transposed && !ops::is_float(matrix.scheme))
    return unsupported(spec.weight, "tensor '{}' is stored transposed and quantized ({}); use an unquantized version",
                       spec.weight, ops::to_string(matrix.scheme));
  if (matrix.rows != spec.stored_rows() || matrix.cols != spec.in_features || matrix.rows < 1)
    return wrong_size(spec.weight, matrix.rows, matrix.cols, spec.stored_rows(), spec.in_features);
  const bool counted = spec.rows.empty() || static_cast<int64_t>(spec.rows.size()) == spec.out_features;
  const bool inside =
      spec.rows.empty()
          ? spec.first_row >= 0 && spec.first_row + spec.out_features <= matrix.rows
          : std::ranges::all_of(spec.rows, [&](uint32_t r) { return static_cast<int64_t>(r) < matrix.rows; });
  if (!counted || !inside)
    return internal_error(spec.weight, "tensor '{}': selected rows lie outside its {}", spec.weight, matrix.rows);
  if (spec.rows.empty() && spec.out_features == matrix.rows) return matrix;
  if (spec.rows.empty() && matrix.row_map.empty() && !matrix.transposed) {
    for (auto* data : {&matrix.data, &matrix.scales, &matrix.biases})
      *data = slice(*data, matrix.rows, spec.first_row, spec.out_features);
    matrix.rows = matrix.stored_rows = spec.out_features;
    return matrix;
  }
  std::vector<uint32_t> map(static_cast<size_t>(spec.out_features));
  for (size_t r = 0; r < map.size(); ++r) {
    const auto row = static_cast<size_t>(spec.stored_row(static_cast<int64_t>(r)));
    map[r] = matrix.row_map.empty() ? static_cast<uint32_t>(row) : matrix.row_map[row];
  }
  if (matrix.row_map.empty()) matrix.stored_rows = matrix.rows;
  matrix.row_map = std::move(map);
  matrix.rows = spec.out_features;
  return matrix;
}

WeightLoader::WeightLoader(const weights::Checkpoint& checkpoint, const DecoderSpec& spec, ops::Backend& backend,
                           const Progress& progress)
    : checkpoint_(checkpoint), backend_(backend), progress_(progress) {
  for (const ExpectedTensor& tensor : expected_tensors(spec))
    if (const weights::StoredTensor* stored = checkpoint.find(tensor.name); stored && stored->shape.size() > 1)
      total_bytes_ += bytes_of(stored->matrix);
}

Result<const weights::StoredTensor*> WeightLoader::find(const std::string& name) const {
  if (const weights::StoredTensor* stored = checkpoint_.find(name)) return stored;
  return corrupt_file(name, "{}: tensor '{}' is missing", checkpoint_.path, name);
}

Result<ops::Matrix> WeightLoader::load(const ops::HostMatrix& matrix, const std::string& share_as) {
  if (!share_as.empty()) {
    const auto at = whole_.find(share_as);
    if (at != whole_.end()) return at->second;
  }
  VEDETTE_ASSIGN_OR_RETURN(const ops::Matrix handle, backend_.load_matrix(matrix));
  if (!share_as.empty()) whole_.emplace(share_as, handle);
  // A selection by row map counts as its share of the stored bytes.
  const int64_t stored_rows = matrix.row_map.empty() ? matrix.rows : std::max<int64_t>(matrix.stored_rows, 1);
  const double share = static_cast<double>(matrix.rows) / static_cast<double>(stored_rows);
  done_bytes_ =
      std::min(total_bytes_, done_bytes_ + static_cast<int64_t>(static_cast<double>(bytes_of(matrix)) * share));
  if (progress_) progress_(done_bytes_, total_bytes_);
  return handle;
}

Result<LoadedLinear> WeightLoader::linear(const LinearSpec& spec) {
  VEDETTE_ASSIGN_OR_RETURN(const weights::StoredTensor* stored, find(spec.weight));
  VEDETTE_ASSIGN_OR_RETURN(const ops::HostMatrix matrix, select_rows(*stored, spec));
  const bool whole = spec.rows.empty() && spec.out_features == spec.stored_rows() && !spec.transposed;
  LoadedLinear loaded;
  VEDETTE_ASSIGN_OR_RETURN(loaded.matrix, load(matrix, whole ? spec.weight : std::string()));
  if (spec.bias.empty()) return loaded;
  VEDETTE_ASSIGN_OR_RETURN(const std::vector<float> all, values(spec.bias, spec.stored_rows()));
  std::vector<float> bias(static_cast<size_t>(spec.out_features));
  for (size_t r = 0; r < bias.size(); ++r) bias[r] = all[static_cast<size_t>(spec.stored_row(static_cast<int64_t>(r)))];
  VEDETTE_ASSIGN_OR_RETURN(loaded.bias, backend_.load_vector(bias));
  return loaded;
}

Result<ops::Matrix> WeightLoader::table(const std::string& name, int64_t rows, int64_t cols) {
  LinearSpec spec;
  spec.weight = name;
  spec.out_features = rows;
  spec.in_features = cols;
  VEDETTE_ASSIGN_OR_RETURN(const LoadedLinear loaded, linear(spec));
  return loaded.matrix;
}

Result<ops::NormParams> WeightLoader::norm(const NormSpec& spec) {
  ops::NormParams params;
  params.kind = spec.kind;
  params.eps = spec.eps;
  params.group = spec.group;
  std::vector<float> weight;
  if (!spec.weight.empty()) {
    VEDETTE_ASSIGN_OR_RETURN(weight, values(spec.weight, spec.size));
  }
  for (const std::string& part : spec.weight_parts) {
    VEDETTE_ASSIGN_OR_RETURN(const std::vector<float> piece, values(part, spec.group));
    weight.insert(weight.end(), piece.begin(), piece.end());
  }
  for (float& value : weight) value += spec.weight_offset;
  if (!weight.empty()) {
    VEDETTE_ASSIGN_OR_RETURN(params.weight, backend_.load_vector(weight));
  }
  if (!spec.bias.empty()) {
    VEDETTE_ASSIGN_OR_RETURN(const std::vector<float> bias, values(spec.bias, spec.size));
    VEDETTE_ASSIGN_OR_RETURN(params.bias, backend_.load_vector(bias));
  }
  return params;
}

Result<ops::ActivationParams> WeightLoader::activation(const MlpSpec& spec) {
  ops::ActivationParams params;
  if (spec.activation_tensors.empty()) return params;
  VEDETTE_ASSIGN_OR_RETURN(const float alpha_p, scalar(spec.activation_tensors + "alpha_p"));
  VEDETTE_ASSIGN_OR_RETURN(const float alpha_n, scalar(spec.activation_tensors + "alpha_n"));
  VEDETTE_ASSIGN_OR_RETURN(params.beta, scalar(spec.activation_tensors + "beta"));
  VEDETTE_ASSIGN_OR_RETURN(params.eps, scalar(spec.activation_tensors + "eps"));
  params.alpha_p = softplus(alpha_p);
  params.alpha_n = params.beta + softplus(alpha_n);
  return params;
}

Result<ops::Vector> WeightLoader::frequencies(const std::vector<float>& values) {
  if (values.empty()) return ops::Vector{};
  const auto at = frequencies_.find(values);
  if (at != frequencies_.end()) return at->second;
  VEDETTE_ASSIGN_OR_RETURN(const ops::Vector handle, backend_.load_vector(values));
  frequencies_.emplace(values, handle);
  return handle;
}

Result<std::vector<float>> WeightLoader::values(const std::string& name, int64_t count) {
  VEDETTE_ASSIGN_OR_RETURN(const weights::StoredTensor* stored, find(name));
  if (stored->matrix.rows < 1 || stored->matrix.cols < 1 || stored->matrix.rows > count ||
      stored->matrix.rows * stored->matrix.cols != count)
    return wrong_size(name, stored->matrix.rows, stored->matrix.cols, 1, count);
  VEDETTE_ASSIGN_OR_RETURN(std::vector<float> out, weights::to_float(*stored));
  release_mapped_pages(stored->matrix.data);
  for (size_t i = 0; i < out.size(); ++i)
    if (!std::isfinite(out[i]))
      return corrupt_file(name, "{}: tensor '{}': element {} is not a finite number", stored->file, name, i);
  return out;
}

Result<float> WeightLoader::scalar(const std::string& name) {
  VEDETTE_ASSIGN_OR_RETURN(const std::vector<float> one, values(name, 1));
  return one[0];
}

}  // namespace vedette::models
