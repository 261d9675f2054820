#include "engine/test_models.h"

#include <cstdlib>
#include <cstring>
#include <random>
#include <stdexcept>

#include "base/float16.h"
#include "engine/memory.h"
#include "models/registry.h"

namespace vedette::engine::test {
namespace {

// Test set-up that fails is a failed test.
template <typename T>
T must(Result<T> result) {
  if (!result.ok()) throw std::runtime_error(result.error().message);
  return std::move(result).value();
}

using Bytes = std::vector<std::byte>;

void put_half(std::byte* at, float value) {
  const uint16_t bits = float_to_f16(value);
  std::memcpy(at, &bits, sizeof bits);
}

// Where a block keeps its float16 scales, and values that bring weights to about +-0.1.
struct BlockScales {
  ops::Scheme scheme;
  int block;
  int d_at;
  float d;
  int m_at;  // -1: none
  float m;
};
constexpr BlockScales kBlockScales[] = {
    {ops::Scheme::kQ4_0, 32, 0, 0.012f, -1, 0},       {ops::Scheme::kQ4_1, 32, 0, 0.012f, 2, -0.09f},
    {ops::Scheme::kQ5_0, 32, 0, 0.006f, -1, 0},       {ops::Scheme::kQ5_1, 32, 0, 0.006f, 2, -0.09f},
    {ops::Scheme::kQ8_0, 32, 0, 0.0008f, -1, 0},      {ops::Scheme::kQ2_K, 256, 80, 0.004f, 82, 0.006f},
    {ops::Scheme::kQ3_K, 256, 108, 0.0008f, -1, 0},   {ops::Scheme::kQ4_K, 256, 0, 0.0004f, 2, 0.003f},
    {ops::Scheme::kQ5_K, 256, 0, 0.0002f, 2, 0.003f}, {ops::Scheme::kQ6_K, 256, 208, 0.00004f, -1, 0},
};

class Filler {
 public:
  Filler(const StoredAs& stored, uint64_t seed) : stored_(stored), random_(seed) {}

  // Keeps the bytes in `keep`.
  weights::StoredTensor fill(const std::string& name, const std::vector<int64_t>& shape, std::vector<Bytes>& keep) {
    weights::StoredTensor tensor;
    tensor.shape = shape;
    tensor.file = "test";
    ops::HostMatrix& matrix = tensor.matrix;
    matrix.name = name;
    matrix.rows = shape.size() == 1 ? 1 : shape[0];
    matrix.cols = shape.back();
    matrix.stored_rows = matrix.rows;
    if (shape.size() == 1) {
      matrix.scheme = ops::Scheme::kF32;
      matrix.data = keep.emplace_back(norm_weights(matrix.cols));
    } else if (ops::is_float(stored_.scheme)) {
      matrix.scheme = stored_.scheme;
      matrix.data = keep.emplace_back(floats(matrix.rows * matrix.cols));
    } else if (stored_.scheme == ops::Scheme::kMlxAffine) {
      fill_mlx(matrix, keep);
    } else {
      matrix.scheme = stored_.scheme;
      matrix.data = keep.emplace_back(blocks(matrix.rows, matrix.cols));
    }
    return tensor;
  }

 private:
  std::byte random_byte() { return static_cast<std::byte>(random_() & 0xff); }
  float normal(float deviation) { return std::normal_distribution<float>(0, deviation)(random_); }

  Bytes norm_weights(int64_t n) {
    Bytes bytes(static_cast<size_t>(n) * 4);
    for (int64_t i = 0; i < n; ++i) {
      const float value = i == 3 ? 40.0f : 1 + normal(0.2f);  // one outlier channel
      std::memcpy(bytes.data() + i * 4, &value, 4);
    }
    return bytes;
  }

  Bytes floats(int64_t n) {
    const size_t size = stored_.scheme == ops::Scheme::kF32 ? 4 : 2;
    Bytes bytes(static_cast<size_t>(n) * size);
    for (int64_t i = 0; i < n; ++i) {
      const float value = normal(0.06f);
      std::byte* at = bytes.data() + static_cast<size_t>(i) * size;
      if (size == 4) std::memcpy(at, &value, 4);
      if (stored_.scheme == ops::Scheme::kF16) put_half(at, value);
      if (stored_.scheme != ops::Scheme::kBF16) continue;
      const uint16_t bits = float_to_bf16(value);
      std::memcpy(at, &bits, 2);
    }
    return bytes;
  }

  Bytes blocks(int64_t rows, int64_t cols) {
    const int64_t row_bytes = ops::row_bytes(stored_.scheme, cols);
    if (row_bytes <= 0) throw std::runtime_error("columns do not fit the scheme's blocks");
    Bytes bytes(static_cast<size_t>(rows * row_bytes));
    for (std::byte& byte : bytes) byte = random_byte();
    for (const BlockScales& scales : kBlockScales) {
      if (scales.scheme != stored_.scheme) continue;
      const int64_t block_bytes = row_bytes / (cols / scales.block);
      for (int64_t at = 0; at < rows * row_bytes; at += block_bytes) {
        put_half(bytes.data() + at + scales.d_at, scales.d * (1 + normal(0.3f)));
        if (scales.m_at >= 0) put_half(bytes.data() + at + scales.m_at, scales.m * (1 + normal(0.1f)));
      }
    }
    return bytes;
  }

  void fill_mlx(ops::HostMatrix& matrix, std::vector<Bytes>& keep) {
    matrix.scheme = ops::Scheme::kMlxAffine;
    matrix.bits = stored_.bits;
    matrix.group = stored_.group;
    matrix.side_type = ops::DType::kF16;
    Bytes& words = keep.emplace_back(static_cast<size_t>(matrix.rows * matrix.cols * stored_.bits / 8));
    for (std::byte& byte : words) byte = random_byte();
    const int64_t groups = matrix.rows * matrix.cols / stored_.group;
    Bytes& scales = keep.emplace_back(static_cast<size_t>(groups) * 2);
    Bytes& biases = keep.emplace_back(static_cast<size_t>(groups) * 2);
    const float levels = static_cast<float>((1 << stored_.bits) - 1);
    for (int64_t i = 0; i < groups; ++i) {
      const float scale = 0.2f / levels * (1 + normal(0.3f));
      put_half(scales.data() + i * 2, scale);
      put_half(biases.data() + i * 2, -scale * levels / 2);
    }
    matrix.data = words;
    matrix.scales = scales;
    matrix.biases = biases;
  }

  StoredAs stored_;
  std::mt19937_64 random_;
};

Json random_config(const ModelShape& shape) {
  Json config = Json::object();
  config.set("model_type", "llama");
  config.set("vocab_size", shape.vocab_size);
  config.set("hidden_size", shape.hidden);
  config.set("intermediate_size", shape.intermediate);
  config.set("num_hidden_layers", 2);
  config.set("num_attention_heads", shape.n_heads);
  config.set("num_key_value_heads", shape.n_kv_heads);
  config.set("head_dim", shape.head_dim);
  config.set("max_position_embeddings", 2048);
  config.set("rms_norm_eps", 1e-5);
  config.set("rope_theta", 10000.0);
  config.set("tie_word_embeddings", true);
  config.set("hidden_act", "silu");
  config.set("eos_token_id", 2);
  return config;
}

}  // namespace

std::string name_of(const StoredAs& stored) {
  std::string name = ops::to_string(stored.scheme);
  if (stored.bits > 0) name += " " + std::to_string(stored.bits) + "/" + std::to_string(stored.group);
  return name;
}

std::vector<StoredAs> every_scheme() {
  using ops::Scheme;
  std::vector<StoredAs> all;
  for (const Scheme scheme :
       {Scheme::kF32, Scheme::kF16, Scheme::kBF16, Scheme::kQ4_0, Scheme::kQ4_1, Scheme::kQ5_0, Scheme::kQ5_1,
        Scheme::kQ8_0, Scheme::kQ2_K, Scheme::kQ3_K, Scheme::kQ4_K, Scheme::kQ5_K, Scheme::kQ6_K})
    all.push_back({scheme, 0, 0});
  for (const auto& [bits, group] :
       std::vector<std::pair<int, int>>{{2, 32}, {3, 64}, {4, 64}, {5, 128}, {6, 32}, {8, 64}})
    all.push_back({Scheme::kMlxAffine, bits, group});
  return all;
}

int64_t block_of(const StoredAs& stored) {
  if (ops::is_float(stored.scheme)) return 1;
  if (stored.scheme == ops::Scheme::kMlxAffine) return stored.group;
  for (const BlockScales& scales : kBlockScales)
    if (scales.scheme == stored.scheme) return scales.block;
  throw std::runtime_error("no block size for " + name_of(stored));
}

TestModel random_model(const StoredAs& stored, uint64_t seed, const ModelShape& shape) {
  struct Keep {
    std::vector<Bytes> bytes;
  };
  auto keep = std::make_shared<Keep>();
  keep->bytes.reserve(1000);  // spans point into the elements
  TestModel model;
  model.checkpoint = std::make_shared<weights::Checkpoint>();
  model.checkpoint->path = "random model";
  model.checkpoint->format = "test";
  model.checkpoint->config = random_config(shape);
  const models::Family* family = must(models::find_family(model.checkpoint->config));
  model.spec = must(family->build(*model.checkpoint));
  Filler filler(stored, seed);
  for (const models::ExpectedTensor& tensor : models::expected_tensors(model.spec))
    model.checkpoint->tensors[tensor.name] = filler.fill(tensor.name, tensor.shape, keep->bytes);
  // Deliberately outlives the models through this owner: Checkpoint::storage belongs to the readers.
  model.checkpoint = std::shared_ptr<weights::Checkpoint>(model.checkpoint.get(),
                                                          [keep, owner = model.checkpoint](weights::Checkpoint*) {});
  for (size_t layer = 1; layer < model.spec.layers.size(); layer += 2)
    for (models::Part& part : model.spec.layers[layer].parts)
      if (auto* attention = std::get_if<models::AttentionSpec>(&part)) {
        attention->window = shape.window;
        attention->softcap = 20;
      }
  return model;
}

TestModel fixture(const std::string& name) {
  const char* folder = std::getenv("VEDETTE_FIXTURES");
  const std::string path = std::string(folder ? folder : VEDETTE_DEFAULT_FIXTURES) + "/" + name;
  TestModel model;
  model.checkpoint = std::make_shared<weights::Checkpoint>(must(weights::open_checkpoint(path)));
  model.spec = must(models::build_spec(*model.checkpoint));
  if (model.spec.position_embedding.empty()) model.spec.context_length = 2048;
  return model;
}

std::unique_ptr<models::Decoder> load(const TestModel& model, const DecoderOptions& options) {
  ops::cpu::CpuConfig cpu;
  cpu.compute = options.compute;
  cpu.isa = options.isa ? *options.isa : ops::cpu::available_isas().back();
  cpu.threads = options.threads;
  cpu.repack = options.repack;
  models::DecoderConfig config;
  config.max_rows = options.max_rows;
  config.max_logit_rows = options.max_logit_rows;
  config.kv_type = options.kv_type;
  const auto groups = models::plan_kv_groups(model.spec);
  config.kv_blocks = blocks_for(groups, options.context, options.sequences, options.chunk);
  return must(models::Decoder::load(*model.checkpoint, model.spec, config, must(ops::cpu::make_cpu_backend(cpu))));
}

std::vector<int32_t> random_ids(size_t n, int64_t vocab_size, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<int32_t> ids(n);
  for (int32_t& id : ids) id = static_cast<int32_t>(random() % static_cast<uint64_t>(vocab_size));
  return ids;
}

text::Tokenizer test_tokenizer(int64_t size) {
  weights::GgufVocabulary vocabulary;
  vocabulary.model = "llama";
  vocabulary.tokens = {"<unk>", "<s>", "</s>"};
  vocabulary.types = {2, 3, 3};
  while (static_cast<int64_t>(vocabulary.tokens.size()) < size) {
    const size_t i = vocabulary.tokens.size();
    vocabulary.tokens.push_back(std::string(1, static_cast<char>('a' + i % 26)) + std::to_string(i / 26) + ".");
    vocabulary.types.push_back(1);
  }
  for (size_t i = 0; i < vocabulary.tokens.size(); ++i) vocabulary.scores.push_back(-static_cast<float>(i));
  vocabulary.bos = 1;
  vocabulary.eos = 2;
  vocabulary.unknown = 0;
  vocabulary.add_space_prefix = false;
  return must(text::Tokenizer::create(vocabulary));
}

}  // namespace vedette::engine::test
