#include "models/decoder_plan.h"

#include <algorithm>
#include <variant>

namespace vedette::models {

namespace {

// Calls attention(spec) and mlp(spec) for every such part in the order of the walk, parallel() for parallel blocks.
template <typename OnAttention, typename OnMlp, typename OnParallel>
void visit_parts(const DecoderSpec& spec, OnAttention attention, OnMlp mlp, OnParallel parallel) {
  for (const LayerSpec& layer : spec.layers)
    for (const Part& part : layer.parts) {
      if (const auto* a = std::get_if<AttentionSpec>(&part)) attention(*a);
      if (const auto* m = std::get_if<MlpSpec>(&part)) mlp(*m);
      if (const auto* b = std::get_if<ParallelBlockSpec>(&part)) {
        parallel();
        attention(b->attention);
        mlp(b->mlp);
      }
    }
}

bool same_format(const KvGroupPlan& group, const AttentionSpec& spec) {
  return group.window == spec.window && group.n_kv_heads == spec.n_kv_heads && group.head_dim == spec.head_dim &&
         group.value_dim == spec.value_dim;
}

}  // namespace

KvPlan plan_kv(const DecoderSpec& spec) {
  KvPlan plan;
  const auto add = [&](const AttentionSpec& attention) {
    auto at = std::ranges::find_if(plan.groups, [&](const KvGroupPlan& g) { return same_format(g, attention); });
    if (at == plan.groups.end()) {
      plan.groups.push_back({attention.window, 0, attention.n_kv_heads, attention.head_dim, attention.value_dim});
      at = plan.groups.end() - 1;
    }
    plan.slots.push_back({static_cast<int>(at - plan.groups.begin()), at->n_layers++});
  };
  visit_parts(spec, add, [](const MlpSpec&) {}, [] {});
  return plan;
}

std::vector<KvGroupPlan> plan_kv_groups(const DecoderSpec& spec) {
  return plan_kv(spec).groups;
}

int64_t KvGroupPlan::bytes_per_token(ops::DType type) const {
  return int64_t{n_layers} * n_kv_heads * (int64_t{head_dim} + value_dim) * static_cast<int64_t>(ops::size_of(type));
}

std::vector<ActivationTensor> plan_activations(const DecoderSpec& spec) {
  std::vector<ActivationTensor> plan;
  const auto add = [&](Role role, int64_t cols) {
    const ActivationTensor tensor{role, cols};
    if (std::ranges::find(plan, tensor) == plan.end()) plan.push_back(tensor);
  };
  add(Role::kHidden, spec.hidden_size);
  add(Role::kWorking, spec.hidden_size);
  visit_parts(
      spec,
      [&](const AttentionSpec& a) {
        add(Role::kQuery, a.q.out_features);
        add(Role::kKey, a.k.out_features);
        add(Role::kValue, a.v.out_features);
        add(Role::kAttended, a.o.in_features);
      },
      [&](const MlpSpec& m) {
        if (m.gate) add(Role::kGate, m.gate->out_features);
        add(Role::kUp, m.up.out_features);
      },
      [&] { add(Role::kParallel, spec.hidden_size); });
  add(Role::kGathered, spec.hidden_size);
  add(Role::kLogits, spec.vocab_size);
  return plan;
}

int64_t activation_bytes(const DecoderSpec& spec, const DecoderConfig& config) {
  int64_t bytes = 0;
  for (const ActivationTensor& tensor : plan_activations(spec))
    bytes += tensor.rows(config) * tensor.cols * static_cast<int64_t>(sizeof(float));
  return bytes;
}

}  // namespace vedette::models
