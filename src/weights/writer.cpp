#include "weights/writer.h"

#include <cmath>
#include <cstring>
#include <filesystem>
#include <variant>

#include "base/error.h"
#include "base/float16.h"
#include "weights/affine_pack.h"
#include "weights/file_output.h"
#include "weights/gguf_vocabulary_file.h"
#include "weights/output_plan.h"

namespace vedette::weights {
namespace {

namespace fs = std::filesystem;

// Floats as one of the stored types. An infinity that the float was not is reported by `ok`.
std::vector<std::byte> encode(std::span<const float> values, ops::DType type, bool& ok) {
  std::vector<std::byte> out(values.size() * ops::size_of(type));
  if (type == ops::DType::kF32) {
    std::memcpy(out.data(), values.data(), out.size());
    return out;
  }
  for (size_t i = 0; i < values.size(); ++i) {
    const uint16_t bits = type == ops::DType::kF16 ? float_to_f16(values[i]) : float_to_bf16(values[i]);
    const float back = type == ops::DType::kF16 ? f16_to_float(bits) : bf16_to_float(bits);
    ok &= std::isfinite(back) || !std::isfinite(values[i]);
    std::memcpy(out.data() + 2 * i, &bits, 2);
  }
  return out;
}

// Writes one tensor row by row.
class TensorWriter {
 public:
  TensorWriter(const OutputTensor& tensor, FileOutput& file, int64_t data_begin)
      : tensor_(tensor),
        matrix_(tensor.source->matrix),
        data_(file, data_begin + tensor.data.offset),
        scales_(file, data_begin + tensor.scales.offset),
        biases_(file, data_begin + tensor.biases.offset) {}

  Status write() {
    const auto cols = static_cast<size_t>(matrix_.cols);
    values_.resize(cols);
    if (tensor_.group > 0) {
      integers_.resize(cols * static_cast<size_t>(tensor_.bits) / 8);
      row_scales_.resize(cols / static_cast<size_t>(tensor_.group));
      row_biases_.resize(row_scales_.size());
    }
    for (int64_t row = 0; row < matrix_.rows; ++row) {
      const int64_t stored = matrix_.row_map.empty() ? row : matrix_.row_map[static_cast<size_t>(row)];
      VEDETTE_RETURN_IF_ERROR(write_row(stored));
      if (!fits_)
        return unsupported(tensor_.data.name,
                           "tensor '{}': row {} has values beyond {}; convert with --dtype f32 or bf16",
                           tensor_.data.name, row, ops::to_string(tensor_.dtype));
    }
    VEDETTE_RETURN_IF_ERROR(data_.flush());
    VEDETTE_RETURN_IF_ERROR(scales_.flush());
    return biases_.flush();
  }

 private:
  Status write_row(int64_t stored) {
    if (tensor_.form == OutputForm::kAffineCopy) return copy_row(stored);
    if (tensor_.form == OutputForm::kDense) {
      ops::dequantize_row(matrix_, stored, values_);
      return data_.append(encode(values_, tensor_.dtype, fits_));
    }
    const AffineRow row{integers_, row_scales_, row_biases_};
    if (tensor_.form == OutputForm::kRepack) {
      repack_affine(matrix_, stored, row);
    } else {
      ops::dequantize_row(matrix_, stored, values_);
      quantize_affine(values_, tensor_.bits, tensor_.group, row);
    }
    VEDETTE_RETURN_IF_ERROR(data_.append(std::as_bytes(std::span(integers_))));
    VEDETTE_RETURN_IF_ERROR(scales_.append(encode(row_scales_, tensor_.dtype, fits_)));
    return biases_.append(encode(row_biases_, tensor_.dtype, fits_));
  }

  Status copy_row(int64_t stored) {
    const auto part = [&](std::span<const std::byte> all) {
      const size_t bytes = all.size() / static_cast<size_t>(matrix_.stored_rows);
      return all.subspan(static_cast<size_t>(stored) * bytes, bytes);
    };
    VEDETTE_RETURN_IF_ERROR(data_.append(part(matrix_.data)));
    VEDETTE_RETURN_IF_ERROR(scales_.append(part(matrix_.scales)));
    return biases_.append(part(matrix_.biases));
  }

  const OutputTensor& tensor_;
  const ops::HostMatrix& matrix_;
  RegionOutput data_, scales_, biases_;
  std::vector<float> values_, row_scales_, row_biases_;
  std::vector<uint8_t> integers_;
  bool fits_ = true;
};

Status write_shard(const OutputPlan& plan, size_t shard, const fs::path& folder, const ConvertProgress& progress,
                   int64_t& done) {
  VEDETTE_ASSIGN_OR_RETURN(auto file, FileOutput::create((folder / plan.files[shard]).string()));
  const std::string header = safetensors_header(plan, shard);
  const uint64_t length = header.size();
  VEDETTE_RETURN_IF_ERROR(file.write_at(0, std::as_bytes(std::span(&length, 1))));
  VEDETTE_RETURN_IF_ERROR(file.write_at(8, std::as_bytes(std::span(header.data(), header.size()))));
  for (const OutputTensor& tensor : plan.tensors) {
    if (tensor.shard != shard) continue;
    VEDETTE_RETURN_IF_ERROR(TensorWriter(tensor, file, static_cast<int64_t>(8 + header.size())).write());
    done += tensor.bytes();
    if (progress) progress(done, plan.total_bytes);
  }
  return file.finish();
}

Status write_json(const fs::path& path, const Json& value) {
  if (value.is_null()) return ok_status();
  return write_text_file(path.string(), value.dump(2) + "\n");
}

Status write_tokenizer(const Checkpoint& checkpoint, const fs::path& folder) {
  VEDETTE_RETURN_IF_ERROR(write_json(folder / "generation_config.json", checkpoint.generation_config));
  if (!checkpoint.chat_template.empty())
    VEDETTE_RETURN_IF_ERROR(write_text_file((folder / "chat_template.jinja").string(), checkpoint.chat_template));
  if (const auto* hf = std::get_if<HfTokenizer>(&checkpoint.tokenizer)) {
    VEDETTE_RETURN_IF_ERROR(write_text_file((folder / "tokenizer.json").string(), hf->tokenizer_json));
    VEDETTE_RETURN_IF_ERROR(write_json(folder / "tokenizer_config.json", hf->tokenizer_config));
    return write_json(folder / "special_tokens_map.json", hf->special_tokens_map);
  }
  if (const auto* vocabulary = std::get_if<GgufVocabulary>(&checkpoint.tokenizer))
    return write_text_file((folder / kVocabularyFile).string(), vocabulary_bytes(*vocabulary));
  return ok_status();
}

Status write_all(const Checkpoint& checkpoint, const OutputPlan& plan, const fs::path& folder,
                 const ConvertProgress& progress) {
  int64_t done = 0;
  for (size_t shard = 0; shard < plan.files.size(); ++shard)
    VEDETTE_RETURN_IF_ERROR(write_shard(plan, shard, folder, progress, done));
  VEDETTE_RETURN_IF_ERROR(storage_intact(checkpoint));
  if (plan.files.size() > 1)
    VEDETTE_RETURN_IF_ERROR(write_json(folder / "model.safetensors.index.json", shard_index(plan)));
  VEDETTE_RETURN_IF_ERROR(write_json(folder / "config.json", plan.config));
  return write_tokenizer(checkpoint, folder);
}

Status check_space(const fs::path& folder, int64_t bytes) {
  std::error_code error;
  const auto space = fs::space(folder, error);
  if (!error && space.available < static_cast<uintmax_t>(bytes))
    return unavailable("--output", "{}: {} bytes are free, the converted weights need {}", folder.string(),
                       space.available, bytes);
  return ok_status();
}

}  // namespace

Status convert_checkpoint(const Checkpoint& checkpoint, const std::string& output_folder, const ConvertOptions& options,
                          const ConvertProgress& progress) {
  VEDETTE_ASSIGN_OR_RETURN(const auto plan, plan_output(checkpoint, options));
  fs::path target(output_folder);
  if (!target.has_filename()) target = target.parent_path();  // "out/" means "out"
  if (target.empty()) return invalid_request("--output", "--output is empty; expected a new folder");
  std::error_code error;
  if (fs::exists(target, error) && !(fs::is_directory(target, error) && fs::is_empty(target, error)))
    return invalid_request("--output", "{}: exists already; give a new folder", target.string());
  const fs::path partial = target.string() + ".partial";
  if (!fs::create_directories(partial, error) || error)
    return unavailable("--output", "{}: cannot create: {}", partial.string(),
                       error ? error.message() : "it exists already (left by a conversion that was stopped?)");
  if (options.begun) options.begun(partial.string());
  Status status = check_space(partial, plan.total_bytes);
  if (status.ok()) status = write_all(checkpoint, plan, partial, progress);
  if (status.ok()) {
    fs::rename(partial, target, error);
    if (!error) return ok_status();
    status = unavailable("--output", "{}: cannot rename to {}: {}", partial.string(), target.string(), error.message());
  }
  fs::remove_all(partial, error);
  return status;
}

}  // namespace vedette::weights
