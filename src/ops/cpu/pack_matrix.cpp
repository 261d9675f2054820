// Checks a stored matrix against its description, then packs it or wraps it in place.
#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>
#include <optional>

#include "base/checked.h"
#include "base/error.h"
#include "base/mapped_file.h"
#include "ops/cpu/pack.h"
#include "ops/cpu/pool.h"
#include "ops/cpu/weight_memory.h"

namespace vedette::ops::cpu {
namespace {

// Stored bytes of a chunk of work: small enough to share well, large enough that releasing them costs little.
constexpr int64_t kChunkBytes = int64_t{512} << 10;

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
  return scales_finite(m.scheme, m.data.data() + row * stored_row_bytes(m), m.cols);
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

// Zeroed, aligned to a cache line.
std::byte* allocate(size_t bytes) {
  const size_t size = round_up<size_t>(std::max<size_t>(bytes, 1), 64);
  void* const data = std::aligned_alloc(64, size);
  if (data != nullptr) std::memset(data, 0, size);
  return static_cast<std::byte*>(data);
}

// Tiles are packed by whoever takes them; a tile's bytes depend on nothing else.
struct PackJob {
  const PackedMatrix* matrix = nullptr;
  const HostMatrix* source = nullptr;
  std::byte* planes = nullptr;
  std::byte* scales = nullptr;
  int64_t chunk_tiles = 1;
  std::atomic<bool>* damaged = nullptr;

  int64_t n_chunks() const { return ceil_div(matrix->tiles, chunk_tiles); }
};

// The stored bytes of rows [first, end), where they lie together.
std::span<const std::byte> rows_of(const HostMatrix& source, int64_t first, int64_t end) {
  if (!source.row_map.empty() || source.transposed) return {};
  const auto row = static_cast<size_t>(stored_row_bytes(source));
  return source.data.subspan(static_cast<size_t>(first) * row, static_cast<size_t>(end - first) * row);
}

void pack_chunk(const void* arguments, int64_t chunk, int /*thread*/) {
  const PackJob& job = *static_cast<const PackJob*>(arguments);
  const HostMatrix& source = *job.source;
  const int64_t begin = chunk * job.chunk_tiles;
  const int64_t end = std::min(begin + job.chunk_tiles, job.matrix->tiles);
  const int64_t last_row = std::min(end * kTileRows, source.rows);
  if (!check_scales(source, begin * kTileRows, last_row).ok()) job.damaged->store(true, std::memory_order_relaxed);
  for (int64_t tile = begin; tile < end; ++tile) {
    const auto t = static_cast<size_t>(tile);
    pack_tile(*job.matrix, source, tile, job.planes + t * job.matrix->plane_bytes,
              job.scales + t * job.matrix->scale_bytes);
  }
  // Stored and packed weights together must not take twice the memory.
  release_mapped_pages(rows_of(source, begin * kTileRows, last_row));
}

}  // namespace

void PackedMatrixDeleter::operator()(PackedMatrix* matrix) const {
  delete matrix;
}

Result<PackedMatrixPtr> pack_matrix(const HostMatrix& source, bool repack, const PackResources& resources) {
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
  std::byte* data = nullptr;
  if (total && resources.memory != nullptr) {
    data = resources.memory->allocate(static_cast<size_t>(*total));
  } else if (total) {
    data = allocate(static_cast<size_t>(*total));
    matrix->owned.reset(data);
  }
  if (data == nullptr)
    return out_of_budget(source.name,
                         "tensor '{}': shape [{}, {}] {}: not enough memory to re-pack it; try --repack off",
                         source.name, source.rows, source.cols, to_string(source.scheme));
  matrix->planes = data;
  matrix->scales = data + *planes;
  std::atomic<bool> damaged = false;
  const auto tile_bytes = static_cast<int64_t>(matrix->plane_bytes + matrix->scale_bytes);
  const PackJob job{matrix.get(), &source, data, data + *planes, std::max<int64_t>(1, kChunkBytes / tile_bytes),
                    &damaged};
  const Operation operation{pack_chunk, &job, job.n_chunks()};
  if (resources.pool != nullptr && operation.n_chunks > 1)
    resources.pool->execute({&operation, 1});
  else
    for (int64_t chunk = 0; chunk < operation.n_chunks; ++chunk) pack_chunk(&job, chunk, 0);
  // Again for the first damaged row, which the message names.
  if (damaged) VEDETTE_RETURN_IF_ERROR(check_scales(source, 0, source.rows));
  for (const auto part : {source.data, source.scales, source.biases}) release_mapped_pages(part);
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
