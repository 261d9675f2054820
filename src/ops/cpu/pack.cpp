#include "ops/cpu/pack.h"

#include <cstring>

#include "base/float16.h"

namespace vedette::ops::cpu {
namespace {

constexpr int kSteps = kGroup / 4;
constexpr int kLine = 4 * kTileRows;  // bytes

using Unpacked = uint8_t[kSteps][kLine];

int64_t stored_row(const HostMatrix& source, int64_t row) {
  return source.row_map.empty() ? row : source.row_map[static_cast<size_t>(row)];
}

void put_plane4(const Unpacked& in, uint8_t* out) {
  for (int line = 0; line < 4; ++line)
    for (int b = 0; b < kLine; ++b)
      out[line * kLine + b] = static_cast<uint8_t>((in[2 * line][b] & 15) | (in[2 * line + 1][b] << 4));
}

void put_plane2(const Unpacked& in, int shift, uint8_t* out) {
  for (int line = 0; line < 2; ++line) {
    for (int b = 0; b < kLine; ++b) {
      unsigned value = 0;
      for (int i = 0; i < 4; ++i) value |= ((in[4 * line + i][b] >> shift) & 3u) << (2 * i);
      out[line * kLine + b] = static_cast<uint8_t>(value);
    }
  }
}

void put_plane1(const Unpacked& in, int shift, uint8_t* out) {
  for (int b = 0; b < kLine; ++b) {
    unsigned value = 0;
    for (int j = 0; j < kSteps; ++j) value |= ((in[j][b] >> shift) & 1u) << j;
    out[b] = static_cast<uint8_t>(value);
  }
}

void put_planes(const Unpacked& in, int bits, uint8_t* out) {
  switch (bits) {
    case 2:
      put_plane2(in, 0, out);
      break;
    case 3:
      put_plane2(in, 0, out);
      put_plane1(in, 2, out + 2 * kLine);
      break;
    case 4:
      put_plane4(in, out);
      break;
    case 5:
      put_plane4(in, out);
      put_plane1(in, 4, out + 4 * kLine);
      break;
    case 6:
      put_plane4(in, out);
      put_plane2(in, 4, out + 4 * kLine);
      break;
    default:
      std::memcpy(out, in, sizeof(Unpacked));
      break;
  }
}

void pack_integers(const PackedMatrix& matrix, const HostMatrix& source, int64_t first_row, int valid,
                   std::byte* planes) {
  const int64_t stride = stored_row_bytes(source);
  const std::byte* rows[kTileRows];
  for (int r = 0; r < valid; ++r) rows[r] = source.data.data() + stored_row(source, first_row + r) * stride;
  // A few groups of each row at once, so that every row is read in runs.
  constexpr int64_t kRun = 8;
  alignas(64) uint8_t integers[kTileRows][kRun * kGroup] = {};
  alignas(64) Unpacked unpacked = {};
  for (int64_t first = 0; first < matrix.groups; first += kRun) {
    const int64_t count = matrix.groups - first < kRun ? matrix.groups - first : kRun;
    for (int r = 0; r < valid; ++r) unpack_groups(source, rows[r], first, count, integers[r]);
    for (int64_t g = 0; g < count; ++g) {
      for (int r = 0; r < valid; ++r)
        for (int j = 0; j < kSteps; ++j) std::memcpy(&unpacked[j][4 * r], integers[r] + g * kGroup + 4 * j, 4);
      put_planes(unpacked, matrix.bits, reinterpret_cast<uint8_t*>(planes) + (first + g) * kLine * matrix.bits);
    }
  }
}

// Scales of one stored row, into column `lane` of the tile.
void pack_plain_scales(const PackedMatrix& matrix, const HostMatrix& source, int64_t row, int lane, std::byte* scales) {
  const int64_t count = matrix.groups >> matrix.group_shift;
  const size_t size = size_of(matrix.side);
  const size_t record = size * kTileRows * (matrix.has_offset ? 2 : 1);
  const std::byte* scale = nullptr;
  const std::byte* offset = nullptr;
  size_t stride = size;
  if (source.scheme == Scheme::kMlxAffine) {
    scale = source.scales.data() + static_cast<size_t>(row * count) * size;
    offset = source.biases.data() + static_cast<size_t>(row * count) * size;
  } else {  // GGUF blocks of 32 begin with d, then m
    scale = source.data.data() + row * stored_row_bytes(source);
    offset = scale + 2;
    stride = static_cast<size_t>(layout_of(source.scheme).block_bytes);
  }
  for (int64_t i = 0; i < count; ++i) {
    std::byte* out = scales + static_cast<size_t>(i) * record + static_cast<size_t>(lane) * size;
    std::memcpy(out, scale + static_cast<size_t>(i) * stride, size);
    if (matrix.has_offset) std::memcpy(out + size * kTileRows, offset + static_cast<size_t>(i) * stride, size);
  }
}

void pack_super_scales(const PackedMatrix& matrix, const HostMatrix& source, int64_t row, int lane, std::byte* scales) {
  const SchemeLayout& layout = layout_of(source.scheme);
  const std::byte* block = source.data.data() + row * stored_row_bytes(source);
  const size_t record = super_scale_bytes(matrix.form, matrix.has_offset, matrix.step);
  for (int64_t b = 0; b < matrix.cols / kSuperBlock; ++b) {
    const SuperScales stored = super_scales(source.scheme, block + b * layout.block_bytes);
    std::byte* out = scales + static_cast<size_t>(b) * record;
    std::memcpy(out + 2 * lane, &stored.d, 2);
    if (matrix.has_offset) std::memcpy(out + 32 + 2 * lane, &stored.dmin, 2);
    out += (matrix.has_offset ? 64 : 32) + lane;
    for (int s = 0; s < kSuperBlock / matrix.step; ++s) {
      const auto i = static_cast<size_t>(s);
      if (matrix.form == ScaleForm::kSuperNibbles) {
        out[16 * s] = static_cast<std::byte>(stored.scale[i] | (stored.offset[i] << 4));
      } else if (matrix.has_offset) {
        out[32 * s] = static_cast<std::byte>(stored.scale[i]);
        out[32 * s + 16] = static_cast<std::byte>(stored.offset[i]);
      } else {
        out[16 * s] = static_cast<std::byte>(stored.scale[i]);
      }
    }
  }
}

template <class T>
void pack_floats(const HostMatrix& source, int64_t first_row, int valid, T* out) {
  const T* data = reinterpret_cast<const T*>(source.data.data());
  if (source.transposed) {
    for (int64_t k = 0; k < source.cols; ++k)
      for (int r = 0; r < valid; ++r)
        std::memcpy(out + k * kTileRows + r, data + k * source.stored_rows + stored_row(source, first_row + r),
                    sizeof(T));
    return;
  }
  const T* rows[kTileRows];
  for (int r = 0; r < valid; ++r) rows[r] = data + stored_row(source, first_row + r) * source.cols;
  for (int64_t k = 0; k < source.cols; ++k)
    for (int r = 0; r < valid; ++r) std::memcpy(out + k * kTileRows + r, rows[r] + k, sizeof(T));
}

}  // namespace

void pack_tile(const PackedMatrix& matrix, const HostMatrix& source, int64_t tile, std::byte* planes,
               std::byte* scales) {
  const int64_t first_row = tile * kTileRows;
  const int valid = static_cast<int>(matrix.rows - first_row < kTileRows ? matrix.rows - first_row : kTileRows);
  if (matrix.kind == KernelKind::kF32) return pack_floats(source, first_row, valid, reinterpret_cast<float*>(planes));
  if (is_float(matrix.kind)) return pack_floats(source, first_row, valid, reinterpret_cast<uint16_t*>(planes));
  pack_integers(matrix, source, first_row, valid, planes);
  for (int lane = 0; lane < valid; ++lane) {
    const int64_t row = stored_row(source, first_row + lane);
    if (matrix.form == ScaleForm::kPlain)
      pack_plain_scales(matrix, source, row, lane, scales);
    else
      pack_super_scales(matrix, source, row, lane, scales);
  }
}

}  // namespace vedette::ops::cpu
