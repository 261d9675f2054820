#include "engine/memory.h"

#include <algorithm>
#include <fstream>
#include <limits>
#include <optional>
#include <sstream>

#include "base/error.h"
#include "cache/kv_cache.h"
#include "text/tokenizer.h"

namespace vedette::engine {
namespace {

std::optional<std::string> read_text(const std::string& path) {
  std::ifstream file(path);
  if (!file) return std::nullopt;
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

std::optional<int64_t> to_number(const std::string& text) {
  std::istringstream stream(text);
  int64_t value = 0;
  if (stream >> value) return value;
  return std::nullopt;  // "max", or nothing
}

// The number after `key` in lines of "key value"; 0 if there is none.
int64_t number_after(const std::string& text, const std::string& key) {
  std::istringstream lines(text);
  std::string word;
  int64_t value = 0;
  while (lines >> word)
    if (word == key && lines >> value) return value;
  return 0;
}

struct CgroupFiles {
  std::string mount;
  const char* limit;
  const char* usage;
  const char* active_file;
  const char* inactive_file;
};

// What one cgroup folder still allows: limit - usage + file cache, which the kernel gives back under pressure.
std::optional<int64_t> cgroup_room(const CgroupFiles& files, const std::string& folder) {
  const auto limit_text = read_text(folder + files.limit);
  if (!limit_text) return std::nullopt;
  const auto limit = to_number(*limit_text);
  if (!limit) return std::nullopt;
  const int64_t usage = to_number(read_text(folder + files.usage).value_or("0")).value_or(0);
  const std::string statistics = read_text(folder + "memory.stat").value_or("");
  const int64_t cache = number_after(statistics, files.active_file) + number_after(statistics, files.inactive_file);
  return std::max<int64_t>(0, *limit - usage + std::min(cache, usage));
}

// The tightest of a cgroup and all those above it.
int64_t hierarchy_room(const CgroupFiles& files, std::string path) {
  int64_t room = std::numeric_limits<int64_t>::max();
  while (true) {
    while (path.ends_with('/')) path.pop_back();
    room = std::min(room, cgroup_room(files, files.mount + path + "/").value_or(room));
    if (path.empty()) return room;
    path.resize(path.rfind('/') == std::string::npos ? 0 : path.rfind('/'));
  }
}

}  // namespace

Result<int64_t> available_memory(const std::string& root) {
  const auto meminfo = read_text(root + "proc/meminfo");
  int64_t available = meminfo ? number_after(*meminfo, "MemAvailable:") * 1024 : 0;
  if (available <= 0) available = std::numeric_limits<int64_t>::max();
  const CgroupFiles v1{root + "sys/fs/cgroup/memory", "memory.limit_in_bytes", "memory.usage_in_bytes",
                       "total_active_file", "total_inactive_file"};
  const CgroupFiles v2{root + "sys/fs/cgroup", "memory.max", "memory.current", "active_file", "inactive_file"};
  std::istringstream lines(read_text(root + "proc/self/cgroup").value_or(""));
  for (std::string line; std::getline(lines, line);) {
    // hierarchy id : controllers : path; v2 has id 0 and no controllers.
    const size_t first = line.find(':');
    const size_t second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos) continue;
    const std::string controllers = "," + line.substr(first + 1, second - first - 1) + ",";
    const std::string path = line.substr(second + 1);
    if (controllers == ",,") available = std::min(available, hierarchy_room(v2, path));
    if (controllers.find(",memory,") != std::string::npos) available = std::min(available, hierarchy_room(v1, path));
  }
  if (available == std::numeric_limits<int64_t>::max())
    return unavailable("", "{}proc/meminfo: no MemAvailable, and no cgroup limit: cannot tell how much memory is free",
                       root);
  return available;
}

Result<int64_t> available_memory() {
  return available_memory("/");
}

std::vector<int64_t> blocks_for(std::span<const models::KvGroupPlan> groups, int64_t context, int64_t sequences,
                                int64_t chunk) {
  std::vector<int64_t> blocks;
  for (const models::KvGroupPlan& group : groups)
    blocks.push_back(sequences * cache::most_blocks(group.window, context, chunk));
  return blocks;
}

int64_t kv_bytes(std::span<const models::KvGroupPlan> groups, std::span<const int64_t> blocks, ops::DType type) {
  int64_t bytes = 0;
  for (size_t i = 0; i < groups.size(); ++i) bytes += blocks[i] * ops::kBlockTokens * groups[i].bytes_per_token(type);
  return bytes;
}

int64_t program_bytes(const weights::Checkpoint& checkpoint) {
  // Measured (bench/start_up.py): pages of the program and its libraries, buffers of the first step, stacks.
  constexpr int64_t kProgramBytes = int64_t{32} << 20;
  return kProgramBytes + text::tokenizer_bytes(checkpoint.tokenizer);
}

MemoryEstimate estimate_memory(int64_t weight_bytes, int64_t kv_bytes, int64_t activation_bytes, int64_t available,
                               int64_t program_bytes) {
  MemoryEstimate estimate{weight_bytes, kv_bytes, activation_bytes, program_bytes, 0, available};
  estimate.total_bytes = static_cast<int64_t>(kMemoryHeadroom * static_cast<double>(weight_bytes + kv_bytes)) +
                         activation_bytes + program_bytes;
  return estimate;
}

std::vector<int64_t> cache_blocks_for(std::span<const models::KvGroupPlan> groups, int64_t tokens) {
  std::vector<int64_t> blocks;
  if (tokens <= 0) return std::vector<int64_t>(groups.size(), 0);
  const int64_t snapshots = std::max<int64_t>(4, tokens / kTokensPerSnapshot);
  for (const models::KvGroupPlan& group : groups) {
    const int64_t all = cache::blocks_of(tokens);
    blocks.push_back(group.window > 0 ? std::min(all, snapshots * (cache::blocks_of(group.window - 1) + 1)) : all);
  }
  return blocks;
}

namespace {

// Bytes that K/V may take beside weights and activations.
int64_t kv_limit(const KvPlanInput& input) {
  const int64_t rest = input.available_bytes - input.activation_bytes - input.program_bytes;
  const int64_t fits = static_cast<int64_t>(static_cast<double>(rest) / kMemoryHeadroom) - input.weight_bytes;
  return input.kv_budget_bytes > 0 ? std::min(fits, input.kv_budget_bytes) : fits;
}

int64_t bytes_for(const KvPlanInput& input, int64_t context, int64_t sequences) {
  return kv_bytes(input.groups, blocks_for(input.groups, context, sequences, input.prefill_chunk), input.kv_type);
}

// The largest context, in whole blocks and at most `most`, of which one sequence fits into `limit`; 0 if none does.
int64_t largest_context(const KvPlanInput& input, int64_t most, int64_t limit) {
  int64_t low = 0, high = most / ops::kBlockTokens;
  while (low < high) {
    const int64_t middle = low + (high - low + 1) / 2;
    if (bytes_for(input, middle * ops::kBlockTokens, 1) <= limit)
      low = middle;
    else
      high = middle - 1;
  }
  return low * ops::kBlockTokens;
}

// As large a part of `all` blocks as fits into `limit`, at least `one`.
std::vector<int64_t> shared_blocks(const KvPlanInput& input, const std::vector<int64_t>& one,
                                   const std::vector<int64_t>& all, int64_t limit) {
  constexpr int64_t kSteps = 256;
  std::vector<int64_t> blocks = one;
  for (int64_t step = kSteps; step > 0; --step) {
    for (size_t i = 0; i < all.size(); ++i) blocks[i] = one[i] + (all[i] - one[i]) * step / kSteps;
    if (kv_bytes(input.groups, blocks, input.kv_type) <= limit) return blocks;
  }
  return one;
}

// `blocks` and as large a part of what the prefix cache may have as fits into `limit`.
std::vector<int64_t> with_cache(const KvPlanInput& input, std::vector<int64_t> blocks, int64_t context, int64_t limit) {
  const bool given = input.cache_tokens >= 0;
  if (!given) {
    const int64_t used = kv_bytes(input.groups, blocks, input.kv_type);
    limit = used + (limit - used) / 2;
  }
  const auto extra = cache_blocks_for(input.groups, given ? input.cache_tokens : context);
  std::vector<int64_t> all = blocks;
  for (size_t i = 0; i < all.size(); ++i) all[i] += extra[i];
  return shared_blocks(input, blocks, all, limit);
}

// A shorter context is of no use to anyone.
constexpr int64_t kLeastContext = 256;

Status check_input(const KvPlanInput& input, int64_t limit) {
  VEDETTE_RETURN_IF_ERROR(check_context(input.context_length, input.model_context));
  if (limit > 0) return ok_status();
  const MemoryEstimate needs =
      estimate_memory(input.weight_bytes, 0, input.activation_bytes, input.available_bytes, input.program_bytes);
  return out_of_budget("",
                       "the model needs {} for weights and activations, {} are available; use a smaller or more "
                       "strongly quantized model, or free memory",
                       format_bytes(needs.total_bytes), format_bytes(needs.available_bytes));
}

}  // namespace

Status check_context(int64_t wanted, int64_t model_context) {
  if (wanted > model_context)
    return invalid_request("context_length",
                           "a context of {} tokens was asked for, the model was trained for {}; "
                           "lower --ctx-size",
                           wanted, model_context);
  return ok_status();
}

Result<KvPlan> plan_kv(const KvPlanInput& input) {
  const int64_t limit = kv_limit(input);
  VEDETTE_RETURN_IF_ERROR(check_input(input, limit));
  KvPlan plan;
  plan.context_length = input.context_length > 0 ? input.context_length : input.model_context;
  const int64_t one_bytes = bytes_for(input, plan.context_length, 1);
  if (one_bytes > limit) {
    const int64_t fits = largest_context(input, plan.context_length, limit);
    const int64_t least = std::min(kLeastContext, plan.context_length);
    if (input.context_length > 0 || fits < least)
      return out_of_budget("context_length",
                           "K/V of {} tokens needs {}, {} are available for it beside {} of weights; lower --ctx-size "
                           "to at most {} or use a smaller K/V type",
                           plan.context_length, format_bytes(one_bytes), format_bytes(limit),
                           format_bytes(input.weight_bytes), fits);
    plan.context_length = fits;
  }
  const auto one = blocks_for(input.groups, plan.context_length, 1, input.prefill_chunk);
  const auto all = blocks_for(input.groups, plan.context_length, input.max_sequences, input.prefill_chunk);
  plan.blocks = shared_blocks(input, one, all, limit);
  plan.sequences = input.max_sequences;
  for (size_t i = 0; i < one.size(); ++i) plan.sequences = std::min(plan.sequences, plan.blocks[i] / one[i]);
  plan.blocks = with_cache(input, std::move(plan.blocks), plan.context_length, limit);
  plan.memory = estimate_memory(input.weight_bytes, kv_bytes(input.groups, plan.blocks, input.kv_type),
                                input.activation_bytes, input.available_bytes, input.program_bytes);
  return plan;
}

std::string format_bytes(int64_t bytes) {
  if (bytes < 0) return "0 bytes";
  if (bytes < 1024) return fmt::format("{} bytes", bytes);
  const char* units[] = {"KiB", "MiB", "GiB", "TiB"};
  double value = static_cast<double>(bytes) / 1024;
  size_t unit = 0;
  for (; value >= 1024 && unit + 1 < std::size(units); ++unit) value /= 1024;
  return fmt::format("{:.2f} {}", value, units[unit]);
}

}  // namespace vedette::engine
