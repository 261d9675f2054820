#include "weights/checkpoint.h"

#include <filesystem>

#include "base/checked.h"
#include "base/error.h"
#include "weights/readers.h"

namespace vedette::weights {

const StoredTensor* Checkpoint::find(std::string_view name) const {
  const auto at = tensors.find(name);
  return at == tensors.end() ? nullptr : &at->second;
}

bool may_exist(const std::string& path) {
  std::error_code error;
  return std::filesystem::exists(path, error) || error;
}

Result<Checkpoint> open_checkpoint(const std::string& path, const OpenOptions& options) {
  std::error_code error;
  const auto status = std::filesystem::status(path, error);
  if (!std::filesystem::exists(status))
    return not_found("", "{}: no such file or folder; expected a model folder or a .gguf file", path);
  if (std::filesystem::is_directory(status)) return open_folder(path, options);
  if (!std::filesystem::is_regular_file(status))
    return invalid_request("", "{}: not a regular file; expected a model folder or a .gguf file", path);
  if (std::filesystem::path(path).extension() == ".safetensors")
    return unsupported("", "{}: a lone safetensors file has no configuration; give the folder that holds config.json",
                       path);
  return open_gguf(path, options);
}

Status storage_intact(const Checkpoint& checkpoint) {
  if (!checkpoint.storage) return ok_status();
  for (const auto& file : std::static_pointer_cast<const Storage>(checkpoint.storage)->files)
    if (!file->intact())
      return corrupt_file("", "{}: was truncated after it was opened ({} bytes then); load the model again",
                          file->path(), file->bytes().size());
  return ok_status();
}

Result<std::vector<float>> to_float(const StoredTensor& tensor) {
  const ops::HostMatrix& matrix = tensor.matrix;
  const auto count = checked_mul(matrix.rows, matrix.cols);
  if (!count || *count < 0 || *count > (int64_t{1} << 40))
    return corrupt_file(matrix.name, "{}: tensor '{}': {} x {} elements are too many to expand", tensor.file,
                        matrix.name, matrix.rows, matrix.cols);
  std::vector<float> out(static_cast<size_t>(*count));
  const auto rows = static_cast<size_t>(matrix.rows);
  const auto cols = static_cast<size_t>(matrix.cols);
  for (size_t row = 0; row < rows; ++row) {
    const int64_t stored = matrix.row_map.empty() ? static_cast<int64_t>(row) : matrix.row_map[row];
    ops::dequantize_row(matrix, stored, std::span(out).subspan(row * cols, cols));
  }
  return out;
}

}  // namespace vedette::weights
