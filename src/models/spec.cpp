#include "models/spec.h"

#include <set>
#include <utility>

namespace vedette::models {

namespace {

// Collects tensors in the order the walk reads them, each name once.
class Collector {
 public:
  void add(const std::string& name, std::vector<int64_t> shape) {
    if (!name.empty() && seen_.insert(name).second) tensors_.push_back({name, std::move(shape)});
  }

  void linear(const LinearSpec& spec) {
    const int64_t rows = spec.stored_rows();
    add(spec.weight,
        spec.transposed ? std::vector<int64_t>{spec.in_features, rows} : std::vector<int64_t>{rows, spec.in_features});
    add(spec.bias, {rows});
  }

  void norm(const NormSpec& spec) {
    const bool stacked = spec.group > 0 && spec.size > spec.group;
    add(spec.weight,
        stacked ? std::vector<int64_t>{spec.size / spec.group, spec.group} : std::vector<int64_t>{spec.size});
    for (const std::string& part : spec.weight_parts) add(part, {spec.group});
    add(spec.bias, {spec.size});
  }
  void norm(const std::optional<NormSpec>& spec) {
    if (spec) norm(*spec);
  }

  void operator()(const NormSpec& spec) { norm(spec); }
  void operator()(const ResidualSpec&) {}
  void operator()(const AttentionSpec& spec) {
    for (const LinearSpec* part : {&spec.q, &spec.k, &spec.v, &spec.o}) linear(*part);
    norm(spec.q_norm);
    norm(spec.k_norm);
  }
  void operator()(const MlpSpec& spec) {
    if (spec.gate) linear(*spec.gate);
    linear(spec.up);
    linear(spec.down);
    if (spec.activation_tensors.empty()) return;
    add(spec.activation_tensors + "alpha_p", {1});
    add(spec.activation_tensors + "alpha_n", {1});
    add(spec.activation_tensors + "beta", {});
    add(spec.activation_tensors + "eps", {});
  }
  void operator()(const ParallelBlockSpec& spec) {
    norm(spec.attention_norm);
    norm(spec.mlp_norm);
    (*this)(spec.attention);
    (*this)(spec.mlp);
  }

  std::vector<ExpectedTensor> take() { return std::move(tensors_); }

 private:
  std::set<std::string> seen_;
  std::vector<ExpectedTensor> tensors_;
};

}  // namespace

std::vector<ExpectedTensor> expected_tensors(const DecoderSpec& spec) {
  Collector collector;
  collector.add(spec.embedding, {spec.vocab_size, spec.hidden_size});
  collector.add(spec.position_embedding, {spec.context_length, spec.hidden_size});
  for (const LayerSpec& layer : spec.layers)
    for (const Part& part : layer.parts) std::visit([&](const auto& inner) { collector(inner); }, part);
  collector.norm(spec.final_norm);
  collector.linear(spec.head);
  return collector.take();
}

}  // namespace vedette::models
