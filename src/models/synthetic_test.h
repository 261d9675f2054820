// Checkpoints in memory whose weights are a function of tensor name and index (testdata/make_variants.py).
#pragma once

#include <cmath>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "weights/checkpoint.h"

namespace vedette::models {

// splitmix64 of FNV-1a(name) + index; uniform in [-1, 1), scaled by what the tensor is.
inline std::vector<float> synthetic_values(const std::string& name, size_t count, int64_t columns, size_t dimensions) {
  uint64_t state = 0xcbf29ce484222325u;
  for (const char c : name) state = (state ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
  std::vector<float> values(count);
  for (float& value : values) {
    state += 0x9e3779b97f4a7c15u;
    uint64_t z = state;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    z ^= z >> 31;
    const double u = static_cast<double>(z >> 40) / static_cast<double>(1 << 23) - 1.0;
    if (dimensions > 1)
      value = static_cast<float>(u * (1.7 / std::sqrt(static_cast<double>(columns))));
    else
      value = static_cast<float>(name.ends_with("bias") ? u * 0.2 : 1.0 + u * 0.25);
  }
  return values;
}

// A float32 checkpoint that owns its tensors.
class SyntheticCheckpoint {
 public:
  explicit SyntheticCheckpoint(Json config) : data_(std::make_shared<std::deque<std::vector<float>>>()) {
    checkpoint_.path = "synthetic";
    checkpoint_.format = "safetensors";
    checkpoint_.config = std::move(config);
    checkpoint_.storage = nullptr;
  }

  // Adds `name`, filled with the values of `filled_as` (a name that a rename must not change the values of).
  void add(const std::string& name, const std::vector<int64_t>& shape, const std::string& filled_as) {
    size_t count = 1;
    for (const int64_t size : shape) count *= static_cast<size_t>(size);
    const int64_t columns = shape.size() > 1 ? shape.back() : 1;
    add(name, shape, synthetic_values(filled_as, count, columns, shape.size()));
  }
  void add(const std::string& name, const std::vector<int64_t>& shape) { add(name, shape, name); }
  void add(const std::string& name, const std::vector<int64_t>& shape, std::vector<float> values) {
    weights::StoredTensor tensor;
    tensor.file = "synthetic";
    tensor.shape = shape;
    tensor.matrix.name = name;
    tensor.matrix.cols = shape.empty() ? 1 : shape.back();
    tensor.matrix.rows = static_cast<int64_t>(values.size()) / tensor.matrix.cols;
    tensor.matrix.stored_rows = tensor.matrix.rows;
    tensor.matrix.data = std::as_bytes(std::span<const float>(data_->emplace_back(std::move(values))));
    checkpoint_.tensors[name] = std::move(tensor);
  }

  weights::Checkpoint& operator*() { return checkpoint_; }
  weights::Checkpoint* operator->() { return &checkpoint_; }

 private:
  std::shared_ptr<std::deque<std::vector<float>>> data_;
  weights::Checkpoint checkpoint_;
};

}  // namespace vedette::models
