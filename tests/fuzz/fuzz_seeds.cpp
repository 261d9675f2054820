// Writes seed inputs for the fuzz targets: fuzz_seeds FOLDER makes FOLDER/safetensors, FOLDER/gguf, FOLDER/config.
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string>

#include "weights/gguf_architectures.h"
#include "weights/test_files.h"

namespace {

namespace wt = vedette::weights::testing;

void write(const std::filesystem::path& path, const std::string& bytes) {
  std::filesystem::create_directories(path.parent_path());
  std::ofstream(path, std::ios::binary).write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
}

void safetensors(const std::filesystem::path& folder) {
  wt::SafetensorsBuilder dense;
  dense.add_raw("__metadata__", R"({"format":"pt"})");
  dense.add("a", "F32", {2, 3}, std::string(24, '\1')).add("b", "BF16", {4}, std::string(8, '\2'));
  dense.add("c", "F16", {}, std::string(2, '\3')).add("d", "I64", {1}, std::string(8, '\4'));
  write(folder / "dense", dense.build());
  wt::SafetensorsBuilder packed;
  packed.add("l.weight", "U32", {2, 8}, std::string(64, '\5')).add("l.scales", "BF16", {2, 1}, std::string(4, '\6'));
  packed.add("l.biases", "BF16", {2, 1}, std::string(4, '\7'));
  write(folder / "packed", packed.build());
}

void gguf(const std::filesystem::path& folder) {
  wt::GgufBuilder llama = wt::tiny_llama();
  llama.tensors.resize(2);
  llama.text("tokenizer.ggml.model", "gpt2")
      .texts("tokenizer.ggml.tokens", {"a", "b"})
      .ints("tokenizer.ggml.token_type", {1, 3});
  llama.floats("tokenizer.ggml.scores", {0, 1})
      .texts("tokenizer.ggml.merges", {"a b"})
      .u32("tokenizer.ggml.eos_token_id", 1);
  write(folder / "llama", llama.build());
  for (const auto& architecture : vedette::weights::gguf_architectures()) {
    const std::string name(architecture.name);
    wt::GgufBuilder file;
    file.text("general.architecture", name).u32(name + ".block_count", 1).u32(name + ".embedding_length", 8);
    file.u32(name + ".context_length", 16)
        .u32(name + ".attention.head_count", 2)
        .u32(name + ".rope.dimension_count", 4);
    file.tensor("token_embd.weight", {32, 2}, 2, std::string(36, '\1'))
        .tensor("output_norm.weight", {4}, 0, std::string(16, '\2'));
    file.tensor("blk.0.attn_q.weight", {32, 8}, 8, std::string(272, '\3'))
        .tensor("blk.0.attn_qkv.weight", {1, 24}, 1, std::string(48, '\4'));
    file.tensor("blk.0.attn_k.bias", {8}, 30, std::string(16, '\5'))
        .tensor("rope_freqs.weight", {2}, 0, std::string(8, '\6'));
    write(folder / name, file.build());
  }
  for (const uint32_t type : {2u, 3u, 6u, 7u, 8u, 10u, 11u, 12u, 13u, 14u}) {
    wt::GgufBuilder file;
    file.text("general.architecture", "qwen2").u32("qwen2.block_count", 1).u32("qwen2.embedding_length", 256);
    file.u32("qwen2.context_length", 16).u32("qwen2.attention.head_count", 2);
    const size_t bytes[] = {0, 0, 144, 160, 0, 0, 176, 192, 272, 0, 84, 110, 144, 176, 210};
    file.tensor("output.weight", {256, 1}, type, std::string(bytes[type], '\x33'));
    write(folder / ("type" + std::to_string(type)), file.build());
  }
}

void config(const std::filesystem::path& folder) {
  const std::string sizes =
      R"("hidden_size":64,"num_hidden_layers":2,"num_attention_heads":4,"num_key_value_heads":2,)"
      R"("intermediate_size":96,"vocab_size":320,"max_position_embeddings":512,"rms_norm_eps":1e-5)";
  write(folder / "plain", "{\"model_type\":\"llama\"," + sizes + "}");
  write(folder / "rope",
        "{\"model_type\":\"llama\"," + sizes +
            R"(,"rope_theta":1e4,"rope_scaling":{"rope_type":"llama3","factor":8.0,"low_freq_factor":1,)"
            R"("high_freq_factor":4,"original_max_position_embeddings":64}})");
  write(folder / "gemma3",
        "{\"model_type\":\"gemma3_text\"," + sizes +
            R"(,"sliding_window":16,"layer_types":["sliding_attention","full_attention"],)"
            R"("rope_parameters":{"full_attention":{"rope_theta":1e6,"rope_type":"yarn","factor":4.0}}})");
  write(folder / "quantized",
        "{\"model_type\":\"qwen3\"," + sizes +
            R"(,"quantization":{"bits":4,"group_size":64,"mode":"affine","m.l":{"bits":8},"m.k":false}})");
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: fuzz_seeds FOLDER\n");
    return 2;
  }
  const std::filesystem::path folder = argv[1];
  safetensors(folder / "safetensors");
  gguf(folder / "gguf");
  config(folder / "config");
  return 0;
}
