// Speed of the matrix-product kernels on one thread: GB/s of packed weights at one row, billions of operations (two
// per weight and row) per second at many rows.
//
//   kernels [--rows N] [--outputs N] [--columns N] [--only SCHEME] [--compute i8|i16|f32] [--kernels NAME]
#include <fmt/core.h>

#include <chrono>
#include <cstdlib>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "base/float16.h"
#include "ops/blocks.h"
#include "ops/cpu/matmul_kernels.h"

namespace vedette::ops::cpu {
namespace {

struct Options {
  int64_t rows = 512, outputs = 4096, columns = 4096;
  std::string only, compute, kernels;
};

struct Stored {
  std::vector<std::byte> data, scales, biases;
  HostMatrix view;
};

// Random integers; the scales' exponents are cleared, so that all are small finite numbers.
std::vector<std::byte> random_bytes(size_t count, std::mt19937& random) {
  std::vector<std::byte> out(count);
  for (auto& byte : out) byte = static_cast<std::byte>(random() & 0x3b);
  return out;
}

Stored random_matrix(Scheme scheme, int bits, const Options& options) {
  std::mt19937 random(1);
  Stored out;
  HostMatrix& m = out.view;
  m.name = to_string(scheme);
  m.scheme = scheme;
  m.rows = m.stored_rows = options.outputs;
  m.cols = options.columns;
  m.bits = bits;
  m.group = 64;
  out.data = random_bytes(static_cast<size_t>(m.rows * stored_row_bytes(m)), random);
  if (scheme == Scheme::kMlxAffine) {
    const auto side = static_cast<size_t>(m.rows * (m.cols / m.group) * 2);
    out.scales = random_bytes(side, random);
    out.biases = random_bytes(side, random);
  }
  m.data = out.data;
  m.scales = out.scales;
  m.biases = out.biases;
  return out;
}

// The best of several runs, in seconds.
template <class Body>
double best_seconds(Body body) {
  double best = 1e9, total = 0;
  for (int i = 0; i < 50 && total < 0.4; ++i) {
    const auto start = std::chrono::steady_clock::now();
    body();
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    best = std::min(best, seconds);
    total += seconds;
  }
  return best;
}

// n elements that begin a cache line, as the back end's memory does; `storage` owns them.
template <class T>
T* aligned(std::vector<T>& storage, size_t n) {
  storage.resize(n + 64 / sizeof(T));
  return storage.data() + (64 - reinterpret_cast<uintptr_t>(storage.data()) % 64) % 64 / sizeof(T);
}

struct Operands {
  std::vector<float> values, out_storage;
  std::vector<std::byte> prepared_storage, scratch_storage;
  float* out = nullptr;
  std::byte* prepared = nullptr;
  std::byte* scratch = nullptr;
};

Operands operands(const MatmulKernels& kernels, Compute compute, const Options& options) {
  std::mt19937 random(2);
  std::normal_distribution<float> normal(0, 1);
  Operands out;
  out.values.resize(static_cast<size_t>(options.rows * options.columns));
  for (float& x : out.values) x = normal(random);
  out.out = aligned(out.out_storage, static_cast<size_t>(options.rows * options.outputs));
  const size_t stride = prepared_row_bytes(compute, options.columns);
  out.prepared = aligned(out.prepared_storage, stride * static_cast<size_t>(options.rows));
  for (int64_t r = 0; r < options.rows; ++r)
    kernels.prepare(compute, out.values.data() + r * options.columns, options.columns,
                    out.prepared + static_cast<size_t>(r) * stride);
  return out;
}

void measure(KernelVariant variant, Compute compute, const PackedMatrix& matrix, const Options& options) {
  const MatmulKernels& kernels = kernels_of(variant);
  Operands data = operands(kernels, compute, options);
  data.scratch = aligned(data.scratch_storage, matmul_scratch_bytes(kernels, matrix));
  const auto run = [&](int64_t rows) {
    // Eight tiles at a time, as the back end's chunks are.
    for (int64_t tile = 0; tile < packed_tiles(matrix); tile += 8)
      matmul_with(kernels, compute, matrix,
                  {data.values.data(), options.columns, data.prepared, data.values.data(), rows}, tile,
                  std::min(tile + 8, packed_tiles(matrix)), nullptr, {data.out, options.outputs}, data.scratch);
  };
  const double one = best_seconds([&] { run(1); }), many = best_seconds([&] { run(options.rows); });
  const auto bytes = static_cast<double>(packed_owned_bytes(matrix));
  const double operations = 2.0 * static_cast<double>(options.rows * options.outputs * options.columns);
  fmt::print("{:<12} {:<4} {:<12} {:7.2f} GB/s at 1 row  {:8.1f} GOP/s at {} rows\n", matrix.name, to_string(compute),
             to_string(variant), bytes / one * 1e-9, operations / many * 1e-9, options.rows);
}

void measure_scheme(Scheme scheme, int bits, const Options& options) {
  const std::string name = bits == 0 ? to_string(scheme) : fmt::format("{} {}", to_string(scheme), bits);
  if (!options.only.empty() && options.only != name) return;
  Stored stored = random_matrix(scheme, bits, options);
  stored.view.name = name;
  const auto start = std::chrono::steady_clock::now();
  const auto packed = pack_matrix(stored.view, true);
  if (!packed.ok()) {
    fmt::print(stderr, "{}\n", packed.error().message);
    std::exit(1);
  }
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  fmt::print("{:<12} packed at {:.2f} GB/s\n", name, static_cast<double>(stored.data.size()) / seconds * 1e-9);
  for (Compute compute : {Compute::kI8, Compute::kI16, Compute::kF32}) {
    if (!options.compute.empty() && options.compute != to_string(compute)) continue;
    for (KernelVariant variant : available_variants()) {
      const std::string name = to_string(variant);
      if (options.kernels.empty() ? name == "portable" : options.kernels != name) continue;
      measure(variant, compute, **packed, options);
    }
  }
}

int run(int argc, char** argv) {
  Options options;
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string flag = argv[i], value = argv[i + 1];
    if (flag == "--rows")
      options.rows = std::atoll(value.c_str());
    else if (flag == "--outputs")
      options.outputs = std::atoll(value.c_str());
    else if (flag == "--columns")
      options.columns = std::atoll(value.c_str());
    else if (flag == "--only")
      options.only = value;
    else if (flag == "--compute")
      options.compute = value;
    else if (flag == "--kernels")
      options.kernels = value;
    else {
      fmt::print(stderr, "unknown flag '{}'\n", flag);
      return 2;
    }
  }
  for (int s = 0; s <= static_cast<int>(Scheme::kQ6_K); ++s) measure_scheme(static_cast<Scheme>(s), 0, options);
  for (int bits : {2, 3, 4, 5, 6, 8}) measure_scheme(Scheme::kMlxAffine, bits, options);
  return 0;
}

}  // namespace
}  // namespace vedette::ops::cpu

int main(int argc, char** argv) {
  return vedette::ops::cpu::run(argc, argv);
}
