// A slow, obvious back end for tests: every operation as its formula, sums in double, one row after the other.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "base/float16.h"
#include "ops/backend.h"

namespace vedette::models {

class ReferenceBackend : public ops::Backend {
 public:
  ReferenceBackend() {
    info_.device = "reference";
    info_.isa = "double";
    info_.compute = ops::Compute::kF32;
  }

  // From the next step on, attention sees at most this many tokens whatever its group says; 0: no limit.
  void limit_window(int tokens) { window_limit_ = tokens; }

  const ops::BackendInfo& info() const override { return info_; }
  ops::MemoryUse memory() const override { return {}; }

  Result<ops::Matrix> load_matrix(const ops::HostMatrix& source) override {
    MatrixData out{source.rows, source.cols, std::vector<float>(static_cast<size_t>(source.rows * source.cols))};
    const auto rows = static_cast<size_t>(source.rows), cols = static_cast<size_t>(source.cols);
    const auto stored = [&](size_t r) { return source.row_map.empty() ? r : size_t{source.row_map[r]}; };
    if (!source.transposed) {
      for (size_t r = 0; r < rows; ++r)
        ops::dequantize_row(source, static_cast<int64_t>(stored(r)), std::span(out.values).subspan(r * cols, cols));
    } else {
      ops::HostMatrix bytes = source;  // as it lies: [cols, stored rows]
      const auto width = static_cast<size_t>(source.stored_rows ? source.stored_rows : source.rows);
      bytes.rows = bytes.stored_rows = source.cols;
      bytes.cols = static_cast<int64_t>(width);
      bytes.row_map.clear();
      bytes.transposed = false;
      std::vector<float> line(width);
      for (size_t c = 0; c < cols; ++c) {
        ops::dequantize_row(bytes, static_cast<int64_t>(c), line);
        for (size_t r = 0; r < rows; ++r) out.values[r * cols + c] = line[stored(r)];
      }
    }
    matrices_.push_back(std::move(out));
    return ops::Matrix{static_cast<int32_t>(matrices_.size() - 1)};
  }

  Result<ops::Vector> load_vector(std::span<const float> values) override {
    vectors_.emplace_back(values.begin(), values.end());
    return ops::Vector{static_cast<int32_t>(vectors_.size() - 1)};
  }

  Result<ops::KvGroup> create_kv_group(const ops::KvGroupConfig& config) override {
    const auto tokens = static_cast<size_t>(config.n_blocks * ops::kBlockTokens);
    const auto heads = static_cast<size_t>(config.n_kv_heads);
    KvData data{config, {}, {}};
    for (int i = 0; i < config.n_layers; ++i) {
      data.keys.emplace_back(tokens * heads * static_cast<size_t>(config.head_dim), NAN);
      data.values.emplace_back(tokens * heads * static_cast<size_t>(config.value_dim), NAN);
    }
    kv_.push_back(std::move(data));
    return ops::KvGroup{static_cast<int32_t>(kv_.size() - 1)};
  }

  Result<ops::Tensor> create_tensor(int64_t max_rows, int64_t cols) override {
    tensors_.push_back({cols, 0, std::vector<float>(static_cast<size_t>(max_rows * cols))});
    return ops::Tensor{static_cast<int32_t>(tensors_.size() - 1)};
  }

  void begin_step(const ops::Step& step) override { step_ = &step; }

  void embed(ops::Matrix table, float scale, ops::Tensor out) override {
    start(out);
    for (size_t r = 0; r < step_->rows.size(); ++r) {
      const auto from = matrix_row(table, step_->rows[r].value);
      const auto to = row(out, r);
      for (size_t i = 0; i < to.size(); ++i) to[i] = from[i] * scale;
    }
  }

  void add_position_embedding(ops::Matrix table, ops::Tensor inout) override {
    for (size_t r = 0; r < step_->rows.size(); ++r) {
      const auto from = matrix_row(table, step_->rows[r].position[0]);
      const auto to = row(inout, r);
      for (size_t i = 0; i < to.size(); ++i) to[i] += from[i];
    }
  }

  void norm(ops::Tensor in, const ops::NormParams& params, ops::Tensor out) override {
    data(out).rows = data(in).rows;
    for (size_t r = 0; r < data(in).rows; ++r) {
      std::ranges::copy(row(in, r), row(out, r).begin());
      norm_row(row(out, r), params);
    }
  }

  void linear(ops::Tensor in, std::span<const ops::LinearOutput> outputs) override {
    for (const ops::LinearOutput& output : outputs) {
      const MatrixData& matrix = matrices_[static_cast<size_t>(output.matrix.id)];
      data(output.out).rows = data(in).rows;
      for (size_t r = 0; r < data(in).rows; ++r) {
        const auto x = row(in, r);
        for (int64_t n = 0; n < matrix.rows; ++n) {
          const auto w = matrix_row(output.matrix, n);
          double sum = 0;
          for (size_t k = 0; k < w.size(); ++k) sum += double{w[k]} * double{x[k]};
          if (output.bias) sum += vector(output.bias)[static_cast<size_t>(n)];
          row(output.out, r)[static_cast<size_t>(n)] = static_cast<float>(sum);
        }
      }
    }
  }

  void attention_inputs(const ops::AttentionInputParams& p) override {
    KvData& kv = kv_[static_cast<size_t>(p.group.id)];
    const auto head_dim = static_cast<size_t>(kv.config.head_dim), value_dim = static_cast<size_t>(kv.config.value_dim);
    const auto n_kv = static_cast<size_t>(kv.config.n_kv_heads);
    for (size_t r = 0; r < step_->rows.size(); ++r) {
      const ops::Row& info = step_->rows[r];
      for (const ops::Tensor t : {p.q, p.k, p.v})
        for (float& x : row(t, r))
          if (p.clip > 0) x = std::clamp(x, -p.clip, p.clip);
      const auto norms = [&] {
        if (p.q_norm) norm_row(row(p.q, r), *p.q_norm);
        if (p.k_norm) norm_row(row(p.k, r), *p.k_norm);
      };
      if (!p.norm_after_rope) norms();
      rotate(row(p.q, r), head_dim, p.rope, info.position[0]);
      rotate(row(p.k, r), head_dim, p.rope, info.position[0]);
      if (p.norm_after_rope) norms();
      if (p.query_scale.beta != 0) {
        const double steps = std::floor(double{static_cast<float>(info.position[0])} / p.query_scale.original_context);
        for (float& x : row(p.q, r)) x = static_cast<float>(x * (1.0 + p.query_scale.beta * std::log(1.0 + steps)));
      }
      const size_t token = slot(p.group, info, info.position[0]);
      store(row(p.k, r), kv.config.type, &kv.keys[static_cast<size_t>(p.layer)][token * n_kv * head_dim]);
      store(row(p.v, r), kv.config.type, &kv.values[static_cast<size_t>(p.layer)][token * n_kv * value_dim]);
    }
  }

  void attention(const ops::AttentionParams& p) override {
    const KvData& kv = kv_[static_cast<size_t>(p.group.id)];
    const auto head_dim = static_cast<size_t>(kv.config.head_dim), value_dim = static_cast<size_t>(kv.config.value_dim);
    const auto n_kv = static_cast<size_t>(kv.config.n_kv_heads), n_heads = static_cast<size_t>(p.n_heads);
    const std::vector<float>& keys = kv.keys[static_cast<size_t>(p.layer)];
    const std::vector<float>& values = kv.values[static_cast<size_t>(p.layer)];
    start(p.out);
    for (size_t r = 0; r < step_->rows.size(); ++r) {
      const ops::Row& info = step_->rows[r];
      const int last = info.position[0];
      const int window = window_limit_ > 0 ? window_limit_ : kv.config.window;
      const int first = window > 0 ? std::max(0, last - window + 1) : 0;
      for (size_t h = 0; h < n_heads; ++h) {
        const size_t kv_head = h / (n_heads / n_kv);
        const auto q = row(p.q, r).subspan(h * head_dim, head_dim);
        std::vector<double> scores;
        for (int position = first; position <= last; ++position) {
          const float* k = &keys[(slot(p.group, info, position) * n_kv + kv_head) * head_dim];
          double score = 0;
          for (size_t i = 0; i < head_dim; ++i) score += double{q[i]} * double{k[i]};
          score *= p.scale;
          if (p.softcap > 0) score = p.softcap * std::tanh(score / p.softcap);
          scores.push_back(score);
        }
        const double largest = *std::ranges::max_element(scores);
        double total = 0;
        for (double& score : scores) total += score = std::exp(score - largest);
        const auto out = row(p.out, r).subspan(h * value_dim, value_dim);
        for (size_t i = 0; i < value_dim; ++i) {
          double sum = 0;
          for (int position = first; position <= last; ++position)
            sum += scores[static_cast<size_t>(position - first)] *
                   double{values[(slot(p.group, info, position) * n_kv + kv_head) * value_dim + i]};
          out[i] = static_cast<float>(sum / total);
        }
      }
    }
  }

  void activate(ops::Activation kind, const ops::ActivationParams& params, ops::Tensor inout) override {
    for (size_t r = 0; r < data(inout).rows; ++r)
      for (float& x : row(inout, r)) x = static_cast<float>(apply(kind, params, x));
  }

  void gated_activation(ops::Activation kind, ops::Tensor gate, ops::Tensor up, ops::Tensor out) override {
    data(out).rows = data(gate).rows;
    for (size_t r = 0; r < data(gate).rows; ++r)
      for (size_t i = 0; i < row(out, r).size(); ++i)
        row(out, r)[i] = static_cast<float>(apply(kind, {}, row(gate, r)[i]) * double{row(up, r)[i]});
  }

  void add_scaled(ops::Tensor inout, float scale, ops::Tensor addend) override {
    for (size_t r = 0; r < data(inout).rows; ++r)
      for (size_t i = 0; i < row(inout, r).size(); ++i) row(inout, r)[i] += scale * row(addend, r)[i];
  }

  void copy(ops::Tensor in, ops::Tensor out) override {
    data(out).rows = data(in).rows;
    for (size_t r = 0; r < data(in).rows; ++r) std::ranges::copy(row(in, r), row(out, r).begin());
  }

  void gather_logit_rows(ops::Tensor in, ops::Tensor out) override {
    data(out).rows = 0;
    for (size_t r = 0; r < step_->rows.size(); ++r)
      if (step_->rows[r].wants_logits) std::ranges::copy(row(in, r), row(out, data(out).rows++).begin());
  }

  void finish_logits(ops::Tensor logits, float scale, float softcap) override {
    for (size_t r = 0; r < data(logits).rows; ++r)
      for (float& x : row(logits, r)) {
        x *= scale;
        if (softcap > 0) x = static_cast<float>(softcap * std::tanh(double{x} / softcap));
      }
  }

  Status end_step() override { return ok_status(); }

  std::span<const float> host_row(ops::Tensor tensor, int64_t index) const override {
    const TensorData& t = tensors_[static_cast<size_t>(tensor.id)];
    return std::span(t.values).subspan(static_cast<size_t>(index * t.cols), static_cast<size_t>(t.cols));
  }

 private:
  struct MatrixData {
    int64_t rows, cols;
    std::vector<float> values;
  };
  struct TensorData {
    int64_t cols;
    size_t rows;  // in use this step
    std::vector<float> values;
  };
  struct KvData {
    ops::KvGroupConfig config;
    std::vector<std::vector<float>> keys, values;  // per layer [tokens, kv heads, dim]; NaN where never written
  };

  TensorData& data(ops::Tensor tensor) { return tensors_[static_cast<size_t>(tensor.id)]; }
  void start(ops::Tensor tensor) { data(tensor).rows = step_->rows.size(); }
  std::span<float> row(ops::Tensor tensor, size_t index) {
    TensorData& t = data(tensor);
    return std::span(t.values).subspan(index * static_cast<size_t>(t.cols), static_cast<size_t>(t.cols));
  }
  std::span<const float> matrix_row(ops::Matrix matrix, int64_t index) const {
    const MatrixData& m = matrices_[static_cast<size_t>(matrix.id)];
    return std::span(m.values).subspan(static_cast<size_t>(index * m.cols), static_cast<size_t>(m.cols));
  }
  std::span<const float> vector(ops::Vector handle) const { return vectors_[static_cast<size_t>(handle.id)]; }

  size_t slot(ops::KvGroup group, const ops::Row& info, int position) const {
    const auto& table =
        step_->sequences[static_cast<size_t>(info.sequence)].block_tables[static_cast<size_t>(group.id)];
    const auto block = static_cast<size_t>(table[static_cast<size_t>(position / ops::kBlockTokens)]);
    return block * ops::kBlockTokens + static_cast<size_t>(position % ops::kBlockTokens);
  }

  static void store(std::span<const float> from, ops::DType type, float* to) {
    for (const float x : from) {
      if (type == ops::DType::kF32) *to++ = x;
      if (type == ops::DType::kF16) *to++ = f16_to_float(float_to_f16(x));
      if (type == ops::DType::kBF16) *to++ = bf16_to_float(float_to_bf16(x));
    }
  }

  void norm_row(std::span<float> x, const ops::NormParams& params) const {
    const size_t group = params.group > 0 ? static_cast<size_t>(params.group) : x.size();
    for (size_t start = 0; start < x.size(); start += group) {
      const auto part = x.subspan(start, group);
      double mean = 0, square = 0;
      if (params.kind == ops::NormKind::kLayer)
        for (const float v : part) mean += double{v} / static_cast<double>(group);
      for (const float v : part) square += (v - mean) * (v - mean) / static_cast<double>(group);
      const double scale = 1 / std::sqrt(square + params.eps);
      for (size_t i = 0; i < group; ++i) {
        double v = (part[i] - mean) * scale;
        if (params.weight) v *= at_column(vector(params.weight), start, i, group);
        if (params.bias) v += at_column(vector(params.bias), start, i, group);
        part[i] = static_cast<float>(v);
      }
    }
  }

  static double at_column(std::span<const float> values, size_t start, size_t i, size_t group) {
    return values[values.size() == group ? i : start + i];
  }

  void rotate(std::span<float> x, size_t head_dim, const ops::RopeParams& rope, int position) const {
    if (rope.kind == ops::RopeKind::kNone) return;
    const size_t half = static_cast<size_t>(rope.rotary_dim) / 2;
    for (size_t head = 0; head < x.size(); head += head_dim)
      for (size_t i = 0; i < half; ++i) {
        const float angle = static_cast<float>(position) * vector(rope.inverse_frequencies)[i];
        const double c = std::cos(double{angle}) * rope.scale, s = std::sin(double{angle}) * rope.scale;
        float& a = x[head + (rope.kind == ops::RopeKind::kHalf ? i : 2 * i)];
        float& b = x[head + (rope.kind == ops::RopeKind::kHalf ? i + half : 2 * i + 1)];
        const double turned_a = a * c - b * s, turned_b = b * c + a * s;
        a = static_cast<float>(turned_a);
        b = static_cast<float>(turned_b);
      }
  }

  static double apply(ops::Activation kind, const ops::ActivationParams& p, double x) {
    switch (kind) {
      case ops::Activation::kSilu:
        return x / (1 + std::exp(-x));
      case ops::Activation::kGeluTanh:
        return 0.5 * x * (1 + std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)));
      case ops::Activation::kGeluErf:
        return 0.5 * x * (1 + std::erf(x / std::sqrt(2.0)));
      case ops::Activation::kRelu:
        return std::max(x, 0.0);
      case ops::Activation::kRelu2:
        return std::max(x, 0.0) * std::max(x, 0.0);
      case ops::Activation::kXielu:
        return x > 0 ? p.alpha_p * x * x + p.beta * x
                     : p.alpha_n * (std::expm1(std::min(x, double{p.eps})) - x) + p.beta * x;
    }
    return NAN;
  }

  ops::BackendInfo info_;
  int window_limit_ = 0;
  const ops::Step* step_ = nullptr;
  std::vector<MatrixData> matrices_;
  std::vector<std::vector<float>> vectors_;
  std::vector<TensorData> tensors_;
  std::vector<KvData> kv_;
};

}  // namespace vedette::models
