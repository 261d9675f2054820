#include "hostile_case.h"

namespace vedette::hostile {
namespace {

using wt::gguf_string;
using wt::GgufBuilder;
using wt::raw;
using wt::tiny_llama;

Case with_bytes(const std::string& name, const std::string& bytes, std::vector<std::string> expected) {
  expected.push_back("m.gguf");
  return {name, [=](const wt::TempFolder& folder) { return folder.write("m.gguf", bytes); }, expected};
}

Case with(const std::string& name, const GgufBuilder& file, const std::vector<std::string>& expected) {
  return with_bytes(name, file.build(), expected);
}

// tiny_llama with one tensor changed.
template <typename Change>
Case changed(const std::string& name, const std::string& tensor, Change change,
             const std::vector<std::string>& expected) {
  GgufBuilder file = tiny_llama();
  for (auto& one : file.tensors)
    if (one.name == tensor) change(one);
  return with(name, file, expected);
}

// tiny_llama with one more metadata value.
Case value(const std::string& name, const std::string& key, uint32_t type, const std::string& bytes,
           const std::vector<std::string>& expected) {
  return with(name, tiny_llama().raw_value(key, type, bytes), expected);
}

std::vector<Case> header_cases() {
  GgufBuilder magic = tiny_llama();
  magic.magic = 0x67676a74;
  GgufBuilder version = tiny_llama();
  version.version = 9;
  GgufBuilder big_endian = tiny_llama();
  big_endian.version = 0x03000000;
  GgufBuilder tensors = tiny_llama();
  tensors.tensor_count = 1'000'000'000;
  GgufBuilder keys = tiny_llama();
  keys.metadata_count = 5'000'000'000;
  GgufBuilder short_data = tiny_llama();
  short_data.cut = 200;
  const std::string whole = tiny_llama().build();
  return {
      with_bytes("gguf_empty", "", {"0 bytes", "24"}),
      with_bytes("gguf_only_magic", "GGUF", {"4 bytes", "24"}),
      with_bytes("gguf_is_a_pdf", "%PDF-1.7\n1 0 obj\n<< /Type /Catalog >>", {"0x46445025", "0x46554747"}),
      with("gguf_old_magic", magic, {"0x67676a74", "0x46554747"}),
      with("gguf_version_9", version, {"version 9", "2 and 3"}),
      with("gguf_big_endian", big_endian, {"big-endian", "0x3000000"}),
      with("gguf_tensor_count", tensors, {"1000000000 tensors", "bytes are left"}),
      with("gguf_metadata_count", keys, {"5000000000 metadata keys", "bytes are left"}),
      with_bytes("gguf_cut_in_metadata", whole.substr(0, 390), {"needs", "the file has 390"}),
      with_bytes("gguf_cut_in_tensor_table", whole.substr(0, 500), {"tensor", "the file has 500"}),
      with("gguf_cut_in_data", short_data, {"'output_norm.weight'", "256 bytes", "truncated"}),
  };
}

std::vector<Case> metadata_cases() {
  std::string nested;
  for (int i = 0; i < 50; ++i) nested += raw<uint32_t>(9) + raw<uint64_t>(1);
  nested += raw<uint32_t>(4) + raw<uint64_t>(0);
  GgufBuilder unknown;
  unknown.text("general.architecture", "zzz");
  GgufBuilder control;
  control.text("general.architecture", "a\nb");
  GgufBuilder number;
  number.u32("general.architecture", 3);
  GgufBuilder none;
  none.u32("some.key", 3);
  GgufBuilder no_blocks;
  no_blocks.text("general.architecture", "llama");
  GgufBuilder zero_heads;
  zero_heads.text("general.architecture", "llama").u32("llama.block_count", 1).u32("llama.embedding_length", 64);
  zero_heads.u32("llama.attention.head_count", 0);
  GgufBuilder experts = tiny_llama();
  experts.u32("llama.expert_count", 8);
  GgufBuilder vocabulary = tiny_llama();
  vocabulary.text("tokenizer.ggml.model", "gpt2").texts("tokenizer.ggml.tokens", {"a", "b"});
  GgufBuilder scores = vocabulary;
  scores.floats("tokenizer.ggml.scores", {1, 2, 3});
  GgufBuilder types = vocabulary;
  types.ints("tokenizer.ggml.token_type", {1});
  GgufBuilder eos = vocabulary;
  eos.u32("tokenizer.ggml.eos_token_id", 77);
  GgufBuilder no_tokens = tiny_llama();
  no_tokens.text("tokenizer.ggml.model", "llama");
  return {
      value("gguf_value_type", "k", 13, "", {"'k'", "type 13", "0 to 12"}),
      value("gguf_boolean_7", "k", 7, raw<uint8_t>(7), {"'k'", "7", "0 or 1"}),
      value("gguf_string_beyond_file", "k", 8, raw<uint64_t>(1'000'000) + "abc",
            {"'k'", "1000000 bytes", "the file has"}),
      value("gguf_string_limit", "k", 8, raw<uint64_t>(UINT64_MAX) + "abc",
            {"'k'", "18446744073709551615", "67108864"}),
      value("gguf_array_count", "k", 9, raw<uint32_t>(10) + raw<uint64_t>(1ull << 60),
            {"'k'", "1152921504606846976", "8 bytes"}),
      value("gguf_array_type", "k", 9, raw<uint32_t>(99) + raw<uint64_t>(1), {"'k'", "type 99"}),
      value("gguf_array_depth", "k", 9, nested, {"'k'", "nested deeper", "4"}),
      with("gguf_key_length", tiny_llama().u32(std::string(70000, 'k'), 2), {"string of 70000 bytes", "65535"}),
      with("gguf_duplicate_key", tiny_llama().u32("llama.block_count", 2), {"'llama.block_count'", "twice"}),
      value("gguf_alignment_3", "general.alignment", 4, raw<uint32_t>(3), {"general.alignment", "3", "power of two"}),
      value("gguf_alignment_text", "general.alignment", 8, gguf_string("32"), {"general.alignment", "not an integer"}),
      value("gguf_alignment_huge", "general.alignment", 4, raw<uint32_t>(1u << 30),
            {"general.alignment", "1073741824"}),
      with("gguf_architecture_unknown", unknown, {"'zzz'", "supported are llama"}),
      with("gguf_architecture_control", control, {"'a?b'", "supported are llama"}),
      with("gguf_architecture_number", number, {"general.architecture", "no string"}),
      with("gguf_architecture_missing", none, {"general.architecture", "missing"}),
      with("gguf_block_count_missing", no_blocks, {"'llama.block_count'", "missing"}),
      with("gguf_no_heads", zero_heads, {"'llama.attention.head_count'", "0", "1 to 65536"}),
      with("gguf_experts", experts, {"'llama.expert_count'", "8"}),
      value("gguf_rope_type", "llama.rope.scaling.type", 8, gguf_string("spiral"),
            {"llama.rope.scaling.type", "spiral"}),
      with("gguf_scores_count", scores, {"tokenizer.ggml.scores", "3 entries", "2"}),
      with("gguf_types_count", types, {"tokenizer.ggml.token_type", "1 entries", "2"}),
      with("gguf_eos_beyond_vocabulary", eos, {"eos_token_id", "77", "2 tokens"}),
      with("gguf_no_tokens", no_tokens, {"tokenizer.ggml.tokens", "0 tokens"}),
  };
}

std::vector<Case> tensor_cases() {
  using Tensor = wt::GgufBuilderTensor;
  const std::string q = "blk.0.attn_q.weight";
  GgufBuilder twice = tiny_llama();
  twice.tensors[1].name = twice.tensors[0].name;
  GgufBuilder mapped = tiny_llama();
  mapped.tensor("model.norm.weight", {64}, 0, std::string(256, '\0'));
  GgufBuilder long_name = tiny_llama();
  long_name.tensors[0].name = std::string(300, 'n');
  GgufBuilder fused = tiny_llama();
  fused.tensor("blk.0.attn_qkv.weight", {64, 100}, 0, std::string(25600, '\0'));
  return {
      changed("gguf_no_dimensions", q, [](Tensor& t) { t.dimensions = {}; },
              {"'blk.0.attn_q.weight'", "0 dimensions", "1 to 4"}),
      changed("gguf_rank_5", q, [](Tensor& t) { t.dimensions = {1, 1, 1, 1, 1}; },
              {"'blk.0.attn_q.weight'", "5 dimensions"}),
      changed("gguf_dimension_0", q, [](Tensor& t) { t.dimensions = {64, 0}; },
              {"'blk.0.attn_q.weight'", "dimension 1 is 0"}),
      changed("gguf_dimension_huge", q, [](Tensor& t) { t.dimensions = {64, UINT64_MAX}; },
              {"'blk.0.attn_q.weight'", "18446744073709551615"}),
      changed("gguf_shape_overflow", q, [](Tensor& t) { t.dimensions = {1ull << 40, 1ull << 40}; },
              {"'blk.0.attn_q.weight'", "overflows", "1099511627776"}),
      changed("gguf_type_77", q, [](Tensor& t) { t.type = 77; }, {"'blk.0.attn_q.weight'", "77", "Q4_0"}),
      changed("gguf_type_removed", q, [](Tensor& t) { t.type = 4; }, {"'blk.0.attn_q.weight'", "type number 4"}),
      changed("gguf_row_no_whole_block", q,
              [](Tensor& t) {
                t.dimensions = {65, 64};
                t.type = 2;
              },
              {"'blk.0.attn_q.weight'", "65", "32"}),
      changed("gguf_row_no_super_block", q, [](Tensor& t) { t.type = 12; }, {"'blk.0.attn_q.weight'", "64", "256"}),
      changed("gguf_offset_unaligned", q, [](Tensor& t) { t.offset = 33; }, {"'blk.0.attn_q.weight'", "33", "32"}),
      changed("gguf_offset_beyond_data", q, [](Tensor& t) { t.offset = 1 << 30; },
              {"'blk.0.attn_q.weight'", "1073741824", "16384 bytes"}),
      changed("gguf_offset_wraps", q, [](Tensor& t) { t.offset = INT64_MAX - 31; },
              {"'blk.0.attn_q.weight'", "9223372036854775776"}),
      changed("gguf_overlap", q, [](Tensor& t) { t.offset = 0; }, {"offset", "'blk.0.attn_q.weight'", "ends at 2048"}),
      changed("gguf_name_empty", q, [](Tensor& t) { t.name = ""; }, {"tensor 3 of 11", "empty"}),
      changed("gguf_name_bad_utf8", q, [](Tensor& t) { t.name = "a\xff"; }, {"tensor 3 of 11", "not UTF-8"}),
      changed("gguf_name_control", q, [](Tensor& t) { t.name = "a\x01"; }, {"tensor 3 of 11", "'a?'", "control"}),
      with("gguf_name_length", long_name, {"string of 300 bytes", "255"}),
      with("gguf_tensor_twice", twice, {"'token_embd.weight'", "1 and 2"}),
      with("gguf_tensor_twice_after_renaming", mapped, {"'model.norm.weight'", "twice"}),
      changed("gguf_query_rows", q, [](Tensor& t) { t.dimensions = {64, 63}; }, {"'blk.0.attn_q.weight'", "[63, 64]"}),
      with("gguf_fused_rows", fused, {"'blk.0.attn_qkv.weight'", "100 rows", "128"}),
  };
}

}  // namespace

std::vector<Case> gguf_cases() {
  std::vector<Case> all;
  for (const auto& part : {header_cases(), metadata_cases(), tensor_cases()})
    all.insert(all.end(), part.begin(), part.end());
  return all;
}

}  // namespace vedette::hostile
