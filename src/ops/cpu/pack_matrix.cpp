// Checks a stored matrix against its description, then packs it or wraps it in place.
#include <sys/mman.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <optional>

#include "base/checked.h"
#include "base/error.h"
#include "ops/cpu/pack.h"

namespace vedette::ops::cpu {
namespace {

constexpr size_t kHugePage = size_t{2} << 20;

KernelKind plain_kind(int bits) {
  switch (bits) {
    case 2:
      return KernelKind::kPlain2;
    case 3:
      return KernelKind::kPlain3;
    case 4:
      return KernelKind::kPlain4;
    case 5:
      return KernelKind::kPlain5;
    case 6:
      return KernelKind::kPlain6;
    default:
      return KernelKind::kPlain8;
  }
}

KernelKind kernel_kind(Scheme scheme, int bits) {
  switch (scheme) {
    case Scheme::kF32:
      return KernelKind::kF32;
    case Scheme::kF16:
      return KernelKind::kF16;
    case Scheme::kBF16:
      return KernelKind::kBF16;
    case Scheme::kQ4_0:
      return KernelKind::kQ4_0;
    case Scheme::kQ5_0:
      return KernelKind::kQ5_0;
    case Scheme::kQ8_0:
      return KernelKind::kQ8_0;
    case Scheme::kQ2_K:
      return KernelKind::kQ2_K;
    case Scheme::kQ3_K:
      return KernelKind::kQ3_K;
    case Scheme::kQ4_K:
      return KernelKind::kQ4_K;
    case Scheme::kQ5_K:
      return KernelKind::kQ5_K;
    case Scheme::kQ6_K:
      return KernelKind::kQ6_K;
    case Scheme::kQ4_1:
    case Scheme::kQ5_1:
    case Scheme::kMlxAffine:
      return plain_kind(bits);
  }
  return KernelKind::kF32;
}

// a * b * c / d without overflow; nothing where it would.
std::optional<int64_t> product(int64_t a, int64_t b, int64_t c, int64_t d = 1) {
  const auto ab = checked_mul(a, b);
  const auto abc = ab ? checked_mul(*ab, c) : std::nullopt;
  if (!abc) return std::nullopt;
  return *abc / d;
}

Status check_bytes(const HostMatrix& m, const char* part, std::span<const std::byte> data,
                   std::optional<int64_t> needed) {
  if (!needed)
    return corrupt_file(m.name, "tensor '{}': shape [{}, {}] {} is larger than any file", m.name, m.stored_rows, m.cols,
                        to_string(m.scheme));
  if (data.size() != static_cast<size_t>(*needed))
    return corrupt_file(m.name,
                        "tensor '{}': {} of shape [{}, {}] {} need {} bytes, found {}; the checkpoint is damaged",
                        m.name, part, m.stored_rows, m.cols, to_string(m.scheme), *needed, data.size());
  return ok_status();
}

Status check_mlx(const HostMatrix& m) {
  if (m.bits != 2 && m.bits != 3 && m.bits != 4 && m.bits != 5 && m.bits != 6 && m.bits != 8)
    return unsupported(m.name, "tensor '{}': {} bits per weight; MLX affine has 2, 3, 4, 5, 6 or 8", m.name, m.bits);
  if (m.group != 32 && m.group != 64 && m.group != 128)
    return unsupported(m.name, "tensor '{}': quantization group of {}; MLX affine has 32, 64 or 128", m.name, m.group);
  if (m.cols % m.group != 0)
    return unsupported(m.name, "tensor '{}': {} columns are no multiple of its quantization group of {}", m.name,
                       m.cols, m.group);
  VEDETTE_RETURN_IF_ERROR(check_bytes(m, "integers", m.data, product(m.stored_rows, m.cols / 32, 4 * m.bits)));
  const auto side = product(m.stored_rows, m.cols / m.group, static_cast<int64_t>(size_of(m.side_type)));
  VEDETTE_RETURN_IF_ERROR(check_bytes(m, "scales", m.scales, side));
  return check_bytes(m, "biases", m.biases, side);
}

Status check_rows(const HostMatrix& m) {
  if (m.rows <= 0 || m.cols <= 0 || m.stored_rows <= 0)
    return corrupt_file(m.name, "tensor '{}': shape [{}, {}] has no elements", m.name, m.rows, m.cols);
  if (m.row_map.empty()) {
    if (m.rows == m.stored_rows) return ok_status();
    return corrupt_file(m.name, "tensor '{}': {} rows expected, {} stored", m.name, m.rows, m.stored_rows);
  }
  if (m.row_map.size() != static_cast<size_t>(m.rows))
    return corrupt_file(m.name, "tensor '{}': row map of {} entries for {} rows", m.name, m.row_map.size(), m.rows);
  const uint32_t largest = *std::max_element(m.row_map.begin(), m.row_map.end());
  if (largest >= m.stored_rows)
    return corrupt_file(m.name, "tensor '{}': row map names row {} of {}", m.name, largest, m.stored_rows);
  return ok_status();
}

Status check_shape(const HostMatrix& m) {
  VEDETTE_RETURN_IF_ERROR(check_rows(m));
  if (m.transposed && !is_float(m.scheme))
    return unsupported(m.name, "tensor '{}': a transposed {} matrix; only float matrices may be transposed", m.name,
                       to_string(m.scheme));
  if (m.scheme == Scheme::kMlxAffine) return check_mlx(m);
  const SchemeLayout& layout = layout_of(m.scheme);
  if (m.cols % layout.block != 0)
    return unsupported(m.name, "tensor '{}': {} columns are no multiple of the {} block of {}", m.name, m.cols,
                       to_string(m.scheme), layout.block);
  return check_bytes(m, "data", m.data, product(m.stored_rows, m.cols / layout.block, layout.block_bytes));
}

bool row_scales_finite(const HostMatrix& m, int64_t row) {
  if (m.scheme == Scheme::kMlxAffine) {
    for (int64_t i = 0; i < m.cols / m.group; ++i) {
      const StepScale scale = step_scale(m, row, i);
      if (!std::isfinite(scale.scale) || !std::isfinite(scale.offset)) return false;
    }
    return true;
  }
  const SchemeLayout& layout = layout_of(m.scheme);
  const int64_t steps = layout.block / layout.step;
  if (layout.form == ScaleForm::kPlain) {
    for (int64_t i = 0; i < m.cols / layout.step; ++i) {
      const StepScale scale = step_scale(m, row, i);
      if (!std::isfinite(scale.scale) || !std::isfinite(scale.offset)) return false;
    }
    return true;
  }
  const std::byte* block = m.data.data() + row * stored_row_bytes(m);
  for (int64_t b = 0; b < m.cols / layout.step / steps; ++b, block += layout.block_bytes) {
    if (!super_scales_finite(m.scheme, block)) return false;
  }
  return true;
}

Status check_scales(const HostMatrix& m, int64_t row_begin, int64_t row_end) {
  if (is_float(m.scheme)) return ok_status();
  for (int64_t r = row_begin; r < row_end; ++r) {
    const int64_t row = m.row_map.empty() ? r : m.row_map[static_cast<size_t>(r)];
    if (!row_scales_finite(m, row))
      return corrupt_file(m.name,
                          "tensor '{}': row {} has a scale that is not a finite number; the checkpoint is damaged",
                          m.name, row);
  }
  return ok_status();
}

void describe(const HostMatrix& m, PackedMatrix& out) {
  const SchemeLayout& layout = layout_of(m.scheme);
  const bool mlx = m.scheme == Scheme::kMlxAffine;
  out.name = m.name;
  out.rows = m.rows;
  out.cols = m.cols;
  out.tiles = ceil_div<int64_t>(m.rows, kTileRows);
  out.bits = mlx ? m.bits : layout.bits;
  out.kind = kernel_kind(m.scheme, out.bits);
  if (is_float(m.scheme)) {
    out.plane_bytes = static_cast<size_t>(m.cols) * kTileRows * static_cast<size_t>(layout.block_bytes);
    return;
  }
  out.groups = m.cols / kGroup;
  out.zero = layout.zero;
  out.has_offset = layout.has_offset;
  out.form = layout.form;
  out.step = layout.step;
  out.side = mlx ? m.side_type : DType::kF16;
  out.group_shift = mlx ? (m.group == 128 ? 2 : m.group == 64 ? 1 : 0) : 0;
  out.plane_bytes = static_cast<size_t>(out.groups * out.bits) * 64;
  if (out.form == ScaleForm::kPlain)
    out.scale_bytes =
        static_cast<size_t>(out.groups >> out.group_shift) * kTileRows * size_of(out.side) * (out.has_offset ? 2 : 1);
  else
    out.scale_bytes = static_cast<size_t>(m.cols / kSuperBlock) * super_scale_bytes(out.form, out.has_offset, out.step);
}

// Zeroed, aligned to a cache line; to huge pages where that pays.
std::byte* allocate(size_t bytes) {
  const size_t alignment = bytes >= 2 * kHugePage ? kHugePage : 64;
  const size_t size = round_up<size_t>(std::max<size_t>(bytes, 1), alignment == kHugePage ? 4096 : 64);
  void* data = nullptr;
  if (posix_memalign(&data, alignment, size) != 0) return nullptr;
  if (alignment == kHugePage) madvise(data, size, MADV_HUGEPAGE);
  std::memset(data, 0, size);
  return static_cast<std::byte*>(data);
}

}  // namespace

void PackedMatrixDeleter::operator()(PackedMatrix* matrix) const {
  delete matrix;
}

Result<PackedMatrixPtr> pack_matrix(const HostMatrix& source, bool repack) {
  VEDETTE_RETURN_IF_ERROR(check_shape(source));
  PackedMatrixPtr matrix(new PackedMatrix);
  describe(source, *matrix);
  if (!repack && source.row_map.empty() && !source.transposed) {
    VEDETTE_RETURN_IF_ERROR(check_scales(source, 0, source.rows));
    matrix->in_place = true;
    matrix->stored = source;
    return matrix;
  }
  const auto planes = product(matrix->tiles, static_cast<int64_t>(matrix->plane_bytes), 1);
  const auto scales = product(matrix->tiles, static_cast<int64_t>(matrix->scale_bytes), 1);
  const auto total = planes && scales ? checked_add(*planes, *scales) : std::nullopt;
  if (total) matrix->owned.reset(allocate(static_cast<size_t>(*total)));
  if (!matrix->owned)
    return out_of_budget(source.name,
                         "tensor '{}': shape [{}, {}] {}: not enough memory to re-pack it; try --repack off",
                         source.name, source.rows, source.cols, to_string(source.scheme));
  matrix->planes = matrix->owned.get();
  matrix->scales = matrix->owned.get() + *planes;
  for (int64_t tile = 0; tile < matrix->tiles; ++tile) {
    const int64_t first = tile * kTileRows;
    VEDETTE_RETURN_IF_ERROR(check_scales(source, first, std::min<int64_t>(first + kTileRows, source.rows)));
    const auto t = static_cast<size_t>(tile);
    pack_tile(*matrix, source, tile, matrix->owned.get() + t * matrix->plane_bytes,
              matrix->owned.get() + static_cast<size_t>(*planes) + t * matrix->scale_bytes);
  }
  return matrix;
}

int64_t packed_rows(const PackedMatrix& matrix) {
  return matrix.rows;
}
int64_t packed_cols(const PackedMatrix& matrix) {
  return matrix.cols;
}
int64_t packed_tiles(const PackedMatrix& matrix) {
  return matrix.tiles;
}
bool packed_is_float(const PackedMatrix& matrix) {
  return is_float(matrix.kind);
}

int64_t packed_owned_bytes(const PackedMatrix& matrix) {
  return matrix.in_place ? 0 : matrix.tiles * static_cast<int64_t>(matrix.plane_bytes + matrix.scale_bytes);
}

int64_t packed_mapped_bytes(const PackedMatrix& matrix) {
  if (!matrix.in_place) return 0;
  return static_cast<int64_t>(matrix.stored.data.size() + matrix.stored.scales.size() + matrix.stored.biases.size());
}

}  // namespace vedette::ops::cpu
