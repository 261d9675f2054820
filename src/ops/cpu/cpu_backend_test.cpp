// The whole back end on a small two-layer model with a full and a sliding K/V group: against a double-precision run of
// the same model, and bit for bit over chunkings, batch mixes, threads and instruction sets.
#include "ops/cpu/cpu_backend.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <new>
#include <random>
#include <thread>
#include <vector>

#include "base/float16.h"
#include "base/property_test.h"
#include "ops/cpu/pool.h"

namespace {
std::atomic<int64_t> allocations{0};
}  // namespace

// Counted, so that a test can show that a warm step allocates nothing. Out of line, or GCC takes malloc and delete for
// a mismatch.
[[gnu::noinline]] void* operator new(size_t size) {
  allocations.fetch_add(1, std::memory_order_relaxed);
  if (void* p = std::malloc(size > 0 ? size : 1)) return p;
  throw std::bad_alloc();
}
[[gnu::noinline]] void operator delete(void* p) noexcept {
  std::free(p);
}
[[gnu::noinline]] void operator delete(void* p, size_t) noexcept {
  std::free(p);
}

namespace vedette::ops::cpu {
namespace {

using test::between;
using test::bits;
using test::check_property;
using test::list_of;
using test::require;
using test::token_ids;

constexpr int kHidden = 64, kHeads = 4, kKvHeads = 2, kHeadDim = 16, kInner = 96, kVocab = 50, kLayers = 2;
constexpr int kWindow = 40;
constexpr int kMaxRows = 700;
constexpr int64_t kBlocks = 60;
constexpr float kScale = 0.25f, kEmbedScale = 1.5f, kAddScale = 0.5f, kLogitScale = 0.7f, kLogitCap = 20.0f;

// A weight matrix: Q8_0 blocks, or float32.
struct Weights {
  Scheme scheme;
  int64_t rows, cols;
  std::vector<std::byte> bytes;
  std::vector<float> values;  // what the bytes mean
  HostMatrix host(const char* name) const {
    HostMatrix matrix;
    matrix.name = name;
    matrix.scheme = scheme;
    matrix.rows = matrix.stored_rows = rows;
    matrix.cols = cols;
    matrix.data = bytes;
    return matrix;
  }
};

Weights make_weights(Scheme scheme, int64_t rows, int64_t cols, std::mt19937& random) {
  Weights w{scheme, rows, cols, {}, {}};
  std::normal_distribution<float> normal(0.0f, 1.0f / std::sqrt(static_cast<float>(cols)));
  for (int64_t i = 0; i < rows * cols; i += 32) {
    if (scheme == Scheme::kQ8_0) {
      const uint16_t scale = float_to_f16(0.03f / std::sqrt(static_cast<float>(cols)));
      w.bytes.resize(w.bytes.size() + 34);
      std::memcpy(w.bytes.data() + w.bytes.size() - 34, &scale, 2);
      for (int j = 0; j < 32; ++j) {
        const auto q = static_cast<int8_t>(static_cast<int>(random() % 255) - 127);
        w.bytes[w.bytes.size() - 32 + static_cast<size_t>(j)] = static_cast<std::byte>(q);
        w.values.push_back(f16_to_float(scale) * static_cast<float>(q));
      }
    } else {
      for (int j = 0; j < 32; ++j) w.values.push_back(normal(random));
    }
  }
  if (scheme == Scheme::kF32) {
    w.bytes.resize(w.values.size() * 4);
    std::memcpy(w.bytes.data(), w.values.data(), w.bytes.size());
  }
  return w;
}

struct LayerWeights {
  Weights q, k, v, o, gate, up, down;
  std::vector<float> norm1, norm2, q_bias, qk_norm;
};

struct ModelWeights {
  std::mt19937 random{99};  // first: the members below are made from it
  Weights embedding, head;
  std::vector<LayerWeights> layers;
  std::vector<float> final_norm, frequencies;

  explicit ModelWeights(Scheme scheme)
      : embedding(make(Scheme::kF32, kVocab, kHidden)), head(make(scheme, kVocab, kHidden)) {
    for (int i = 0; i < kLayers; ++i) {
      layers.push_back({make(scheme, kHeads * kHeadDim, kHidden), make(scheme, kKvHeads * kHeadDim, kHidden),
                        make(scheme, kKvHeads * kHeadDim, kHidden), make(scheme, kHidden, kHeads * kHeadDim),
                        make(scheme, kInner, kHidden), make(scheme, kInner, kHidden), make(scheme, kHidden, kInner),
                        vector(kHidden), vector(kHidden), vector(kHeads * kHeadDim), vector(kHeadDim)});
    }
    final_norm = vector(kHidden);
    for (int i = 0; i < kHeadDim / 2; ++i) frequencies.push_back(std::pow(10000.0f, -static_cast<float>(i) / 8.0f));
    for (int i = 0; i < kHidden; ++i) {
      embedding.values[static_cast<size_t>((kVocab - 1) * kHidden + i)] = 3e38f;  // the last token overflows
    }
    std::memcpy(embedding.bytes.data(), embedding.values.data(), embedding.bytes.size());
  }

 private:
  Weights make(Scheme scheme, int64_t rows, int64_t cols) { return make_weights(scheme, rows, cols, random); }
  std::vector<float> vector(int n) {
    std::normal_distribution<float> normal(1.0f, 0.3f);
    std::vector<float> out(static_cast<size_t>(n));
    for (float& x : out) x = normal(random);
    return out;
  }
};

template <typename T>
T take(Result<T> result) {
  EXPECT_TRUE(result.ok()) << (result.ok() ? "" : result.error().message);
  return result.ok() ? std::move(result).value() : T{};
}

// Runs the model on a back end.
class Model {
 public:
  Model(const ModelWeights& weights, const CpuConfig& config, DType kv_type = DType::kF16)
      : backend_(take(make_cpu_backend(config))) {
    const auto matrix = [&](const Weights& w) { return take(backend_->load_matrix(w.host("test"))); };
    const auto vector = [&](const std::vector<float>& v) { return take(backend_->load_vector(v)); };
    embedding_ = matrix(weights.embedding);
    head_ = matrix(weights.head);
    final_norm_ = vector(weights.final_norm);
    frequencies_ = vector(weights.frequencies);
    for (const LayerWeights& w : weights.layers) {
      layers_.push_back({matrix(w.q), matrix(w.k), matrix(w.v), matrix(w.o), matrix(w.gate), matrix(w.up),
                         matrix(w.down), vector(w.norm1), vector(w.norm2), vector(w.q_bias), vector(w.qk_norm)});
    }
    for (const int window : {0, kWindow}) {
      groups_.push_back(take(backend_->create_kv_group({1, kKvHeads, kHeadDim, kHeadDim, kv_type, window, kBlocks})));
    }
    const auto tensor = [&](int cols) { return take(backend_->create_tensor(kMaxRows, cols)); };
    h_ = tensor(kHidden), x_ = tensor(kHidden), q_ = tensor(kHeads * kHeadDim), k_ = tensor(kKvHeads * kHeadDim);
    v_ = tensor(kKvHeads * kHeadDim), a_ = tensor(kHeads * kHeadDim), gate_ = tensor(kInner), up_ = tensor(kInner);
    act_ = tensor(kInner), gathered_ = tensor(kHidden), normed_ = tensor(kHidden), logits_ = tensor(kVocab);
  }

  Status run(const Step& step) {
    Backend& b = *backend_;
    b.begin_step(step);
    b.embed(embedding_, kEmbedScale, h_);
    for (size_t i = 0; i < layers_.size(); ++i) {
      const LayerHandles& w = layers_[i];
      b.norm(h_, {NormKind::kRms, 1e-5f, w.norm1, {}, 0}, x_);
      const LinearOutput qkv[] = {{w.q, w.q_bias, q_}, {w.k, {}, k_}, {w.v, {}, v_}};
      b.linear(x_, qkv);
      AttentionInputParams inputs{q_, k_, v_, kHeads, groups_[i], 0, {}, {}, false, {}, {}, 0};
      inputs.q_norm = NormParams{NormKind::kRms, 1e-6f, w.qk_norm, {}, kHeadDim};
      inputs.k_norm = inputs.q_norm;
      inputs.rope = {i == 0 ? RopeKind::kHalf : RopeKind::kInterleaved, kHeadDim, frequencies_, 1.0f};
      inputs.query_scale = {0.1f, 100.0f};
      b.attention_inputs(inputs);
      b.attention({q_, a_, kHeads, groups_[i], 0, kScale, i == 0 ? 0.0f : 15.0f});
      const LinearOutput o[] = {{w.o, {}, x_}};
      b.linear(a_, o);
      b.add_scaled(h_, kAddScale, x_);
      b.norm(h_, {NormKind::kLayer, 1e-5f, w.norm2, {}, 0}, x_);
      const LinearOutput gate_up[] = {{w.gate, {}, gate_}, {w.up, {}, up_}};
      b.linear(x_, gate_up);
      b.gated_activation(Activation::kSilu, gate_, up_, act_);
      const LinearOutput down[] = {{w.down, {}, x_}};
      b.linear(act_, down);
      b.add_scaled(h_, 1.0f, x_);
    }
    b.gather_logit_rows(h_, gathered_);
    b.norm(gathered_, {NormKind::kRms, 1e-5f, final_norm_, {}, 0}, normed_);
    const LinearOutput head[] = {{head_, {}, logits_}};
    b.linear(normed_, head);
    b.finish_logits(logits_, kLogitScale, kLogitCap);
    return b.end_step();
  }

  std::span<const float> logits(int64_t i) const { return backend_->host_row(logits_, i); }
  const Backend& backend() const { return *backend_; }

 private:
  struct LayerHandles {
    Matrix q, k, v, o, gate, up, down;
    Vector norm1, norm2, q_bias, qk_norm;
  };
  std::unique_ptr<Backend> backend_;
  Matrix embedding_, head_;
  Vector final_norm_, frequencies_;
  std::vector<LayerHandles> layers_;
  std::vector<KvGroup> groups_;
  Tensor h_, x_, q_, k_, v_, a_, gate_, up_, act_, gathered_, normed_, logits_;
};

// Gives blocks to sequences; a sliding group's blocks go back, dirty, once they lie outside the window. Which free
// block comes next is said by `choices`, over and over.
class Blocks {
 public:
  explicit Blocks(std::vector<uint64_t> choices) : choices_(std::move(choices)) {
    for (auto& free : free_)
      for (int32_t i = 0; i < kBlocks; ++i) free.push_back(i);
  }
  void extend(std::vector<std::vector<int32_t>>& tables, int64_t first_position, int64_t last_position) {
    tables.resize(2);
    for (size_t g = 0; g < 2; ++g) {
      if (g == 1) {
        for (int64_t i = 0; (i + 1) * kBlockTokens <= first_position - kWindow + 1; ++i) {
          int32_t& block = tables[g][static_cast<size_t>(i)];
          if (block >= 0) free_[g].push_back(block);
          block = -1;
        }
      }
      while (static_cast<int64_t>(tables[g].size()) * kBlockTokens <= last_position) {
        std::swap(free_[g][choices_[next_++ % choices_.size()] % free_[g].size()], free_[g].back());
        tables[g].push_back(free_[g].back());
        free_[g].pop_back();
      }
    }
  }

 private:
  std::vector<uint64_t> choices_;
  size_t next_ = 0;
  std::vector<int32_t> free_[2];
};

using Tokens = std::vector<int32_t>;
using Logits = std::vector<std::vector<float>>;  // per position

// What one sequence does in a step.
struct Turn {
  bool rests = false;
  int64_t rows = 1;
  uint64_t logits = 0;  // row i wants them where bit i % 64 is set
};
void showValue(const Turn& turn, std::ostream& out) {
  out << (turn.rests ? "rest" : std::to_string(turn.rows) + " rows");
}

// How sequences share steps and pages. Turns come round again when all are done; the first of them never rests.
struct Mix {
  std::vector<Turn> turns;
  std::vector<uint64_t> pages;  // choices of Blocks
};
Mix draw_mix() {
  using rc::gen::set;
  const auto turn = rc::gen::build<Turn>(
      set(&Turn::rests, rc::gen::map(between(0, 3), [](int x) { return x == 3; })),
      set(&Turn::rows, rc::gen::oneOf(between<int64_t>(1, 3), between<int64_t>(1, 150))), set(&Turn::logits, bits()));
  Mix mix;
  mix.turns = *list_of(between<size_t>(20, 30, 1), turn).as("turns of the sequences");
  mix.pages = *list_of(between<size_t>(8, 16, 1), between<uint64_t>(0, 99)).as("choices of pages");
  return mix;
}

std::vector<Logits> run_mixed(Model& model, const std::vector<Tokens>& sequences, const Mix& mix) {
  Blocks blocks(mix.pages);
  size_t next_turn = 0;
  std::vector<Logits> out(sequences.size());
  std::vector<std::vector<std::vector<int32_t>>> tables(sequences.size());
  std::vector<size_t> done(sequences.size());
  Step step;
  for (;;) {
    step.rows.clear();
    step.sequences.clear();
    std::vector<std::pair<size_t, size_t>> wanted;
    bool left = false;
    for (size_t s = 0; s < sequences.size(); ++s) {
      const size_t rest = sequences[s].size() - done[s];
      left = left || rest > 0;
      if (rest == 0) continue;
      const size_t place = next_turn++ % mix.turns.size();
      const Turn& turn = mix.turns[place];
      if (turn.rests && place > 0) continue;
      const size_t n = std::min(rest, static_cast<size_t>(turn.rows));
      blocks.extend(tables[s], static_cast<int64_t>(done[s]), static_cast<int64_t>(done[s] + n - 1));
      step.sequences.push_back({static_cast<int32_t>(step.rows.size()), static_cast<int32_t>(n), tables[s]});
      for (size_t i = 0; i < n; ++i) {
        Row row;
        row.value = sequences[s][done[s] + i];
        row.sequence = static_cast<int32_t>(step.sequences.size() - 1);
        row.position[0] = static_cast<int32_t>(done[s] + i);
        row.wants_logits = (turn.logits >> (i % 64) & 1) != 0;
        if (row.wants_logits) wanted.push_back({s, done[s] + i});
        step.rows.push_back(row);
      }
      done[s] += n;
    }
    if (!left) return out;
    const Status status = model.run(step);
    EXPECT_TRUE(status.ok()) << (status.ok() ? "" : status.error().message);
    for (size_t i = 0; i < wanted.size(); ++i) {
      Logits& logits = out[wanted[i].first];
      logits.resize(std::max(logits.size(), wanted[i].second + 1));
      const std::span<const float> row = model.logits(static_cast<int64_t>(i));
      logits[wanted[i].second].assign(row.begin(), row.end());
    }
  }
}

Step whole_sequence(const Tokens& tokens) {
  Step step;
  Blocks blocks({0});
  step.sequences.resize(1);
  // Windows only shrink what is read: the sliding group keeps every block here.
  blocks.extend(step.sequences[0].block_tables, 0, static_cast<int64_t>(tokens.size()) - 1);
  step.sequences[0].n_rows = static_cast<int32_t>(tokens.size());
  for (size_t i = 0; i < tokens.size(); ++i) {
    Row row;
    row.value = tokens[i];
    row.position[0] = static_cast<int32_t>(i);
    row.wants_logits = true;
    step.rows.push_back(row);
  }
  return step;
}

Logits run_whole(Model& model, const Tokens& tokens) {
  const Status status = model.run(whole_sequence(tokens));
  EXPECT_TRUE(status.ok()) << (status.ok() ? "" : status.error().message);
  Logits out;
  for (size_t i = 0; i < tokens.size(); ++i) {
    const std::span<const float> row = model.logits(static_cast<int64_t>(i));
    out.emplace_back(row.begin(), row.end());
  }
  return out;
}

Tokens random_tokens(size_t n, uint32_t seed) {
  std::mt19937 random(seed);
  Tokens out(n);
  for (int32_t& t : out) t = static_cast<int32_t>(random() % (kVocab - 1));
  return out;
}

// Of the positions that wanted logits.
::testing::AssertionResult same_bits(const Logits& got, const Logits& expected) {
  for (size_t i = 0; i < got.size(); ++i)
    for (size_t j = 0; j < got[i].size(); ++j)
      if (std::bit_cast<uint32_t>(got[i][j]) != std::bit_cast<uint32_t>(expected[i][j]))
        return ::testing::AssertionFailure()
               << "position " << i << " logit " << j << ": " << got[i][j] << " and " << expected[i][j];
  return ::testing::AssertionSuccess();
}

std::vector<Isa> isas() {
  return available_isas();
}

TEST(RowInvariance, OfTheBackEnd) {
  for (const Compute compute : {Compute::kI8, Compute::kI16, Compute::kF32}) {
    for (const Scheme scheme : {Scheme::kQ8_0, Scheme::kF32}) {
      const ModelWeights weights(scheme);
      check_property(std::string(to_string(compute)) + " " + to_string(scheme), 1, [&] {
        const std::vector<Tokens> sequences = {*token_ids(600, 640, kVocab - 1).as("sequence 1"),
                                               *token_ids(270, 320, kVocab - 1).as("sequence 2"),
                                               *token_ids(1, 60, kVocab - 1).as("sequence 3")};
        Model whole(weights, {compute, isas().back(), 1, true});
        std::vector<Logits> expected;
        for (const Tokens& tokens : sequences) expected.push_back(run_whole(whole, tokens));
        for (const Isa isa : isas()) {
          for (const int threads : {1, 2, 4}) {
            // Portable fused multiply-adds may be library calls: one thread count.
            if (isa == Isa::kPortable && threads != 2) continue;
            Model model(weights, {compute, isa, threads, true});
            const std::vector<Logits> got = run_mixed(model, sequences, draw_mix());
            for (size_t s = 0; s < sequences.size(); ++s)
              require(same_bits(got[s], expected[s]), std::string(to_string(isa)) + ", " + std::to_string(threads) +
                                                          " threads, sequence " + std::to_string(s + 1));
          }
        }
      });
    }
  }
}

// The same model in double precision; float32 only where the contract says so (rope's angle).
class DoubleModel {
 public:
  explicit DoubleModel(const ModelWeights& weights) : w_(weights) {}

  std::vector<std::vector<double>> run(const Tokens& tokens) const {
    const size_t n = tokens.size();
    std::vector<std::vector<double>> h(n);
    for (size_t i = 0; i < n; ++i) {
      for (int j = 0; j < kHidden; ++j) {
        h[i].push_back(static_cast<double>(w_.embedding.values[static_cast<size_t>(tokens[i] * kHidden + j)]) *
                       kEmbedScale);
      }
    }
    for (size_t l = 0; l < w_.layers.size(); ++l) layer(l, h);
    std::vector<std::vector<double>> out;
    for (const auto& row : h) {
      std::vector<double> logits = multiply(w_.head, rms(row, w_.final_norm, 1e-5));
      for (double& x : logits) x = kLogitCap * std::tanh(x * kLogitScale / kLogitCap);
      out.push_back(logits);
    }
    return out;
  }

 private:
  static std::vector<double> multiply(const Weights& w, const std::vector<double>& x) {
    std::vector<double> out;
    for (int64_t r = 0; r < w.rows; ++r) {
      double sum = 0;
      for (int64_t c = 0; c < w.cols; ++c) {
        sum += static_cast<double>(w.values[static_cast<size_t>(r * w.cols + c)]) * x[static_cast<size_t>(c)];
      }
      out.push_back(sum);
    }
    return out;
  }
  static std::vector<double> rms(std::vector<double> x, const std::vector<float>& weight, double eps) {
    double squares = 0;
    for (const double v : x) squares += v * v;
    const double factor = 1 / std::sqrt(squares / static_cast<double>(x.size()) + eps);
    for (size_t i = 0; i < x.size(); ++i) x[i] *= factor * weight[i];
    return x;
  }
  static std::vector<double> layer_norm(std::vector<double> x, const std::vector<float>& weight) {
    double mean = 0;
    for (const double v : x) mean += v;
    mean /= static_cast<double>(x.size());
    for (double& v : x) v -= mean;
    return rms(x, weight, 1e-5);
  }
  void head_input(std::vector<double>& x, const LayerWeights& w, size_t layer, size_t position) const {
    for (size_t head = 0; head < x.size(); head += kHeadDim) {
      std::vector<double> part(x.begin() + static_cast<ptrdiff_t>(head),
                               x.begin() + static_cast<ptrdiff_t>(head) + kHeadDim);
      part = rms(part, w.qk_norm, 1e-6);
      for (size_t i = 0; i < kHeadDim / 2; ++i) {
        const double angle = static_cast<double>(static_cast<float>(position) * w_.frequencies[i]);
        double& a = part[layer == 0 ? i : 2 * i];
        double& b = part[layer == 0 ? i + kHeadDim / 2 : 2 * i + 1];
        const double turned = a * std::cos(angle) - b * std::sin(angle);
        b = b * std::cos(angle) + a * std::sin(angle);
        a = turned;
      }
      std::copy(part.begin(), part.end(), x.begin() + static_cast<ptrdiff_t>(head));
    }
  }
  void layer(size_t l, std::vector<std::vector<double>>& h) const {
    const LayerWeights& w = w_.layers[l];
    std::vector<std::vector<double>> q, k, v;
    for (size_t i = 0; i < h.size(); ++i) {
      const std::vector<double> x = rms(h[i], w.norm1, 1e-5);
      q.push_back(multiply(w.q, x));
      for (size_t j = 0; j < q[i].size(); ++j) q[i][j] += w.q_bias[j];
      k.push_back(multiply(w.k, x));
      v.push_back(multiply(w.v, x));
      head_input(q[i], w, l, i);
      head_input(k[i], w, l, i);
      for (double& y : q[i]) y *= 1 + 0.1 * std::log(1 + std::floor(static_cast<double>(i) / 100.0));
    }
    for (size_t i = 0; i < h.size(); ++i) {
      const size_t first = l == 1 && i + 1 > kWindow ? i + 1 - kWindow : 0;
      std::vector<double> attended;
      for (size_t head = 0; head < kHeads; ++head) {
        const size_t kv = head / (kHeads / kKvHeads) * kHeadDim;
        std::vector<double> sum(kHeadDim);
        double total = 0;
        for (size_t key = first; key <= i; ++key) {
          double score = 0;
          for (size_t d = 0; d < kHeadDim; ++d) score += q[i][head * kHeadDim + d] * k[key][kv + d];
          score *= kScale;
          if (l == 1) score = 15 * std::tanh(score / 15);
          total += std::exp(score);
          for (size_t d = 0; d < kHeadDim; ++d) sum[d] += std::exp(score) * v[key][kv + d];
        }
        for (const double s : sum) attended.push_back(s / total);
      }
      const std::vector<double> o = multiply(w.o, attended);
      for (size_t j = 0; j < kHidden; ++j) h[i][j] += kAddScale * o[j];
      const std::vector<double> x = layer_norm(h[i], w.norm2);
      std::vector<double> gate = multiply(w.gate, x);
      const std::vector<double> up = multiply(w.up, x);
      for (size_t j = 0; j < gate.size(); ++j) gate[j] = gate[j] / (1 + std::exp(-gate[j])) * up[j];
      const std::vector<double> down = multiply(w.down, gate);
      for (size_t j = 0; j < kHidden; ++j) h[i][j] += down[j];
    }
  }
  const ModelWeights& w_;
};

TEST(CpuBackend, MatchesTheModelInDoublePrecision) {
  const Tokens tokens = random_tokens(280, 4);
  for (const Scheme scheme : {Scheme::kF32, Scheme::kQ8_0}) {
    const ModelWeights weights(scheme);
    const std::vector<std::vector<double>> expected = DoubleModel(weights).run(tokens);
    const auto largest_error = [&](Compute compute, DType kv_type) {
      Model model(weights, {compute, isas().back(), 2, true}, kv_type);
      const Logits got = run_whole(model, tokens);
      double worst = 0;
      for (size_t i = 0; i < tokens.size(); ++i) {
        for (size_t j = 0; j < kVocab; ++j) worst = std::max(worst, std::fabs(got[i][j] - expected[i][j]));
      }
      return worst;
    };
    // Logits are of size 1 to 10. float32: some hundred roundings of 6e-8 each; i16: 1/65278 per activation and f16
    // K/V of 11 bits; i8: 1/254 per activation through seven products.
    EXPECT_LT(largest_error(Compute::kF32, DType::kF32), 2e-5);
    EXPECT_LT(largest_error(Compute::kI16, DType::kF16), 2e-2);
    EXPECT_LT(largest_error(Compute::kI8, DType::kBF16), 0.5);
  }
}

TEST(CpuBackend, AnOverflowStaysInItsOwnSequence) {
  const ModelWeights weights(Scheme::kQ8_0);
  for (const Compute compute : {Compute::kI8, Compute::kI16, Compute::kF32}) {
    std::vector<Tokens> sequences{random_tokens(200, 5), random_tokens(150, 6)};
    Model alone(weights, {compute, isas().back(), 1, true});
    const Logits expected = run_whole(alone, sequences[0]);
    for (size_t i = 0; i < sequences[1].size(); i += 7) sequences[1][i] = kVocab - 1;
    Model model(weights, {compute, isas().back(), 2, true});
    // From the second case on, blocks are full of infinities and NaN that the one before left.
    check_property(to_string(compute), 3,
                   [&] { require(same_bits(run_mixed(model, sequences, draw_mix())[0], expected)); });
  }
}

TEST(CpuBackend, AWarmStepAllocatesNothing) {
  const ModelWeights weights(Scheme::kQ8_0);
  Model model(weights, {Compute::kI8, isas().back(), 2, true});
  const Tokens tokens = random_tokens(600, 7);
  ASSERT_TRUE(model.run(whole_sequence(tokens)).ok());
  // Decode steps of one row, then steps of a few rows, at positions inside one block.
  Step step = whole_sequence(random_tokens(640, 8));
  const auto run_rows = [&](int32_t position, int32_t rows) {
    step.rows.resize(static_cast<size_t>(rows));
    for (int32_t i = 0; i < rows; ++i) step.rows[static_cast<size_t>(i)].position[0] = position + i;
    step.sequences[0].n_rows = rows;
    return model.run(step).ok();
  };
  for (const int32_t rows : {5, 1}) ASSERT_TRUE(run_rows(600, rows));
  for (const int32_t rows : {5, 1}) ASSERT_TRUE(run_rows(600, rows));
  const int64_t before = allocations.load();
  bool ok = true;
  for (int32_t i = 0; i < 20; ++i) ok = run_rows(605 + i, 1) && run_rows(605, 5) && ok;
  EXPECT_EQ(allocations.load() - before, 0);
  EXPECT_TRUE(ok);
}

// Models of one process share its threads; each has the results of a pool of its own.
TEST(CpuBackend, BackEndsTakeTurnsOnOnePool) {
  const ModelWeights weights(Scheme::kQ8_0);
  const Tokens tokens = random_tokens(48, 12);
  Model alone(weights, {Compute::kI16, isas().back(), 2, true});
  const Logits expected = run_whole(alone, tokens);
  const auto pool = std::make_shared<Pool>(2);
  std::vector<std::thread> callers;
  for (int caller = 0; caller < 3; ++caller) {
    callers.emplace_back([&] {
      Model model(weights, {Compute::kI16, isas().back(), 5, true, pool});
      EXPECT_EQ(model.backend().info().threads, 2);
      for (int i = 0; i < 10; ++i) EXPECT_EQ(run_whole(model, tokens), expected);
    });
  }
  for (std::thread& caller : callers) caller.join();
}

TEST(CpuBackend, RefusesABrokenStepAndGoesOn) {
  const ModelWeights weights(Scheme::kQ8_0);
  Model model(weights, {Compute::kI8, isas().back(), 2, true});
  const Tokens tokens = random_tokens(40, 9);
  const Step good = whole_sequence(tokens);
  const auto refused = [&](auto change) {
    Step step = good;
    change(step);
    const Status status = model.run(step);
    return !status.ok() && status.error().kind == ErrorKind::kInternal;
  };
  EXPECT_TRUE(refused([](Step& s) { s.sequences[0].block_tables[0][1] = kBlocks; }));
  EXPECT_TRUE(refused([](Step& s) { s.sequences[0].block_tables[0][1] = -1; }));
  EXPECT_TRUE(refused([](Step& s) { s.sequences[0].block_tables[1].pop_back(); }));
  EXPECT_TRUE(refused([](Step& s) { s.sequences[0].block_tables.pop_back(); }));
  EXPECT_TRUE(refused([](Step& s) { s.sequences[0].n_rows -= 1; }));
  EXPECT_TRUE(refused([](Step& s) { s.rows[3].position[0] = 17; }));
  EXPECT_TRUE(refused([](Step& s) { s.rows[3].value = kVocab; }));
  EXPECT_TRUE(refused([](Step& s) { s.rows[3].value = -1; }));
  EXPECT_TRUE(refused([](Step& s) { s.rows[3].source = RowSource::kEmbedding; }));
  EXPECT_TRUE(model.run(good).ok());
  EXPECT_TRUE(model.run(Step{}).ok());
}

TEST(CpuBackend, ReportsItselfAndItsMemory) {
  const ModelWeights weights(Scheme::kQ8_0);
  Model model(weights, {Compute::kI16, Isa::kPortable, 3, true});
  EXPECT_EQ(model.backend().info().device, "cpu");
  EXPECT_EQ(model.backend().info().isa, "portable");
  EXPECT_EQ(model.backend().info().threads, 3);
  EXPECT_EQ(model.backend().info().compute, Compute::kI16);
  const MemoryUse use = model.backend().memory();
  EXPECT_EQ(use.kv_bytes, 2 * kBlocks * kBlockTokens * kKvHeads * 2 * kHeadDim * 2);
  EXPECT_GE(use.activation_bytes, int64_t{kMaxRows} * 4 * (5 * kHidden + 3 * kInner + 2 * kVocab));
  EXPECT_GT(use.weight_bytes + use.mapped_bytes, 0);
  EXPECT_FALSE(make_cpu_backend({Compute::kI8, Isa::kPortable, 0, true}).ok());
}

}  // namespace
}  // namespace vedette::ops::cpu
