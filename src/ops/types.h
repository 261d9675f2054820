// Plain types shared by every back end. C++20: device code includes this header.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace vedette::ops {

// Element type of unquantized data.
enum class DType : uint8_t { kF32, kF16, kBF16 };

constexpr size_t size_of(DType type) {
  return type == DType::kF32 ? 4 : 2;
}
const char* to_string(DType type);

// Arithmetic of matrix products (docs/architecture.md, "Precision of products").
enum class Compute : uint8_t { kI8, kI16, kF32 };
const char* to_string(Compute compute);

// How a matrix is stored. All but the float schemes are "integers, scales and offsets per group":
// weight = scale * integer + offset.
enum class Scheme : uint8_t {
  kF32,
  kF16,
  kBF16,
  kQ4_0,
  kQ4_1,
  kQ5_0,
  kQ5_1,
  kQ8_0,  // GGUF blocks of 32
  kQ2_K,
  kQ3_K,
  kQ4_K,
  kQ5_K,
  kQ6_K,       // GGUF super-blocks of 256
  kMlxAffine,  // MLX: packed integers, separate scales and biases
};
const char* to_string(Scheme scheme);
constexpr bool is_float(Scheme scheme) {
  return scheme <= Scheme::kBF16;
}

// A matrix [rows, cols] (rows = outputs) as it lies in a checkpoint. Borrows its memory: the mapping
// must outlive the back end's handle, because a kernel may run on it in place.
struct HostMatrix {
  std::string name;  // for messages
  Scheme scheme = Scheme::kF32;
  int64_t rows = 0;
  int64_t cols = 0;
  // Row-major; GGUF rows are whole blocks. kMlxAffine: uint32 words, integers packed from the low bits
  // upwards; rows of cols * bits / 32 words.
  std::span<const std::byte> data;
  // kMlxAffine only: [rows, cols / group] scales and biases of type side_type.
  int bits = 0;
  int group = 0;
  DType side_type = DType::kBF16;
  std::span<const std::byte> scales;
  std::span<const std::byte> biases;
  // Logical row r is stored row row_map[r]; empty means the identity. rows counts logical rows.
  std::vector<uint32_t> row_map;
  int64_t stored_rows = 0;  // rows in `data`; equals rows where row_map is empty
  bool transposed = false;  // float schemes only: stored as [cols, rows] (GPT-2's Conv1D)
};

// Bytes of one stored row of a scheme with a fixed layout (not kMlxAffine); 0 if cols does not fit its blocks.
int64_t row_bytes(Scheme scheme, int64_t cols);

// Expands stored row `row` (a stored, not a logical index) to float32, exactly as the format defines it.
// The slow, obvious definition: kernels are tested against it, `convert` and the f32 path agree with it.
void dequantize_row(const HostMatrix& matrix, int64_t row, std::span<float> out);

enum class NormKind : uint8_t { kRms, kLayer };

enum class Activation : uint8_t {
  kSilu,
  kGeluTanh,  // 0.5 x (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3)))
  kGeluErf,   // 0.5 x (1 + erf(x / sqrt 2))
  kRelu,
  kRelu2,  // max(x, 0)^2
  kXielu,  // Apertus (arXiv 2411.13010); parameters in ActivationParams
};

// x > 0: alpha_p x^2 + beta x; else alpha_n (expm1(min(x, eps)) - x) + beta x.
struct ActivationParams {
  float alpha_p = 0, alpha_n = 0, beta = 0, eps = 0;
};

enum class RopeKind : uint8_t {
  kNone,
  kHalf,         // pairs (i, i + rotary_dim/2): Llama, NeoX
  kInterleaved,  // pairs (2i, 2i + 1): GPT-J, GLM, Cohere
};

// Tokens per K/V block. A block id addresses the same token range of every layer of its group.
inline constexpr int kBlockTokens = 32;
// Attention folds its keys in runs of this many absolute positions and merges the runs in order.
inline constexpr int kSplitTokens = 256;

}  // namespace vedette::ops
