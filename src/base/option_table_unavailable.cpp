#include "base/option_table_unavailable.h"

#include <string_view>

#include "base/option_group.h"

namespace vedette {
namespace {

using Names = std::vector<std::string_view>;
using enum OptionType;

const Names kTalk = {"run", "generate", "serve"};
const Names kTalkAndBenchmark = {"run", "generate", "serve", "benchmark"};
const Names kGenerate = {"generate"};
const Names kGenerateAndServe = {"generate", "serve"};

OptionGroup group(std::vector<OptionSpec>& out, OptionState state, std::string_view heading, std::string_view note,
                  const Names& subcommands = kTalk) {
  return {out, state, heading, note, subcommands};
}

void add_media(std::vector<OptionSpec>& out) {
  group(out, OptionState::kRefused, "Media", "image input: this build has no vision models yet; leave it out")
      .add({"--image"}, kPath, "Images for a vision model")
      .add({"--image-soft-tokens"}, kInteger, "Vision budget per image")
      .add({"--layout-detections"}, kPath, "Regions for document OCR");
  group(out, OptionState::kRefused, "Media", "audio: this build has no audio models yet; leave it out")
      .add({"--audio"}, kPath, "Audio for an audio model")
      .add({"--output-audio"}, kPath, "Write speech to a WAV file")
      .add({"--extra-decoding-seconds"}, kNumber, "Silence appended to the audio", "3.0")
      .add({"--max-streaming-seconds"}, kNumber, "Limit of an online audio session")
      .add({"--speaker"}, kText, "Voice of the speech output", "ethan");
  group(out, OptionState::kRefused, "Media", "video input: this build has no vision models yet; leave it out")
      .add({"--video"}, kPath, "Video for a vision model")
      .add({"--fps"}, kNumber, "Frames sampled per second", "2.0")
      .add({"--video-max-frames"}, kInteger, "Frames kept of a video", "16");
  group(out, OptionState::kInert, "Media",
        "text is streamed unless --no-stream is given; audio sessions do not exist here")
      .add({"--stream"}, kFlag, "Online audio session of voice models");
}

void add_speculation(std::vector<OptionSpec>& out) {
  group(out, OptionState::kRefused, "Speculation",
        "speculative drafters are not available yet; leave it out to decode plainly (the tokens are the same)",
        kTalkAndBenchmark)
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
  group(out, OptionState::kRefused, "Speculation",
        "speculative drafters are not available yet; leave it out to measure plain decoding", {"benchmark"})
      .add({"--modes"}, kText, "Ways of decoding that are compared", "baseline")
      .add({"--caps"}, kText, "Most tokens verified per round, of each mode");
  group(out, OptionState::kInert, "Speculation", "there are no drafters here, so there is nothing to switch off",
        kTalkAndBenchmark)
      .add({"--no-lookup-drafts"}, kFlag, "No drafts from earlier text");
  group(out, OptionState::kRefused, "Speculation",
        "prompt lookup is not available yet; leave it out to decode plainly (the tokens are the same)", kGenerate)
      .add({"--prompt-lookup"}, kFlag, "Drafts copied from the context")
      .add({"--prompt-lookup-ngram-max"}, kInteger, "Longest n-gram looked up")
      .add({"--prompt-lookup-ngram-min"}, kInteger, "Shortest n-gram looked up")
      .add({"--prompt-lookup-max-draft"}, kInteger, "Most tokens drafted per round")
      .add({"--prompt-lookup-no-adaptive"}, kFlag, "Always draft the most")
      .add({"--prompt-lookup-policy"}, kText, "How drafts are shortened");
}

void add_diffusion(std::vector<OptionSpec>& out) {
  group(out, OptionState::kRefused, "Diffusion", "this build has no diffusion models; leave it out")
      .add({"--max-denoising-steps"}, kInteger, "Denoising steps per block")
      .add({"--diffusion-sampler"}, kText, "How tokens are accepted", "entropy-bound")
      .add({"--diffusion-threshold"}, kNumber, "Confidence that accepts a token", "0.9")
      .add({"--diffusion-min-canvas-length"}, kInteger, "Shortest canvas", "64")
      .add({"--diffusion-max-canvas-length"}, kInteger, "Longest canvas")
      .add({"--diffusion-full-canvas"}, kFlag, "Always use the whole canvas");
}

void add_parallelism(std::vector<OptionSpec>& out) {
  group(out, OptionState::kRefused, "Parallelism",
        "a model runs in one place in this build; leave it out (--threads sets the threads)", kGenerateAndServe)
      .add({"--pp-size"}, kInteger, "Pipeline stages", "1")
      .add({"--pp-layers"}, kText, "Layers of each stage")
      .add({"--pp-micro-batch-size"}, kInteger, "Micro-batches of the pipeline", "1")
      .add({"--tp-size"}, kInteger, "Tensor-parallel ranks", "1")
      .add({"--tp-moe-mode"}, kText, "How experts are divided", "expert_parallel")
      .add({"--tp-embedding-mode"}, kText, "How the embedding is divided", "replicated")
      .add({"--tp-lm-head-mode"}, kText, "How the head is divided", "replicated");
}

void add_weights_and_bias(std::vector<OptionSpec>& out) {
  group(out, OptionState::kRefused, "Model", "LoRA adapters are not available yet; merge the adapter into the model")
      .add({"--adapter", "--lora"}, kPath, "LoRA adapter");
  group(out, OptionState::kRefused, "Model", "model surgery is not available; change the checkpoint itself",
        kGenerateAndServe)
      .add({"--surgery"}, kPath, "Weight edits applied at load", "", "VEDETTE_SURGERY");
  group(out, OptionState::kRefused, "Model",
        "a checkpoint never runs code here; `vedette arch` lists the families that need none", kTalkAndBenchmark)
      .add({"--trust-remote-code"}, kFlag, "Let a checkpoint bring code", "", "VEDETTE_TRUST_REMOTE_CODE");
  group(out, OptionState::kRefused, "Model", "quantization advice is not available; `vedette inspect` shows what fits")
      .add({"--recommend-quant"}, kFlag, "Advice on quantization");
  group(out, OptionState::kRefused, "K/V cache", "K/V rows are not quantized in this build; use --cache-type-k f16")
      .add({"--kv-bits"}, kInteger, "Bits of cached K/V", "0");
  group(out, OptionState::kRefused, "K/V cache", "there are no Turbo K/V formats here; leave it out",
        {"run", "generate", "inspect", "serve"})
      .add({"--turbo-boundary-v"}, kInteger, "Layers kept in f16 under Turbo formats", "2",
           "VEDETTE_KV_BOUNDARY_V_LAYERS");
}

void add_inert(std::vector<OptionSpec>& out) {
  group(out, OptionState::kInert, "No effect here",
        "the scripts of a vocabulary are looked up at once; nothing is kept", {"generate", "serve"})
      .add({"--lang-bias-rebuild-cache"}, kFlag, "Rebuild the script tables");
  const std::string_view apple = "tunes Apple hardware; it means nothing here";
  group(out, OptionState::kInert, "No effect here", apple, kTalkAndBenchmark)
      .add({"--wired-limit"}, kFlag, "Pinned GPU memory", "", "VEDETTE_WIRED_LIMIT")
      .add({"--small-m", "--no-small-m"}, kFlag, "Kernel of narrow products")
      .add({"--sdpa-split", "--no-sdpa-split"}, kFlag, "Split attention calls")
      .add({"--multirow-attn", "--no-multirow-attn"}, kFlag, "Attention kernel of several rows")
      .add({"--wide-gemm-min"}, kInteger, "Width at which products change kernel")
      .add({"--cpu-split"}, kNumber, "Share of rows given to the CPU");
  group(out, OptionState::kInert, "No effect here", "weights are mapped, or laid out once at load (see --repack)")
      .add({"--weight-materialization"}, kText, "When weights are read", "", "VEDETTE_WEIGHT_MATERIALIZATION");
}

}  // namespace

std::vector<OptionSpec> unavailable_options() {
  std::vector<OptionSpec> out;
  add_media(out);
  add_speculation(out);
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
  const std::string_view no_encoders = "this build runs text generation models alone; `vedette arch` lists them";
  return {
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
