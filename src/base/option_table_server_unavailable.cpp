#include "base/option_group.h"
#include "base/option_table_server.h"

namespace vedette {
namespace {

using enum OptionType;
using Options = std::vector<OptionSpec>;
using enum OptionState;

OptionGroup refused(Options& out, std::string_view heading, std::string_view note) {
  return {out, kRefused, heading, note, {"serve"}};
}
OptionGroup inert(Options& out, std::string_view heading, std::string_view note) {
  return {out, kInert, heading, note, {"serve"}};
}

void add_refused(Options& out) {
  refused(out, "Served model", "one model is served at a time; POST /admin/load swaps it")
      .add({"--models-preset"}, kPath, "Models from an INI file")
      .add({"--models-max"}, kInteger, "Most models in memory", "1")
      .add({"--models-autoload"}, kFlag, "Load models on first use")
      .add({"--no-models-autoload"}, kFlag, "Load models only when told")
      .add({"--tags"}, kText, "Tags of the model")
      .add({"--webui", "--ui"}, kFlag, "Administration in a browser")
      .add({"--ui-config"}, kText, "Settings of the browser interface")
      .add({"--ui-config-file"}, kPath, "The same from a file")
      .add({"--path"}, kPath, "Folder of static files")
      .add({"--slot-save-path"}, kPath, "Slots saved to disk");
  refused(out, "Served model", "resolve the model by owner/name, a folder or a .gguf file instead")
      .add({"--hf-file"}, kText, "One file of a repository")
      .add({"--model-url"}, kText, "Model by URL")
      .add({"--docker-repo"}, kText, "Model from a Docker registry");
  refused(out, "Served model", "LoRA adapters are not available yet; merge the adapter into the model")
      .add({"--lora-scaled"}, kText, "Adapters with scales")
      .add({"--lora-fuse"}, kFlag, "Fuse adapters at load")
      .add({"--lora-init-without-apply"}, kFlag, "Load adapters, apply them later");
  refused(out, "Served model", "the server runs no tools itself; a client declares tools in its request and runs them")
      .add({"--tools"}, kText, "Tools of the browser interface")
      .add({"--tools-runtime"}, kText, "Where those tools run")
      .add({"--mcp-servers-config"}, kPath, "MCP servers from a file")
      .add({"--mcp-servers-json"}, kText, "MCP servers")
      .add({"--ui-mcp-proxy"}, kFlag, "Proxy to MCP servers")
      .add({"--agent"}, kFlag, "Agent of the browser interface");
  refused(out, "Encoders", "embeddings, reranking, images and audio are not available yet; leave it out")
      .add({"--embedding-model"}, kText, "Embedding model")
      .add({"--reranker-model"}, kText, "Reranker")
      .add({"--embedding", "--embeddings"}, kFlag, "Embeddings alone")
      .add({"--rerank", "--reranking"}, kFlag, "Reranking alone")
      .add({"--pooling"}, kText, "Pooling of embeddings")
      .add({"--embd-normalize"}, kInteger, "Normalization of embeddings")
      .add({"--embedding-batch-size"}, kInteger, "Texts per embedding pass", "16")
      .add({"--embedding-max-length"}, kInteger, "Most tokens of an embedded text")
      .add({"--embedding-queue-depth"}, kInteger, "Waiting embedding requests", "8")
      .add({"--embedding-request-timeout-secs"}, kInteger, "Time of an embedding request", "120")
      .add({"--rerank-batch-size"}, kInteger, "Pairs per reranking pass", "0")
      .add({"--image-model"}, kText, "Image generation model")
      .add({"--media-path"}, kPath, "Folder of local media files")
      .add({"--audio-queue-depth"}, kInteger, "Waiting audio requests", "8")
      .add({"--audio-request-timeout-secs"}, kInteger, "Time of an audio request", "120")
      .add({"--enable-vlm-prefix-cache"}, kFlag, "Prefix cache of multimodal prompts");
  refused(out, "Speculation", "speculative drafters are not available yet; leave it out (the tokens are the same)")
      .add({"--draft-max", "--draft", "--spec-draft-n-max", "--draft-n"}, kInteger, "Most tokens drafted", "16")
      .add({"--prompt-lookup-max-batch"}, kInteger, "Largest batch with lookup drafts", "2");
  refused(out, "K/V cache", "K/V rows are not quantized in this build; leave it out")
      .add({"--kv-group-size"}, kInteger, "Channel group of quantized K/V", "64")
      .add({"--kv-quant-scheme"}, kText, "Scheme of quantized K/V", "uniform")
      .add({"--kv-skip-last-layer"}, kText, "Last layer stays unquantized", "true");
  refused(out, "K/V cache", "K/V is paged here and bounded by --ctx-size and --kv-cache-budget; leave it out")
      .add({"--max-kv-size"}, kInteger, "Most K/V tokens of a sequence", "0")
      .add({"--decode-storage-backend"}, kText, "How K/V is stored", "paged")
      .add({"--no-batch"}, kFlag, "One request at a time (use --parallel 1)");
  refused(out, "Prefix cache", "the prefix cache lives in memory; spilling to disk is not available yet")
      .add({"--prefix-cache-dir"}, kPath, "Folder of spilled prefixes")
      .add({"--prefix-cache-max-ram-mb"}, kInteger, "Memory before prefixes are spilled", "0");
  refused(out, "Distributed", "one process serves in this build; leave it out")
      .add({"--distributed-config"}, kPath, "Cluster description")
      .add({"--node-role"}, kText, "Role of this node")
      .add({"--node-id"}, kText, "Name of this node")
      .add({"--peers"}, kText, "Other nodes")
      .add({"--serving-bind"}, kText, "Address of the serving role")
      .add({"--prefill-peers"}, kText, "Prefill nodes")
      .add({"--decode-peers"}, kText, "Decode nodes")
      .add({"--pp-auto"}, kInteger, "Pipeline stages")
      .add({"--pp-peer"}, kFlag, "Pipeline stage")
      .add({"--cluster-discovery"}, kText, "How nodes are found", "static")
      .add({"--cluster-peers"}, kText, "Seed nodes")
      .add({"--cluster-discovery-port"}, kInteger, "Port of announcements", "49555")
      .add({"--cluster-name"}, kText, "Name of the cluster", "vedette-cluster")
      .add({"--cluster-control-addr"}, kText, "Address of the coordinator")
      .add({"--cluster-config-out"}, kPath, "Where the cluster is described")
      .add({"--dry-run"}, kFlag, "Plan the cluster only")
      .add({"--enable-elastic-pp"}, kFlag, "Elastic pipeline")
      .add({"--elastic-pp-drain-timeout"}, kInteger, "Seconds before a pipeline is rebuilt", "120")
      .add({"--elastic-pp-pressure-fraction"}, kNumber, "K/V share that rebuilds a pipeline", "0.92")
      .add({"--elastic-pp-cool-down"}, kInteger, "Seconds between rebuilds", "30")
      .add({"--metrics-port"}, kInteger, "Port of metrics (they are on the main port)")
      .add({"--debug-pp-trace"}, kPath, "Trace of the scheduler");
}

void add_inert(Options& out) {
  inert(out, "No effect here", "batches need no such limit here: rows of all sequences share a step")
      .add({"--ubatch-size", "-ub"}, kInteger, "Physical batch", "", "LLAMA_ARG_UBATCH")
      .add({"--max-batch-prefill"}, kInteger, "Prompts of one prefill pass", "4")
      .add({"--max-batch-prefill-tokens"}, kInteger, "Tokens of one prefill pass")
      .add({"--kv-admission-watermark"}, kNumber, "Blocks kept free at admission", "0.01")
      .add({"--enable-preemption"}, kFlag, "Sequences give way where K/V is short (they always do)")
      .add({"--preemption-policy"}, kText, "Which sequence gives way", "longest-first");
  inert(out, "No effect here", "prefixes are shared by blocks, least recently used first; no such setting is needed")
      .add({"--prompt-cache-capacity-bytes"}, kInteger, "Bytes of cached prompts (see --prompt-cache-tokens)")
      .add({"--prompt-cache-max-entries"}, kInteger, "Cached prompts")
      .add({"--prompt-cache-ttl"}, kInteger, "Seconds a cached prompt is kept")
      .add({"--prompt-cache-min-prefix"}, kInteger, "Shortest prefix worth caching")
      .add({"--prompt-cache-snapshot-capacity-bytes"}, kInteger, "Bytes of snapshots")
      .add({"--prompt-cache-snapshot-max-entries"}, kInteger, "Snapshots")
      .add({"--prompt-cache-snapshot-ttl"}, kInteger, "Seconds a snapshot is kept")
      .add({"--prefix-cache-slots"}, kInteger, "Conversations kept")
      .add({"--apc-enabled"}, kText, "Block hashes")
      .add({"--apc-block-size"}, kInteger, "Tokens of a hashed block")
      .add({"--apc-num-blocks"}, kInteger, "Hashed blocks")
      .add({"--apc-hash"}, kText, "Hash of blocks");
  inert(out, "No effect here", "there are no images or videos here yet, so there is nothing to limit")
      .add({"--vision-cache-size"}, kInteger, "Cached image features")
      .add({"--max-image-payload-size"}, kInteger, "Bytes of an image")
      .add({"--max-images"}, kInteger, "Images of a request")
      .add({"--video-fps"}, kNumber, "Frames sampled per second")
      .add({"--max-image-width"}, kInteger, "Width of an image")
      .add({"--max-image-height"}, kInteger, "Height of an image")
      .add({"--max-image-decode-alloc-bytes"}, kInteger, "Memory of an image decoder");
  inert(out, "No effect here", "there is no browser interface here, so there is nothing to switch off")
      .add({"--no-webui", "--no-ui"}, kFlag, "No browser interface");
  inert(out, "No effect here", "credentials are off unless --cors-credentials is given")
      .add({"--no-cors-credentials"}, kFlag, "No credentials for other origins");
}

}  // namespace

std::vector<OptionSpec> unavailable_server_options() {
  Options out;
  add_refused(out);
  add_inert(out);
  return out;
}

}  // namespace vedette
