// The options that work, in help order, and the subcommands. What is known elsewhere and not available here is in
// option_table_unavailable.cpp.
#include <string_view>
#include <vector>

#include "base/option_group.h"
#include "base/option_table_sampling.h"
#include "base/option_table_server.h"
#include "base/option_table_unavailable.h"
#include "base/options.h"

namespace vedette {
namespace {

using Names = std::vector<std::string_view>;
using enum OptionType;

constexpr double kMaxCount = 1e9;

const Names kModelCommands = {"run", "generate", "inspect", "eval", "benchmark", "convert", "serve"};
const Names kStoreCommands = {"run",     "generate", "inspect",  "list", "eval",   "benchmark",
                              "convert", "serve",    "download", "rm",   "models", "doctor"};
const Names kRevisionCommands = {"run",     "generate", "inspect",  "eval", "benchmark",
                                 "convert", "serve",    "download", "rm"};
const Names kFetchCommands = {"run", "generate", "inspect", "eval", "benchmark", "convert", "serve", "download"};
const Names kTalkCommands = {"run", "generate"};
const Names kComputeCommands = {"run", "generate", "eval", "benchmark", "serve"};
const Names kBudgetCommands = {"run", "generate", "inspect", "serve"};
const Names kContextCommands = {"run", "generate", "serve"};

std::vector<OptionSpec> model_options() {
  return {
      {.name = "--model",
       .aliases = {"-m", "--target", "--hf-repo"},
       .type = kText,
       .value_name = "MODEL",
       .group = "Model",
       .subcommands = kModelCommands,
       .help = "A folder, a .gguf file, owner/name in the store or the Hugging Face cache, or a bare name"},
      {.name = "--models-dir",
       .aliases = {"--model-store-root"},
       .environment = "VEDETTE_MODELS_DIR",
       .type = kPath,
       .value_name = "DIR",
       .default_text = "(cache folder/models)",
       .group = "Model",
       .subcommands = kStoreCommands,
       .help = "Root of the model store: models lie at DIR/owner/name"},
      {.name = "--cache-dir",
       .environment = "VEDETTE_CACHE_DIR",
       .type = kPath,
       .value_name = "DIR",
       .default_text = "(~/.cache/vedette)",
       .group = "Model",
       .subcommands = kStoreCommands,
       .help = "Where the model store and other caches live"},
      {.name = "--default-org",
       .environment = "VEDETTE_DEFAULT_ORG",
       .type = kText,
       .value_name = "OWNER",
       .default_text = "mlx-community",
       .group = "Model",
       .subcommands = kModelCommands,
       .help = "Owner of a model named without a slash"},
      {.name = "--revision",
       .type = kText,
       .value_name = "REV",
       .default_text = "main",
       .group = "Model",
       .subcommands = kRevisionCommands,
       .help = "Branch, tag or commit of a model on the hub or in the Hugging Face cache"},
      {.name = "--offline",
       .environment = "VEDETTE_OFFLINE",
       .group = "Model",
       .subcommands = kFetchCommands,
       .help = "Never download: a model that is nowhere on this machine is an error"},
      {.name = "--token",
       .aliases = {"--hf-token"},
       .environment = "HF_TOKEN",
       .type = kText,
       .value_name = "TOKEN",
       .default_text = "(HUGGING_FACE_HUB_TOKEN)",
       .group = "Model",
       .subcommands = kFetchCommands,
       .help = "Token for gated and private models; sent to the hub's own host alone"},
      {.name = "--hf-endpoint",
       .environment = "HF_ENDPOINT",
       .type = kText,
       .value_name = "URL",
       .default_text = "https://huggingface.co",
       .group = "Model",
       .subcommands = kFetchCommands,
       .help = "The hub that models are fetched from"},
      {.name = "--extra-ca-certs",
       .environment = "VEDETTE_EXTRA_CA_CERTS",
       .type = kPath,
       .value_name = "FILE",
       .group = "Model",
       .subcommands = kFetchCommands,
       .help = "Certificates (PEM) trusted besides the system's when the hub is asked"},
      {.name = "--local-dir",
       .type = kPath,
       .value_name = "DIR",
       .group = "Download",
       .subcommands = {"download"},
       .help = "Put the files into this very folder, not into the store"},
      {.name = "--include",
       .type = kText,
       .value_name = "PATTERN",
       .group = "Download",
       .subcommands = {"download"},
       .help = "Only files that match, as *Q8_0*; may be given several times",
       .repeatable = true},
      {.name = "--exclude",
       .type = kText,
       .value_name = "PATTERN",
       .group = "Download",
       .subcommands = {"download"},
       .help = "No files that match; may be given several times",
       .repeatable = true},
      {.name = "--yes", .aliases = {"-y"}, .group = "Removal", .subcommands = {"rm"}, .help = "Do not ask"},
      {.name = "--repack",
       .type = kChoice,
       .value_name = "WHEN",
       .choices = {"auto", "off"},
       .default_text = "auto",
       .group = "Model",
       .subcommands = kComputeCommands,
       .help = "auto: weights are laid out for the kernels once at load; off: they are used in place from the file "
               "(slower, for models larger than memory)"},
  };
}

std::vector<OptionSpec> generation_options() {
  return {
      {.name = "--prompt",
       .aliases = {"-p"},
       .type = kText,
       .value_name = "TEXT",
       .group = "Generation",
       .subcommands = kTalkCommands,
       .help = "The prompt; without one, an interactive chat opens"},
      {.name = "--prompt-file",
       .aliases = {"-f"},
       .type = kPath,
       .value_name = "FILE",
       .group = "Generation",
       .subcommands = kTalkCommands,
       .help = "Read the prompt from a file, or from standard input with -"},
      {.name = "--system",
       .type = kText,
       .value_name = "TEXT",
       .group = "Generation",
       .subcommands = kTalkCommands,
       .help = "System message placed before the conversation"},
      {.name = "--max-tokens",
       .aliases = {"-n", "--max-new-tokens", "--n-predict", "--predict"},
       .type = kInteger,
       .value_name = "N",
       .min = -1,
       .max = kMaxCount,
       .default_text = "(-1; inspect: 8192)",
       .group = "Generation",
       .subcommands = {"run", "generate", "inspect", "benchmark", "serve"},
       .help = "Most tokens to generate; -1: until the model ends or the context is full. "
               "For inspect, the context length of the K/V estimate; for serve the same as --default-max-tokens, for "
               "benchmark as --decode"},
      {.name = "--stop",
       .type = kText,
       .value_name = "TEXT",
       .group = "Generation",
       .subcommands = kTalkCommands,
       .help = "End the reply where this text appears; may be given several times",
       .repeatable = true},
      {.name = "--ignore-eos",
       .group = "Generation",
       .subcommands = kContextCommands,
       .help = "Go on after the model's end token"},
      {.name = "--no-chat-template",
       .group = "Generation",
       .subcommands = kTalkCommands,
       .help = "Send the prompt as it is, without the model's chat template"},
      {.name = "--show-reasoning",
       .group = "Generation",
       .subcommands = kTalkCommands,
       .help = "Print the model's reasoning too (dimmed on a terminal)"},
      {.name = "--no-stream",
       .group = "Generation",
       .subcommands = kTalkCommands,
       .help = "Print the reply once, at its end"},
      {.name = "--profile",
       .group = "Generation",
       .subcommands = kTalkCommands,
       .help = "Print token counts and the times of prefill and decode"},
      {.name = "--json",
       .group = "Generation",
       .subcommands = {"run", "generate", "inspect", "list", "arch", "eval", "benchmark", "models", "doctor"},
       .help = "Print one JSON document in place of text"},
      {.name = "--estimate-memory",
       .group = "Generation",
       .subcommands = kContextCommands,
       .help = "Compare the memory needed with what is available before loading, and stop if it does not fit"},
      {.name = "--force",
       .aliases = {"--no-memory-check"},
       .group = "Generation",
       .subcommands = {"run", "generate", "serve", "download"},
       .help = "With --estimate-memory: warn and go on where it does not fit. For download: fetch again what is there"},
  };
}

std::vector<OptionSpec> compute_options() {
  return {
      {.name = "--compute",
       .environment = "VEDETTE_COMPUTE",
       .type = kChoice,
       .value_name = "MODE",
       .choices = {"auto", "i8", "i16", "f32"},
       .default_text = "auto",
       .group = "Compute",
       .subcommands = {"run", "generate", "inspect", "eval", "benchmark", "serve"},
       .help = "Precision of activations in products; auto: i16 below 1.5 billion parameters, i8 above"},
      {.name = "--threads",
       .environment = "VEDETTE_THREADS",
       .type = kInteger,
       .value_name = "N",
       .min = 0,
       .max = 1024,
       .default_text = "0",
       .group = "Compute",
       .subcommands = kComputeCommands,
       .help = "Worker threads; 0: one per physical core this process may use"},
      {.name = "--isa",
       .environment = "VEDETTE_CPU_ISA",
       .type = kChoice,
       .value_name = "ISA",
       .choices = {"portable", "avx2", "avx512", "amx", "neon"},
       .default_text = "(the best available)",
       .group = "Compute",
       .subcommands = kComputeCommands,
       .help = "Instruction set of the kernels; the results are the same bits on each"},
      {.name = "--device",
       .environment = "VEDETTE_DEVICE",
       .type = kChoice,
       .value_name = "DEVICE",
       .choices = {"cpu"},
       .refused_choices = {"gpu", "cuda", "metal"},
       .default_text = "cpu",
       .group = "Compute",
       .subcommands = kComputeCommands,
       .help = "Where the model runs",
       .note = "this build runs on the CPU alone"},
      {.name = "--prefill-chunk-size",
       .aliases = {"-b", "--batch-size"},
       .environment = "VEDETTE_PREFILL_CHUNK",
       .type = kInteger,
       .value_name = "N",
       .min = 1,
       .max = 65536,
       .default_text = "512",
       .group = "Compute",
       .subcommands = kComputeCommands,
       .help = "Prompt tokens per step; no effect on results"},
      {.name = "--ctx-size",
       .aliases = {"-c", "--context-window"},
       .environment = "LLAMA_ARG_CTX_SIZE",
       .type = kInteger,
       .value_name = "N",
       .min = 0,
       .max = kMaxCount,
       .default_text = "0",
       .group = "Compute",
       .subcommands = kContextCommands,
       .help = "Context in tokens; 0: the model's own, lowered to what memory allows"},
      {.name = "--memory-limit",
       .environment = "VEDETTE_MEMORY_LIMIT",
       .type = kText,
       .value_name = "SIZE",
       .default_text = "(what is available)",
       .group = "Compute",
       .subcommands = kBudgetCommands,
       .help = "Memory budget, in bytes or as 8GB, 512MB; 0: what is available"},
      {.name = "--headroom-factor",
       .environment = "VEDETTE_HEADROOM_FACTOR",
       .type = kNumber,
       .value_name = "X",
       .min = 0,
       .max = 100,
       .default_text = "1.05",
       .group = "Compute",
       .subcommands = kBudgetCommands,
       .help = "Memory estimate: what weights and K/V are multiplied by; 1 and less: no headroom"},
  };
}

std::vector<OptionSpec> kv_options() {
  const Names types = {"f16", "fp16", "bf16", "f32"};
  const Names refused = {"int8", "turbo3", "turbo4",          "fp16+turbo3", "fp16+turbo4", "turbo3-delegated",
                         "q8_0", "q4_0",   "turbo4-delegated"};
  const std::string_view note = "K/V rows are not quantized in this build";
  const Names commands = {"run", "generate", "inspect", "eval", "benchmark", "serve"};
  const std::string_view remark = "(f16; bf16 where f16 overflows; f32 with --compute f32)";
  return {
      {.name = "--cache-type-k",
       .type = kChoice,
       .value_name = "TYPE",
       .choices = types,
       .refused_choices = refused,
       .default_text = remark,
       .group = "K/V cache",
       .subcommands = commands,
       .help = "Element type of cached keys",
       .note = note},
      {.name = "--cache-type-v",
       .type = kChoice,
       .value_name = "TYPE",
       .choices = types,
       .refused_choices = refused,
       .default_text = remark,
       .group = "K/V cache",
       .subcommands = commands,
       .help = "Element type of cached values",
       .note = note},
      {.name = "--kv-cache-mode",
       .type = kChoice,
       .value_name = "TYPE",
       .choices = types,
       .refused_choices = refused,
       .default_text = remark,
       .group = "K/V cache",
       .subcommands = commands,
       .help = "Sets both sides; the two options above override it",
       .note = note},
  };
}

std::vector<OptionSpec> inspect_and_list_options() {
  return {
      {.name = "--batch",
       .type = kInteger,
       .value_name = "N",
       .min = 1,
       .max = 65536,
       .default_text = "1",
       .group = "Inspect",
       .subcommands = {"inspect"},
       .help = "Sequences held at once, for the K/V estimate"},
      {.name = "--quant",
       .type = kChoice,
       .value_name = "LABEL",
       .choices = {"default", "fp16", "int8", "int4"},
       .default_text = "default",
       .group = "Inspect",
       .subcommands = {"inspect"},
       .help = "Label shown as the intended weight format; the total is always the checkpoint's own"},
      {.name = "--sort",
       .type = kChoice,
       .value_name = "KEY",
       .choices = {"name", "size", "modified"},
       .default_text = "name",
       .group = "List",
       .subcommands = {"list"},
       .help = "Order of the rows: by name, largest first, or newest first"},
  };
}

std::vector<OptionSpec> eval_and_convert_options() {
  return {
      {.name = "--perplexity",
       .aliases = {"--text"},
       .type = kPath,
       .value_name = "FILE",
       .group = "Evaluation",
       .subcommands = {"eval"},
       .help = "Text to score; its perplexity is printed"},
      {.name = "--kl-against",
       .type = kText,
       .value_name = "MODEL|MODE",
       .group = "Evaluation",
       .subcommands = {"eval"},
       .help = "With --perplexity: divergence from another model, or from this one in compute mode i8, i16 or f32"},
      {.name = "--against-compute",
       .type = kChoice,
       .value_name = "MODE",
       .choices = {"auto", "i8", "i16", "f32"},
       .default_text = "(f32)",
       .group = "Evaluation",
       .subcommands = {"eval"},
       .help = "Compute mode of the model given to --kl-against"},
      {.name = "--window",
       .type = kInteger,
       .value_name = "N",
       .min = 8,
       .max = 1048576,
       .default_text = "512",
       .group = "Evaluation",
       .subcommands = {"eval"},
       .help = "Tokens per window; the second half of each is scored"},
      {.name = "--max-windows",
       .type = kInteger,
       .value_name = "N",
       .min = 0,
       .max = kMaxCount,
       .default_text = "0",
       .group = "Evaluation",
       .subcommands = {"eval"},
       .help = "Stop after N windows; 0: the whole text"},
      {.name = "--ids",
       .type = kText,
       .value_name = "LIST",
       .group = "Evaluation",
       .subcommands = {"eval"},
       .help = "Token ids separated by commas, for --logits-out"},
      {.name = "--logits-out",
       .type = kPath,
       .value_name = "FILE",
       .group = "Evaluation",
       .subcommands = {"eval"},
       .help = "Write the logits of every token of --ids, tensor `logits` [tokens, vocab] f32 (safetensors)"},
      {.name = "--output",
       .aliases = {"-o"},
       .type = kPath,
       .value_name = "PATH",
       .group = "Conversion",
       .subcommands = {"convert", "benchmark"},
       .help = "New folder for the converted checkpoint; for benchmark, a file that gets the report as JSON too"},
      {.name = "--q-bits",
       .type = kInteger,
       .value_name = "N",
       .min = 2,
       .max = 8,
       .default_text = "(as stored)",
       .group = "Conversion",
       .subcommands = {"convert"},
       .help = "Quantize to MLX affine with this many bits (not 7)"},
      {.name = "--q-group-size",
       .type = kChoice,
       .value_name = "N",
       .choices = {"32", "64", "128"},
       .default_text = "(64; 32 where blocks of 32 are kept)",
       .group = "Conversion",
       .subcommands = {"convert"},
       .help = "Weights per scale"},
      {.name = "--dtype",
       .type = kChoice,
       .value_name = "TYPE",
       .choices = {"f32", "f16", "bf16"},
       .default_text = "(as stored)",
       .group = "Conversion",
       .subcommands = {"convert"},
       .help = "Element type of tensors that are not quantized; alone: dequantize everything"},
  };
}

std::vector<OptionSpec> benchmark_options() {
  std::vector<OptionSpec> out;
  OptionGroup group(out, OptionState::kActive, "Benchmark", "", {"benchmark"});
  const auto list = [&](Names names, std::string_view help, std::string_view default_text) {
    group.add(std::move(names), kText, help, default_text);
    out.back().value_name = "LIST";
  };
  list({"--prefill", "--n-prompt"}, "Lengths of prompts to measure, separated by commas; 0: none", "512");
  list({"--decode", "--n-gen"}, "Numbers of tokens to decode, of each sequence; 0: none", "128");
  list({"--depth", "--n-depth"}, "Tokens before those that are decoded, and before --rows", "0");
  list({"--sequences"}, "Sequences decoded together", "1");
  list({"--rows"}, "Also steps of so many rows of one sequence, as verifying drafts takes them, over one row",
       "(not measured)");
  group.add({"--repetitions", "--trials"}, kInteger, "Rounds; the medians are reported", "5").range(1, 1000);
  group.add({"--plot"}, kPath, "Also write a bar chart to this file, .svg or .png");
  out.back().value_name = "FILE";
  return out;
}

std::vector<OptionSpec> common_options() {
  const Names all = {"run",     "generate", "inspect", "list",     "arch", "eval",   "benchmark",
                     "convert", "serve",    "claude",  "download", "rm",   "models", "doctor"};
  return {
      {.name = "--verbose",
       .aliases = {"-v"},
       .group = "Common",
       .subcommands = all,
       .help = "More lines on standard error; for list, the path column"},
      {.name = "--quiet",
       .aliases = {"-q", "--log-disable"},
       .group = "Common",
       .subcommands = all,
       .help = "Errors only on standard error; for list, only the names"},
      {.name = "--completion-bash",
       .group = "Common",
       .subcommands = {"help", "serve"},
       .help = "Print a completion script for bash and stop"},
      {.name = "--markdown",
       .group = "Common",
       .subcommands = {"help"},
       .help = "Print the reference of all options (docs/flags.md)"},
  };
}

void append(std::vector<OptionSpec>& table, std::vector<OptionSpec> more) {
  table.insert(table.end(), std::make_move_iterator(more.begin()), std::make_move_iterator(more.end()));
}

}  // namespace

std::span<const OptionSpec> option_table() {
  static const std::vector<OptionSpec> table = [] {
    std::vector<OptionSpec> all = model_options();
    append(all, generation_options());
    append(all, compute_options());
    append(all, kv_options());
    append(all, sampling_options());
    append(all, inspect_and_list_options());
    append(all, eval_and_convert_options());
    append(all, benchmark_options());
    append(all, common_options());
    append(all, server_options());
    append(all, unavailable_options());
    append(all, unavailable_server_options());
    return all;
  }();
  return table;
}

std::span<const SubcommandSpec> subcommand_table() {
  static const std::vector<SubcommandSpec> table = [] {
    std::vector<SubcommandSpec> all = {
        {.name = "run",
         .summary = "Chat with a model, or answer one prompt (-p)",
         .operand = "[MODEL]",
         .operand_option = "--model"},
        {.name = "generate", .aliases = {"gen"}, .summary = "Complete one prompt and print a summary"},
        {.name = "inspect",
         .summary = "Show what a model is and the memory it needs, without loading it",
         .operand = "[MODEL]",
         .operand_option = "--model"},
        {.name = "list", .aliases = {"ls"}, .summary = "List the models in the store"},
        {.name = "arch", .aliases = {"supported"}, .summary = "List the model families this build can run"},
        {.name = "eval",
         .summary = "Perplexity, divergence and raw logits",
         .operand = "[MODEL]",
         .operand_option = "--model"},
        {.name = "benchmark", .summary = "Measure the speed of prefill and decoding", .operand = "[MODEL]"},
        {.name = "convert",
         .summary = "Write a checkpoint as MLX-layout safetensors",
         .operand = "[MODEL]",
         .operand_option = "--model"},
        {.name = "serve",
         .summary = "Serve a model over HTTP: OpenAI, Anthropic, Responses and llama-server APIs",
         .operand = "[MODEL]",
         .operand_option = "--model"},
        {.name = "claude",
         .summary = "Start Claude Code on a running server",
         .operand = "[-- ARGUMENTS]",
         .takes_rest = true},
        {.name = "download",
         .summary = "Fetch a model from the Hugging Face hub into the store",
         .operand = "OWNER/NAME"},
        {.name = "rm", .summary = "Remove a model from the store", .operand = "OWNER/NAME"},
        {.name = "models", .summary = "Show the models on this machine: family, context, and whether they fit"},
        {.name = "doctor",
         .summary = "Check this machine, the store and the models; exit code 1 if something is wrong"},
        {.name = "version", .summary = "Print the version"},
        {.name = "help", .summary = "Explain a subcommand", .operand = "[SUBCOMMAND]"},
    };
    for (SubcommandSpec& subcommand : unavailable_subcommands()) all.push_back(std::move(subcommand));
    return all;
  }();
  return table;
}

}  // namespace vedette
