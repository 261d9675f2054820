// Fixtures for tests: tiny checkpoints with reference logits, and a runner that drives a Decoder over them.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/json.h"
#include "models/decoder.h"
#include "models/registry.h"
#include "weights/checkpoint.h"

namespace vedette::models {

// Folder of unpacked fixtures: $VEDETTE_FIXTURES, else fixtures/ beside the test binary's build folder.
inline std::string fixture_folder() {
  if (const char* folder = std::getenv("VEDETTE_FIXTURES"); folder && *folder) return folder;
  return VEDETTE_FIXTURES_DEFAULT;
}

// A reference.safetensors: input_ids, greedy_ids (any integer type) and logits (F32).
struct Reference {
  std::vector<int32_t> input_ids, greedy_ids;
  std::vector<float> logits;  // [input_ids, vocab]
};

inline Reference read_reference(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  EXPECT_TRUE(in) << path << " is missing: unpack the fixtures or set VEDETTE_FIXTURES";
  const std::string bytes((std::istreambuf_iterator<char>(in)), {});
  Reference out;
  if (bytes.size() < 8) return out;
  uint64_t header_size = 0;
  std::memcpy(&header_size, bytes.data(), 8);
  const auto header = parse_json(std::string_view(bytes).substr(8, header_size), path);
  EXPECT_TRUE(header.ok());
  if (!header.ok()) return out;
  const auto integers = [&](const char* name) {
    const Json* entry = header->find(name);
    std::vector<int32_t> values;
    const size_t width = entry->find("dtype")->as_string() == "I64" ? 8 : 4;
    const auto begin = static_cast<size_t>(entry->find("data_offsets")->as_array()[0].as_int());
    const auto end = static_cast<size_t>(entry->find("data_offsets")->as_array()[1].as_int());
    for (size_t at = begin; at < end; at += width) {
      int64_t value = 0;
      std::memcpy(&value, bytes.data() + 8 + header_size + at, width);
      values.push_back(static_cast<int32_t>(value));
    }
    return values;
  };
  out.input_ids = integers("input_ids");
  out.greedy_ids = integers("greedy_ids");
  const Json& offsets = *header->find("logits")->find("data_offsets");
  const auto begin = static_cast<size_t>(offsets.as_array()[0].as_int());
  const auto end = static_cast<size_t>(offsets.as_array()[1].as_int());
  out.logits.resize((end - begin) / 4);
  std::memcpy(out.logits.data(), bytes.data() + 8 + header_size + begin, end - begin);
  return out;
}

inline Json read_json(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  EXPECT_TRUE(in) << path;
  auto parsed = parse_json(std::string((std::istreambuf_iterator<char>(in)), {}), path);
  EXPECT_TRUE(parsed.ok()) << path;
  return parsed.ok() ? std::move(parsed).value() : Json();
}

// A data file beside these tests.
inline Json test_data(const std::string& name) {
  return read_json(std::string(VEDETTE_SOURCE_DIR) + "/src/models/testdata/" + name);
}

inline std::vector<int32_t> to_ids(const Json& array) {
  std::vector<int32_t> ids;
  for (const Json& id : array.as_array()) ids.push_back(static_cast<int32_t>(id.as_int()));
  return ids;
}

// The family's own greedy ids, and whether the fixture's come from a cache that cut the text to 16 tokens
// (testdata/make_greedy_without_cache.py tells why).
struct Greedy {
  std::vector<int32_t> ids;
  bool cut = false;
};
inline Greedy greedy_of(const std::string& fixture, const Reference& reference) {
  const Json whole = test_data("greedy_without_cache.json");
  const Json* ids = whole.find(fixture);
  return ids ? Greedy{to_ids(*ids), true} : Greedy{reference.greedy_ids, false};
}

// Runs one sequence through a Decoder, chunk by chunk, with blocks handed out in an order that is not the identity.
class Runner {
 public:
  static constexpr int kBlocks = 8;

  static DecoderConfig config(const DecoderSpec& spec, ops::DType kv_type) {
    DecoderConfig config;
    config.max_rows = 64;
    config.max_logit_rows = 64;
    config.kv_type = kv_type;
    config.kv_blocks.assign(plan_kv_groups(spec).size(), kBlocks);
    return config;
  }

  explicit Runner(Decoder& decoder) : decoder_(decoder) {
    step_.sequences.resize(1);
    for (size_t g = 0; g < decoder.kv_groups().size(); ++g) {
      std::vector<int32_t>& table = step_.sequences[0].block_tables.emplace_back();
      for (int b = 0; b < kBlocks; ++b) table.push_back((b * 3 + 5) % kBlocks);
    }
  }

  // Appends the ids and returns the logits of each.
  std::vector<std::vector<float>> feed(std::span<const int32_t> ids) {
    step_.rows.clear();
    for (const int32_t id : ids) {
      ops::Row row;
      row.value = id;
      row.position[0] = position_++;
      row.wants_logits = true;
      step_.rows.push_back(row);
    }
    step_.sequences[0].n_rows = static_cast<int32_t>(ids.size());
    const Status status = decoder_.run(step_);
    EXPECT_TRUE(status.ok()) << (status.ok() ? "" : status.error().message);
    std::vector<std::vector<float>> out;
    for (size_t i = 0; status.ok() && i < ids.size(); ++i) {
      const auto logits = decoder_.logits(static_cast<int64_t>(i));
      out.emplace_back(logits.begin(), logits.end());
    }
    return out;
  }

  // The whole prompt in chunks of `chunk` tokens.
  std::vector<std::vector<float>> prefill(std::span<const int32_t> ids, size_t chunk) {
    std::vector<std::vector<float>> out;
    for (size_t at = 0; at < ids.size(); at += chunk)
      for (auto& row : feed(ids.subspan(at, std::min(chunk, ids.size() - at)))) out.push_back(std::move(row));
    return out;
  }

  std::vector<int32_t> greedy(std::vector<float> logits, size_t count) {
    std::vector<int32_t> ids;
    while (ids.size() < count) {
      ids.push_back(static_cast<int32_t>(std::ranges::max_element(logits) - logits.begin()));
      const auto next = feed({&ids.back(), 1});
      if (next.size() != 1) break;
      logits = next[0];
    }
    return ids;
  }

 private:
  Decoder& decoder_;
  ops::Step step_;
  int32_t position_ = 0;
};

inline std::unique_ptr<Decoder> load_decoder(const weights::Checkpoint& checkpoint,
                                             std::unique_ptr<ops::Backend> backend,
                                             ops::DType kv_type = ops::DType::kF32) {
  auto spec = build_spec(checkpoint);
  EXPECT_TRUE(spec.ok()) << (spec.ok() ? "" : spec.error().message);
  if (!spec.ok()) return nullptr;
  const DecoderConfig config = Runner::config(*spec, kv_type);
  auto decoder = Decoder::load(checkpoint, std::move(*spec), config, std::move(backend));
  EXPECT_TRUE(decoder.ok()) << (decoder.ok() ? "" : decoder.error().message);
  return decoder.ok() ? std::move(*decoder) : nullptr;
}

inline float largest_difference(const std::vector<std::vector<float>>& rows, std::span<const float> reference) {
  float worst = 0;
  size_t at = 0;
  for (const auto& row : rows)
    for (const float value : row) {
      const float difference = std::abs(value - reference[at++]);
      if (!(difference <= worst)) worst = difference;  // NaN counts as the worst
    }
  return worst;
}

// Every folder name the families are tested with; several show one family in more than one form.
inline std::vector<std::string> fixture_names() {
  std::vector<std::string> names{"llama3_rope", "llama_tied_bias"};
  for (const Family& family : families()) names.emplace_back(family.id);
  return names;
}

}  // namespace vedette::models
