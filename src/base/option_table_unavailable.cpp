#include "base/option_table_unavailable.h"

#include <string_view>

namespace vedette {
namespace {

using Names = std::vector<std::string_view>;
using enum OptionType;

const Names kTalk = {"run", "generate"};
const Names kGenerate = {"generate"};
const Names kRun = {"run"};

// Builds the entries of one group; each shares the reason.
class Group {
 public:
  Group(std::vector<OptionSpec>& out, OptionState state, std::string_view heading, std::string_view note,
        const Names& subcommands = kTalk)
      : out_(out), state_(state), heading_(heading), note_(note), subcommands_(subcommands) {}

  // names: the name, then aliases. default_text: the neutral value that is accepted, or "".
  Group& add(Names names, OptionType type, std::string_view help, std::string_view default_text = {},
             std::string_view environment = {}) {
    OptionSpec option;
    option.name = names.front();
    option.aliases.assign(names.begin() + 1, names.end());
    option.environment = environment;
    option.type = type;
    option.value_name = type == kFlag      ? ""
                        : type == kInteger ? "N"
                        : type == kNumber  ? "X"
                        : type == kPath    ? "PATH"
                                           : "TEXT";
    option.default_text = default_text;
    option.group = heading_;
    option.subcommands = subcommands_;
    option.help = help;
    option.repeatable = true;
    option.state = state_;
    option.note = note_;
    out_.push_back(option);
    return *this;
  }

 private:
  std::vector<OptionSpec>& out_;
  OptionState state_;
  std::string_view heading_, note_;
  Names subcommands_;
};

void add_media(std::vector<OptionSpec>& out) {
  Group(out, OptionState::kRefused, "Media", "image input: this build has no vision models yet; leave it out")
      .add({"--image"}, kPath, "Images for a vision model")
      .add({"--image-soft-tokens"}, kInteger, "Vision budget per image")
      .add({"--layout-detections"}, kPath, "Regions for document OCR");
  Group(out, OptionState::kRefused, "Media", "audio: this build has no audio models yet; leave it out")
      .add({"--audio"}, kPath, "Audio for an audio model")
      .add({"--output-audio"}, kPath, "Write speech to a WAV file")
      .add({"--extra-decoding-seconds"}, kNumber, "Silence appended to the audio", "3.0")
      .add({"--max-streaming-seconds"}, kNumber, "Limit of an online audio session")
      .add({"--speaker"}, kText, "Voice of the speech output", "ethan");
  Group(out, OptionState::kRefused, "Media", "video input: this build has no vision models yet; leave it out")
      .add({"--video"}, kPath, "Video for a vision model")
      .add({"--fps"}, kNumber, "Frames sampled per second", "2.0")
      .add({"--video-max-frames"}, kInteger, "Frames kept of a video", "16");
  Group(out, OptionState::kInert, "Media",
        "text is streamed unless --no-stream is given; audio sessions do not exist here")
      .add({"--stream"}, kFlag, "Online audio session of voice models");
}

void add_speculation(std::vector<OptionSpec>& out) {
  Group(out, OptionState::kRefused, "Speculation",
        "speculative drafters are not available yet; leave it out to decode plainly (the tokens are the same)")
      .add({"--draft-model", "--model-draft", "--drafter"}, kText, "Drafter checkpoint")
      .add({"--draft-kind"}, kText, "Kind of drafter", "auto", "VEDETTE_DRAFT_KIND")
      .add({"--draft-block-size"}, kInteger, "Tokens drafted per round", "", "VEDETTE_DRAFT_BLOCK_SIZE")
      .add({"--family"}, kText, "Family of the target, for the drafter's sake")
      .add({"--max-draft"}, kText, "Most tokens verified per round")
      .add({"--confidence-threshold"}, kNumber, "End a draft early below this confidence", "0.0")
      .add({"--drafter-bits"}, kInteger, "Quantization of the drafter")
      .add({"--drafter-window"}, kInteger, "Context rows the drafter sees")
      .add({"--lookup-drafts"}, kFlag, "Drafts from earlier text")
      .add({"--lookup-long-draft"}, kInteger, "Longest draft from earlier text");
  Group(out, OptionState::kInert, "Speculation", "there are no drafters here, so there is nothing to switch off")
      .add({"--no-lookup-drafts"}, kFlag, "No drafts from earlier text");
  Group(out, OptionState::kRefused, "Speculation",
        "prompt lookup is not available yet; leave it out to decode plainly (the tokens are the same)", kGenerate)
      .add({"--prompt-lookup"}, kFlag, "Drafts copied from the context")
      .add({"--prompt-lookup-ngram-max"}, kInteger, "Longest n-gram looked up")
      .add({"--prompt-lookup-ngram-min"}, kInteger, "Shortest n-gram looked up")
      .add({"--prompt-lookup-max-draft"}, kInteger, "Most tokens drafted per round")
      .add({"--prompt-lookup-no-adaptive"}, kFlag, "Always draft the most")
      .add({"--prompt-lookup-policy"}, kText, "How drafts are shortened");
}

void add_samplers(std::vector<OptionSpec>& out) {
  const std::string_view heading = "Sampling";
  Group(out, OptionState::kRefused, heading,
        "the DRY sampler is not available yet; use --repetition-penalty or --frequency-penalty")
      .add({"--dry-multiplier"}, kNumber, "DRY penalty", "0.0")
      .add({"--dry-base"}, kNumber, "DRY growth", "1.75")
      .add({"--dry-allowed-length"}, kInteger, "DRY match length left alone", "2")
      .add({"--dry-penalty-last-n"}, kInteger, "DRY look-back", "-1");
  Group(out, OptionState::kRefused, heading,
        "the DRY sampler is not available yet; use --repetition-penalty or --frequency-penalty", kRun)
      .add({"--dry-sequence-breaker"}, kText, "DRY sequence breakers");
  Group(out, OptionState::kRefused, heading, "this sampler is not available yet; use --min-p or --top-p")
      .add({"--top-n-sigma", "--top-nsigma"}, kNumber, "Keep logits within N deviations of the largest", "0.0")
      .add({"--typical-p", "--typical"}, kNumber, "Locally typical sampling", "1.0")
      .add({"--p-less"}, kFlag, "Keep tokens above the collision probability");
  Group(out, OptionState::kRefused, heading, "this sampler is not available yet; use --min-p or --top-p", kRun)
      .add({"--xtc-probability"}, kNumber, "XTC: chance of removing the likeliest tokens", "0.0")
      .add({"--xtc-threshold"}, kNumber, "XTC: probability above which tokens are removed")
      .add({"--mirostat"}, kInteger, "Mirostat sampling", "0")
      .add({"--mirostat-lr"}, kNumber, "Mirostat learning rate")
      .add({"--mirostat-ent"}, kNumber, "Mirostat target entropy")
      .add({"--dynatemp-range"}, kNumber, "Range of dynamic temperature", "0.0")
      .add({"--dynatemp-exp"}, kNumber, "Exponent of dynamic temperature");
}

void add_diffusion(std::vector<OptionSpec>& out) {
  Group(out, OptionState::kRefused, "Diffusion", "this build has no diffusion models; leave it out")
      .add({"--max-denoising-steps"}, kInteger, "Denoising steps per block")
      .add({"--diffusion-sampler"}, kText, "How tokens are accepted", "entropy-bound")
      .add({"--diffusion-threshold"}, kNumber, "Confidence that accepts a token", "0.9")
      .add({"--diffusion-min-canvas-length"}, kInteger, "Shortest canvas", "64")
      .add({"--diffusion-max-canvas-length"}, kInteger, "Longest canvas")
      .add({"--diffusion-full-canvas"}, kFlag, "Always use the whole canvas");
}

void add_parallelism(std::vector<OptionSpec>& out) {
  Group(out, OptionState::kRefused, "Parallelism",
        "a model runs in one place in this build; leave it out (--threads sets the threads)", kGenerate)
      .add({"--pp-size"}, kInteger, "Pipeline stages", "1")
      .add({"--pp-layers"}, kText, "Layers of each stage")
      .add({"--pp-micro-batch-size"}, kInteger, "Micro-batches of the pipeline", "1")
      .add({"--tp-size"}, kInteger, "Tensor-parallel ranks", "1")
      .add({"--tp-moe-mode"}, kText, "How experts are divided", "expert_parallel")
      .add({"--tp-embedding-mode"}, kText, "How the embedding is divided", "replicated")
      .add({"--tp-lm-head-mode"}, kText, "How the head is divided", "replicated");
}

void add_weights_and_bias(std::vector<OptionSpec>& out) {
  Group(out, OptionState::kRefused, "Model", "LoRA adapters are not available yet; merge the adapter into the model")
      .add({"--adapter", "--lora"}, kPath, "LoRA adapter");
  Group(out, OptionState::kRefused, "Model", "model surgery is not available; change the checkpoint itself", kGenerate)
      .add({"--surgery"}, kPath, "Weight edits applied at load", "", "VEDETTE_SURGERY");
  Group(out, OptionState::kRefused, "Model",
        "a checkpoint never runs code here; `vedette arch` lists the families that need none")
      .add({"--trust-remote-code"}, kFlag, "Let a checkpoint bring code", "", "VEDETTE_TRUST_REMOTE_CODE");
  Group(out, OptionState::kRefused, "Model", "quantization advice is not available; `vedette inspect` shows what fits")
      .add({"--recommend-quant"}, kFlag, "Advice on quantization");
  Group(out, OptionState::kRefused, "K/V cache", "K/V rows are not quantized in this build; use --cache-type-k f16")
      .add({"--kv-bits"}, kInteger, "Bits of cached K/V", "0");
  Group(out, OptionState::kRefused, "K/V cache", "there are no Turbo K/V formats here; leave it out",
        {"run", "generate", "inspect"})
      .add({"--turbo-boundary-v"}, kInteger, "Layers kept in f16 under Turbo formats", "2",
           "VEDETTE_KV_BOUNDARY_V_LAYERS");
  Group(out, OptionState::kRefused, "Language bias", "language bias is not available yet; --logit-bias takes token ids",
        kGenerate)
      .add({"--lang-bias"}, kText, "Bias per language")
      .add({"--lang-bias-config"}, kPath, "Language bias from a file")
      .add({"--lang-bias-policy"}, kText, "Which tokens count", "conservative")
      .add({"--lang-bias-include-special"}, kFlag, "Special tokens count too")
      .add({"--lang-bias-include-numeric"}, kFlag, "Numbers count too")
      .add({"--lang-bias-include-punctuation"}, kFlag, "Punctuation counts too")
      .add({"--lang-bias-include-byte-fragments"}, kFlag, "Byte fragments count too")
      .add({"--lang-bias-rebuild-cache"}, kFlag, "Rebuild the script tables");
}

void add_inert(std::vector<OptionSpec>& out) {
  const std::string_view apple = "tunes Apple hardware; it means nothing here";
  Group(out, OptionState::kInert, "No effect here", apple)
      .add({"--wired-limit"}, kFlag, "Pinned GPU memory", "", "VEDETTE_WIRED_LIMIT")
      .add({"--small-m", "--no-small-m"}, kFlag, "Kernel of narrow products")
      .add({"--sdpa-split", "--no-sdpa-split"}, kFlag, "Split attention calls")
      .add({"--multirow-attn", "--no-multirow-attn"}, kFlag, "Attention kernel of several rows")
      .add({"--wide-gemm-min"}, kInteger, "Width at which products change kernel")
      .add({"--cpu-split"}, kNumber, "Share of rows given to the CPU");
  Group(out, OptionState::kInert, "No effect here", "weights are mapped, or laid out once at load (see --repack)")
      .add({"--weight-materialization"}, kText, "When weights are read", "", "VEDETTE_WEIGHT_MATERIALIZATION");
}

}  // namespace

std::vector<OptionSpec> unavailable_options() {
  std::vector<OptionSpec> out;
  add_media(out);
  add_speculation(out);
  add_samplers(out);
  add_diffusion(out);
  add_parallelism(out);
  add_weights_and_bias(out);
  add_inert(out);
  return out;
}

std::vector<SubcommandSpec> unavailable_subcommands() {
  auto refused = [](std::string_view name, std::string_view summary, std::string_view note) {
    SubcommandSpec subcommand;
    subcommand.name = name;
    subcommand.summary = summary;
    subcommand.state = OptionState::kRefused;
    subcommand.note = note;
    return subcommand;
  };
  const std::string_view no_server = "the server is not available yet; use `vedette run` or `vedette generate`";
  const std::string_view no_encoders = "this build runs text generation models alone; `vedette arch` lists them";
  return {
      refused("serve", "HTTP server", no_server),
      refused("claude", "Claude Code on a running server", no_server),
      refused("download", "Fetch a model",
              "downloads are not available yet; `huggingface-cli download OWNER/NAME` puts a model where it is found, "
              "and tools/fetch_models.py fetches two small ones"),
      refused("rm", "Remove a model", "not available yet; delete the folder that `vedette list -v` shows"),
      refused("benchmark", "Speed of decoding", "not available yet; bench/ holds the measurements and their commands"),
      refused("models", "Measured models", "there is no list of measured pairs; use `vedette list` or `vedette arch`"),
      refused("doctor", "Check the environment",
              "not available yet; `vedette inspect MODEL` shows whether a model fits"),
      refused("tune", "Calibrate kernels", "kernels need no calibration here; leave it out"),
      refused("generate-image", "Images from text", no_encoders),
      refused("embed", "Embeddings", no_encoders),
      refused("rerank", "Rank documents", no_encoders),
      refused("detect", "Objects in images", no_encoders),
      refused("predict", "Dense maps and keypoints", no_encoders),
      refused("tag", "Token classification", no_encoders),
      refused("extract", "Span extraction", no_encoders),
      refused("split-mtp", "Extract a drafter", "speculative drafters are not available yet"),
      refused("prepare-external-ple", "On-disk structures of one family", no_encoders),
      refused("prepare-expert-stream", "On-disk structures of one family", no_encoders),
  };
}

}  // namespace vedette
