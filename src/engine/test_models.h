// Models for the tests of this folder: small random ones in any weight scheme, and the fixtures.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "models/decoder.h"
#include "ops/cpu/cpu_backend.h"
#include "text/tokenizer.h"
#include "weights/checkpoint.h"

namespace vedette::engine::test {

// How a random model's matrices are stored.
struct StoredAs {
  ops::Scheme scheme = ops::Scheme::kF32;
  int bits = 0;   // kMlxAffine
  int group = 0;  // kMlxAffine
};
std::string name_of(const StoredAs& stored);
std::vector<StoredAs> every_scheme();

struct TestModel {
  std::shared_ptr<weights::Checkpoint> checkpoint;
  models::DecoderSpec spec;
};

// Columns of a matrix so stored are a multiple of it.
int64_t block_of(const StoredAs& stored);

struct ModelShape {
  int64_t vocab_size = 333;  // no multiple of a tile
  int64_t hidden = 256, intermediate = 256;
  int64_t n_heads = 4, n_kv_heads = 2, head_dim = 64;
  int window = 20;
};

// Llama-shaped, two layers, an outlier channel in each norm; the second slides and soft-caps its scores.
TestModel random_model(const StoredAs& stored, uint64_t seed = 1, const ModelShape& shape = {});

// A fixture by name; its context is raised to 2048 tokens where positions are not learned.
TestModel fixture(const std::string& name);

struct DecoderOptions {
  ops::Compute compute = ops::Compute::kI16;
  std::optional<ops::cpu::Isa> isa;  // none: the best
  int threads = 1;
  ops::DType kv_type = ops::DType::kF16;
  int max_rows = 1024;
  int max_logit_rows = 1024;
  int64_t context = 1024;  // blocks for `sequences` of it
  int64_t sequences = 1;
  int64_t chunk = 1024;
  bool repack = true;
};
std::unique_ptr<models::Decoder> load(const TestModel& model, const DecoderOptions& options);

std::vector<int32_t> random_ids(size_t n, int64_t vocab_size, uint64_t seed);

// A SentencePiece vocabulary of `size` tokens: <unk> <s> </s>, then "a0.", "b0.", ... so that any run of ids is ASCII.
text::Tokenizer test_tokenizer(int64_t size);

}  // namespace vedette::engine::test
