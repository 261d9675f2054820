#include "base/option_table_server.h"

#include "base/option_group.h"

namespace vedette {
namespace {

using enum OptionType;
using Options = std::vector<OptionSpec>;

constexpr double kMaxCount = 1e9;
constexpr double kMaxBytes = 1e15;

OptionGroup active(Options& out, std::string_view heading, OptionGroup::Names subcommands = {"serve"}) {
  return {out, OptionState::kActive, heading, "", std::move(subcommands)};
}

void add_network(Options& out) {
  OptionGroup group = active(out, "Network");
  const OptionGroup::Names listeners = {"serve", "doctor"};
  group.add({"--host"}, kText, "Address to listen on; a path that ends in .sock is a Unix socket", "127.0.0.1",
            "LLAMA_ARG_HOST");
  out.back().subcommands = listeners;
  group.add({"--port"}, kInteger, "TCP port; 0: chosen by the kernel", "8080", "LLAMA_ARG_PORT").range(0, 65535);
  out.back().subcommands = listeners;
  group.add({"--reuse-port"}, kFlag, "Several processes may listen on the port", "", "LLAMA_ARG_REUSE_PORT");
  group
      .add({"--api-key"}, kText, "Key that requests must present; several times or separated by commas", "",
           "LLAMA_API_KEY")
      .repeatable();
  out.back().subcommands = {"serve", "claude"};
  group.add({"--api-key-file"}, kPath, "Keys from a file, one a line", "", "LLAMA_ARG_API_KEY_FILE");
  group
      .add({"--allowed-hosts"}, kText, "Host names besides loopback that requests may name, separated by commas", "",
           "VEDETTE_ALLOWED_HOSTS")
      .repeatable();
  group
      .add({"--cors-origins", "--allowed-origins"}, kText,
           "Web origins that may call, separated by commas; localhost: any loopback one; *: any", "(none)",
           "LLAMA_ARG_CORS_ORIGINS")
      .repeatable();
  group.add({"--cors-headers"}, kText, "Access-Control-Allow-Headers of a preflight", "*", "LLAMA_ARG_CORS_HEADERS");
  group.add({"--cors-methods"}, kText, "Access-Control-Allow-Methods of a preflight",
            "GET, POST, PUT, PATCH, DELETE, OPTIONS, HEAD", "LLAMA_ARG_CORS_METHODS");
  group.add({"--cors-credentials"}, kFlag, "Allow credentials to origins listed by name", "",
            "LLAMA_ARG_CORS_CREDENTIALS");
  group.add({"--api-prefix"}, kText, "Path before every route, as /llama", "", "LLAMA_ARG_API_PREFIX");
  group.add({"--ssl-cert-file"}, kPath, "Certificate (PEM); with --ssl-key-file: HTTPS", "", "LLAMA_ARG_SSL_CERT_FILE");
  group.add({"--ssl-key-file"}, kPath, "Private key (PEM)", "", "LLAMA_ARG_SSL_KEY_FILE");
  group
      .add({"--threads-http"}, kInteger, "Threads that read requests and write answers; -1: chosen", "-1",
           "LLAMA_ARG_THREADS_HTTP")
      .range(-1, 1024);
  group.add({"--timeout"}, kInteger, "Seconds that one read or write of a socket may take", "3600", "LLAMA_ARG_TIMEOUT")
      .range(1, 1e6);
  group.add({"--max-body-size"}, kInteger, "Bytes of a request body, decompressed", "67108864", "VEDETTE_MAX_BODY_SIZE")
      .range(1024, kMaxBytes);
  group
      .add({"--sse-ping-interval"}, kInteger, "Seconds of a stream's silence before a ping; -1: none", "15",
           "LLAMA_ARG_SSE_PING_INTERVAL")
      .range(-1, 1e6);
}

void add_batching(Options& out) {
  OptionGroup group = active(out, "Concurrency and batching");
  group.add({"--parallel", "--n-parallel", "-np"}, kInteger, "Sequences decoded together", "4", "LLAMA_ARG_N_PARALLEL")
      .range(1, 1024);
  group.add({"--max-batch-size", "--max-batch"}, kInteger, "The same, and wins over --parallel", "(--parallel)")
      .range(1, 1024);
  group.add({"--max-queue-depth"}, kInteger, "Requests that may wait; beyond: 503", "32").range(0, 1e6);
  group
      .add({"--prefill-grant-interval"}, kInteger,
           "Decode steps after which a waiting prompt gets a chunk; no effect on results", "16",
           "VEDETTE_PREFILL_GRANT_INTERVAL")
      .range(0, 1e6);
  group
      .add({"--decode-timeout"}, kInteger, "Seconds without a token after which a request is ended; 0: none", "600",
           "VEDETTE_DECODE_TIMEOUT")
      .range(0, 1e6);
  group.add({"--kv-cache-budget"}, kText, "Bytes of K/V, as 8GB; auto: what fits", "auto", "VEDETTE_KV_CACHE_BUDGET");
}

void add_prefix_cache(Options& out) {
  OptionGroup group = active(out, "Prefix cache");
  group
      .add({"--prompt-cache-enabled"}, kText, "true or false: re-use what prompts share", "true",
           "VEDETTE_PROMPT_CACHE_ENABLED")
      .choices({"true", "false"});
  group.add({"--no-prompt-cache", "--no-prefix-cache"}, kFlag, "Never re-use anything");
  group
      .add({"--prompt-cache-tokens"}, kInteger,
           "K/V tokens kept for re-use beyond what running requests need; -1: one more context where it fits", "-1",
           "VEDETTE_PROMPT_CACHE_TOKENS")
      .range(-1, kMaxCount);
  group
      .add({"--prefix-cache-rungs"}, kInteger,
           "Sliding layers: tokens between the depths where a prompt can be resumed", "512")
      .range(32, kMaxCount);
}

void add_model(Options& out) {
  OptionGroup group = active(out, "Served model");
  group.add({"--cache-list"}, kFlag, "Print the models in the store, numbered, and stop");
  group.add({"--log-file"}, kPath, "Write log lines to this file in place of standard error", "", "LLAMA_LOG_FILE");
  group.add({"--no-model"}, kFlag, "Start without a model; POST /admin/load loads one");
  group.add({"--alias", "-a"}, kText, "Names of the model in answers, separated by commas", "(its own)",
            "LLAMA_ARG_ALIAS");
  group.add({"--warmup"}, kFlag, "Run a few tokens before the first request (the default)");
  group.add({"--no-warmup"}, kFlag, "Do not");
  group.add({"--memory-guard"}, kFlag, "Empty the prefix cache when memory runs short (the default)");
  group.add({"--no-memory-guard"}, kFlag, "Do not");
  group
      .add({"--sleep-idle-seconds"}, kInteger,
           "Unload the model after this idle time; the next request loads it; -1: never", "-1",
           "LLAMA_ARG_SLEEP_IDLE_SECONDS")
      .range(-1, kMaxCount);
}

void add_endpoints(Options& out) {
  OptionGroup group = active(out, "Endpoints");
  group.add({"--slots"}, kFlag, "GET /slots (the default)", "", "LLAMA_ARG_ENDPOINT_SLOTS");
  group.add({"--no-slots"}, kFlag, "No GET /slots");
  group.add({"--metrics"}, kFlag, "GET /metrics for Prometheus", "", "LLAMA_ARG_ENDPOINT_METRICS");
  group.add({"--settings"}, kFlag,
            "GET and PATCH /v1/settings: defaults of requests at run time; needs a key beyond loopback");
  group.add({"--props"}, kFlag, "Acknowledge POST /props", "", "LLAMA_ARG_ENDPOINT_PROPS");
  group
      .add({"--responses-store-max-entries"}, kInteger, "Answers of /v1/responses kept; 0: none", "1024",
           "LLAMA_ARG_RESPONSES_STORE_MAX_ENTRIES")
      .range(0, 1e6);
  group
      .add({"--responses-store-ttl-secs"}, kInteger, "Seconds they are kept after their last use; 0: for ever", "3600",
           "LLAMA_ARG_RESPONSES_STORE_TTL_SECS")
      .range(0, kMaxCount);
  group
      .add({"--conversation-store-max-entries"}, kInteger, "Conversations of /v1/responses kept", "256",
           "LLAMA_ARG_CONVERSATION_STORE_MAX_ENTRIES")
      .range(0, 1e6);
  group
      .add({"--conversation-store-ttl-secs"}, kInteger, "Seconds they are kept after their last use; 0: for ever",
           "3600", "LLAMA_ARG_CONVERSATION_STORE_TTL_SECS")
      .range(0, kMaxCount);
}

void add_defaults(Options& out) {
  OptionGroup group = active(out, "Defaults of requests");
  group
      .add({"--default-max-tokens"}, kInteger,
           "Tokens of a reply where a request names none; -1: until the context is full", "-1", "LLAMA_ARG_N_PREDICT")
      .range(-1, kMaxCount);
  group.add({"--max-tokens-cap"}, kInteger, "Most tokens of any reply; 0: no cap", "0").range(0, kMaxCount);
  group.add({"--chat-template"}, kText, "Chat template (Jinja) in place of the model's", "", "LLAMA_ARG_CHAT_TEMPLATE");
  group.add({"--chat-template-file"}, kPath, "The same from a file", "", "LLAMA_ARG_CHAT_TEMPLATE_FILE");
  group.add({"--chat-template-kwargs"}, kText, "Variables of the chat template, a JSON object");
  group.add({"--no-thinking"}, kFlag, "Answer without reasoning unless a request asks for it");
  group.add({"--reasoning-effort"}, kText, "Depth of reasoning, for templates that know it", "(the template's)")
      .choices({"low", "medium", "high", "xhigh"});
  group.add({"--reasoning-budget"}, kInteger, "Tokens of reasoning, then it is closed; -1: no limit", "-1")
      .range(-1, kMaxCount);
  group.add({"--grammar"}, kText, "Grammar (GBNF) of every reply that brings none");
  group.add({"--grammar-file"}, kPath, "The same from a file");
  group.add({"--json-schema", "-j"}, kText, "JSON schema of every reply that brings none");
  group.add({"--json-schema-file", "-jf"}, kPath, "The same from a file");
  group.add({"--reverse-prompt", "-r"}, kText, "Stop text of requests that bring none; may be given several times")
      .repeatable();
}

void add_clients(Options& out) {
  OptionGroup group = active(out, "Client", {"claude"});
  group.add({"--url"}, kText, "Base URL of the running server", "http://127.0.0.1:8080", "VEDETTE_URL");
  group.add({"--key"}, kText, "The server's key; --api-key means the same", "", "VEDETTE_API_KEY");
  group.add({"--print-env"}, kFlag, "Print the environment as shell exports and stop");
  group.add({"--print-settings"}, kFlag, "Print an env block for .claude/settings.local.json and stop");
  OptionGroup doctor = active(out, "Doctor", {"doctor"});
  doctor.add({"--models"}, kFlag, "List the models found, too");
}

}  // namespace

std::vector<OptionSpec> server_options() {
  Options out;
  add_network(out);
  add_batching(out);
  add_prefix_cache(out);
  add_model(out);
  add_endpoints(out);
  add_defaults(out);
  add_clients(out);
  return out;
}

}  // namespace vedette
