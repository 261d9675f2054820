// Speed of a model's steps: prefill of P tokens and decode of N tokens at depth D, in tok/s, as JSON.
//
//   decode_bench --model FILE [--compute i8|i16|f32] [--threads N] [--isa ISA] [--kv f16|bf16|f32] [-p 512] [-n 128]
//                [--depth 0] [--chunk 512] [--repeat 1] [--no-repack]
//
// It measures what llama-bench measures: steps of the decoder with logits of the last row, without tokenizer and
// sampling. A short prefill and decode warm everything up first.
#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstdio>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "base/result.h"
#include "models/decoder.h"
#include "models/registry.h"
#include "ops/cpu/cpu_backend.h"
#include "weights/checkpoint.h"

namespace vedette {
namespace {

struct Arguments {
  std::string model;
  ops::cpu::CpuConfig cpu;
  std::string isa;
  ops::DType kv_type = ops::DType::kF16;
  int64_t prefill = 512;
  int64_t decode = 128;
  int64_t depth = 0;
  int64_t chunk = 512;
  int64_t repeat = 1;
};

Error usage(std::string message) {
  return Error{ErrorKind::kInvalidRequest, std::move(message), ""};
}

Result<int64_t> to_integer(std::string_view name, std::string_view text) {
  int64_t value = 0;
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (code != std::errc() || end != text.data() + text.size() || value < 0) {
    return usage(std::string(name) + ": a non-negative integer expected, found '" + std::string(text) + "'");
  }
  return value;
}

Status set_choice(Arguments& arguments, std::string_view name, std::string_view value) {
  if (name == "--model") {
    arguments.model = value;
  } else if (name == "--isa") {
    arguments.isa = value;
  } else if (name == "--compute") {
    if (value != "i8" && value != "i16" && value != "f32") return usage("--compute: i8, i16 or f32 expected");
    arguments.cpu.compute = value == "i8"    ? ops::Compute::kI8
                            : value == "i16" ? ops::Compute::kI16
                                             : ops::Compute::kF32;
  } else if (name == "--kv") {
    if (value != "f16" && value != "bf16" && value != "f32") return usage("--kv: f16, bf16 or f32 expected");
    arguments.kv_type = value == "f16" ? ops::DType::kF16 : value == "bf16" ? ops::DType::kBF16 : ops::DType::kF32;
  } else {
    return usage("unknown option '" + std::string(name) + "'");
  }
  return ok_status();
}

Result<Arguments> parse_arguments(int argc, char** argv) {
  Arguments arguments;
  arguments.cpu.compute = ops::Compute::kI8;
  int64_t threads = ops::cpu::default_thread_count();
  const std::pair<std::string_view, int64_t*> integers[] = {
      {"--threads", &threads},       {"-p", &arguments.prefill},    {"-n", &arguments.decode},
      {"--depth", &arguments.depth}, {"--chunk", &arguments.chunk}, {"--repeat", &arguments.repeat}};
  for (int i = 1; i < argc; ++i) {
    const std::string_view name = argv[i];
    if (name == "--no-repack") {
      arguments.cpu.repack = false;
      continue;
    }
    if (i + 1 == argc) return usage("a value expected after '" + std::string(name) + "'");
    const std::string_view value = argv[++i];
    int64_t* target = nullptr;
    for (const auto& [integer_name, field] : integers) target = name == integer_name ? field : target;
    if (target != nullptr) {
      VEDETTE_ASSIGN_OR_RETURN(*target, to_integer(name, value));
    } else {
      VEDETTE_RETURN_IF_ERROR(set_choice(arguments, name, value));
    }
  }
  if (arguments.model.empty()) return usage("--model FILE expected");
  if (arguments.chunk < 1 || threads < 1) return usage("--chunk and --threads: at least 1 expected");
  arguments.cpu.threads = static_cast<int>(threads);
  VEDETTE_ASSIGN_OR_RETURN(arguments.cpu.isa, ops::cpu::choose_isa(arguments.isa));
  return arguments;
}

// One sequence from position 0 on; its blocks lie in order in every group.
class Runner {
 public:
  Runner(models::Decoder& decoder, int64_t blocks) : decoder_(decoder) {
    step_.sequences.resize(1);
    std::vector<int32_t> table(static_cast<size_t>(blocks));
    for (size_t i = 0; i < table.size(); ++i) table[i] = static_cast<int32_t>(i);
    step_.sequences[0].block_tables.assign(decoder.kv_groups().size(), table);
  }

  // `count` tokens at positions first.. in steps of `chunk`; the last row of each step wants logits.
  Status run(int64_t first, int64_t count, int64_t chunk) {
    for (int64_t done = 0; done < count; done += chunk) {
      const int64_t rows = std::min(chunk, count - done);
      step_.rows.resize(static_cast<size_t>(rows));
      for (int64_t i = 0; i < rows; ++i) {
        ops::Row& row = step_.rows[static_cast<size_t>(i)];
        row = ops::Row{};
        row.value = next_token();
        row.position[0] = static_cast<int32_t>(first + done + i);
        row.wants_logits = i + 1 == rows;
      }
      step_.sequences[0].n_rows = static_cast<int32_t>(rows);
      VEDETTE_RETURN_IF_ERROR(decoder_.run(step_));
    }
    return ok_status();
  }

 private:
  int32_t next_token() {
    state_ = state_ * 6364136223846793005u + 1442695040888963407u;
    return static_cast<int32_t>((state_ >> 33) % static_cast<uint64_t>(decoder_.spec().vocab_size));
  }

  models::Decoder& decoder_;
  ops::Step step_;
  uint64_t state_ = 1;
};

// Appends the speed in tok/s of `count` tokens at `first` to `speeds`.
Status measure(Runner& runner, int64_t first, int64_t count, int64_t chunk, Json& speeds) {
  if (count == 0) return ok_status();
  const auto start = std::chrono::steady_clock::now();
  VEDETTE_RETURN_IF_ERROR(runner.run(first, count, chunk));
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
  speeds.push_back(Json(static_cast<double>(count) / seconds.count()));
  return ok_status();
}

Status bench(const Arguments& arguments) {
  VEDETTE_ASSIGN_OR_RETURN(const weights::Checkpoint checkpoint, weights::open_checkpoint(arguments.model));
  VEDETTE_ASSIGN_OR_RETURN(models::DecoderSpec spec, models::build_spec(checkpoint));
  VEDETTE_ASSIGN_OR_RETURN(std::unique_ptr<ops::Backend> backend, ops::cpu::make_cpu_backend(arguments.cpu));
  const ops::BackendInfo info = backend->info();
  const int64_t context = arguments.depth + std::max({arguments.prefill, arguments.decode, int64_t{64}});
  const int64_t blocks = (context + ops::kBlockTokens - 1) / ops::kBlockTokens;
  models::DecoderConfig config;
  config.max_rows = static_cast<int>(arguments.chunk);
  config.max_logit_rows = 1;
  config.kv_type = arguments.kv_type;
  config.kv_blocks.assign(models::plan_kv_groups(spec).size(), blocks);
  const std::string family = spec.family;
  VEDETTE_ASSIGN_OR_RETURN(const std::unique_ptr<models::Decoder> decoder,
                           models::Decoder::load(checkpoint, std::move(spec), config, std::move(backend)));

  Runner runner(*decoder, blocks);
  VEDETTE_RETURN_IF_ERROR(runner.run(0, std::min<int64_t>(32, context), arguments.chunk));
  VEDETTE_RETURN_IF_ERROR(runner.run(32, 16, 1));
  VEDETTE_RETURN_IF_ERROR(runner.run(0, arguments.depth, arguments.chunk));
  Json prefill = Json::array();
  Json decode = Json::array();
  for (int64_t i = 0; i < arguments.repeat; ++i) {
    VEDETTE_RETURN_IF_ERROR(measure(runner, arguments.depth, arguments.prefill, arguments.chunk, prefill));
    VEDETTE_RETURN_IF_ERROR(measure(runner, arguments.depth, arguments.decode, 1, decode));
  }

  const ops::MemoryUse memory = decoder->backend().memory();
  Json report = Json::object();
  report.set("model", arguments.model);
  report.set("family", family);
  report.set("compute", ops::to_string(info.compute));
  report.set("isa", info.isa);
  report.set("threads", info.threads);
  report.set("kv_type", ops::to_string(arguments.kv_type));
  report.set("depth", arguments.depth);
  report.set("prefill_tokens", arguments.prefill);
  report.set("decode_tokens", arguments.decode);
  report.set("weight_bytes", memory.weight_bytes);
  report.set("mapped_bytes", memory.mapped_bytes);
  report.set("prefill_tok_s", std::move(prefill));
  report.set("decode_tok_s", std::move(decode));
  std::printf("%s\n", report.dump().c_str());
  return ok_status();
}

}  // namespace
}  // namespace vedette

int main(int argc, char** argv) {
  auto arguments = vedette::parse_arguments(argc, argv);
  if (!arguments.ok()) {
    std::fprintf(stderr, "decode_bench: %s\n", arguments.error().message.c_str());
    return 2;
  }
  const vedette::Status status = vedette::bench(*arguments);
  if (!status.ok()) {
    std::fprintf(stderr, "decode_bench: %s\n", status.error().message.c_str());
    return 1;
  }
  return 0;
}
