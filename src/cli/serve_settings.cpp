#include "cli/serve_settings.h"

#include <algorithm>

#include "base/error.h"
#include "cli/prompt.h"
#include "cli/version.h"

namespace vedette::cli {
namespace {

// Of a step with a prefill chunk: someone who cancels waits for the step.
constexpr double kChunkMs = 150;

bool is_loopback(std::string_view host) {
  return host == "localhost" || host.starts_with("127.") || host == "::1";
}

Result<std::optional<std::string>> text_or_file(const OptionValues& options, std::string_view text,
                                                std::string_view file) {
  const auto given = options.text(text), path = options.text(file);
  if (given && path) return invalid_request(std::string(file), "{} and {} exclude each other; give one", text, file);
  if (!path) return given;
  VEDETTE_ASSIGN_OR_RETURN(std::string content, read_prompt_file(*path, file));
  return std::optional<std::string>(std::move(content));
}

Status read_network(const OptionValues& options, server::ServerSettings& out) {
  server::HttpSettings& http = out.http;
  http.host = options.text("--host").value_or("127.0.0.1");
  http.port = static_cast<uint16_t>(options.integer("--port").value_or(8080));
  http.reuse_port = options.flag("--reuse-port");
  http.certificate_file = options.text("--ssl-cert-file").value_or("");
  http.key_file = options.text("--ssl-key-file").value_or("");
  if (http.certificate_file.empty() != http.key_file.empty())
    return invalid_request("--ssl-cert-file", "--ssl-cert-file and --ssl-key-file belong together; give both or none");
  http.api_prefix = options.text("--api-prefix").value_or("");
  while (http.api_prefix.ends_with('/')) http.api_prefix.pop_back();
  if (!http.api_prefix.empty() && !http.api_prefix.starts_with('/'))
    return invalid_request("--api-prefix", "--api-prefix: expected a path as /llama, found '{}'",
                           http.api_prefix.substr(0, 60));
  http.max_body_bytes = static_cast<size_t>(options.integer("--max-body-size").value_or(int64_t{64} << 20));
  http.io_timeout_ms =
      static_cast<int>(std::min<int64_t>(options.integer("--timeout").value_or(3600), 2'000'000)) * 1000;

  server::GateSettings& gate = out.gate;
  gate.keys = split_lists(options.texts("--api-key"));
  if (const auto path = options.text("--api-key-file")) {
    VEDETTE_ASSIGN_OR_RETURN(const std::string content, read_prompt_file(*path, "--api-key-file"));
    const std::vector<std::string> keys = split_lists({content}, "\n");
    if (keys.empty())
      return invalid_request("--api-key-file", "--api-key-file: {}: holds no key; put one a line", *path);
    gate.keys.insert(gate.keys.end(), keys.begin(), keys.end());
  }
  gate.allowed_hosts = split_lists(options.texts("--allowed-hosts"));
  gate.origins = split_lists(options.texts("--cors-origins"));
  gate.credentials = options.flag("--cors-credentials");
  gate.cors_headers = options.text("--cors-headers").value_or("*");
  gate.cors_methods = options.text("--cors-methods").value_or("");
  const bool socket = http.host.ends_with(".sock");
  gate.check_host = !socket && (is_loopback(http.host) || gate.keys.empty());
  return ok_status();
}

Status read_batching(const OptionValues& options, ServeSettings& out) {
  engine::LoadOptions& load = out.model.load;
  const int64_t parallel = options.integer("--parallel").value_or(4);
  load.max_sequences = static_cast<int>(options.integer("--max-batch-size").value_or(parallel));
  load.grant_interval = static_cast<int>(options.integer("--prefill-grant-interval").value_or(16));
  load.max_waiting = static_cast<int>(options.integer("--max-queue-depth").value_or(32));
  out.server.decode_timeout_ms = static_cast<int>(options.integer("--decode-timeout").value_or(600)) * 1000;
  const std::string budget = options.text("--kv-cache-budget").value_or("auto");
  if (budget != "auto" && budget != "none" && budget != "0") {
    const auto bytes = parse_size(budget);
    if (!bytes)
      return invalid_request("--kv-cache-budget",
                             "--kv-cache-budget: expected bytes, a size as 8GB, or auto, found '{}'",
                             budget.substr(0, 60));
    load.kv_budget_bytes = *bytes;
  }
  load.prefix_cache = options.text("--prompt-cache-enabled") != "false";
  if (options.flag("--no-prompt-cache")) load.prefix_cache = false;
  load.cache_tokens = options.integer("--prompt-cache-tokens").value_or(-1);
  load.snapshot_interval = static_cast<int>(options.integer("--prefix-cache-rungs").value_or(512));
  return ok_status();
}

Status read_endpoints(const OptionValues& options, server::ServerSettings& out) {
  if (options.flag("--slots") && options.flag("--no-slots"))
    return invalid_request("--no-slots", "--slots and --no-slots exclude each other; give one");
  out.endpoints.slots = !options.flag("--no-slots");
  out.endpoints.metrics = options.flag("--metrics");
  out.endpoints.props_post = options.flag("--props");
  out.endpoints.settings = options.flag("--settings");
  const std::string& host = out.http.host;
  const bool local = is_loopback(host) || host.ends_with(".sock");
  if (out.endpoints.settings && !local && out.gate.keys.empty())
    return invalid_request("--settings", "--settings on {} needs a key; give --api-key or listen on loopback", host);
  out.responses.max_responses = options.integer("--responses-store-max-entries").value_or(1024);
  out.responses.response_ttl_s = options.integer("--responses-store-ttl-secs").value_or(3600);
  out.responses.max_conversations = options.integer("--conversation-store-max-entries").value_or(256);
  out.responses.conversation_ttl_s = options.integer("--conversation-store-ttl-secs").value_or(3600);
  const int64_t ping = options.integer("--sse-ping-interval").value_or(15);
  out.sse_ping_ms = ping < 0 ? -1 : static_cast<int>(ping) * 1000;
  return ok_status();
}

// What llama-server samples with where nobody says anything.
Status read_sampling_defaults(const OptionValues& options, server::GenerationDefaults& out) {
  VEDETTE_ASSIGN_OR_RETURN(out, read_generation(options));
  if (!options.given("--seed") || options.integer("--seed").value_or(-1) < 0) out.sampling.seed.reset();
  if (!out.temperature_set) out.sampling.temperature = 0.8;
  if (!out.top_k_set) out.sampling.top_k = 40;
  if (!out.top_p_set) out.sampling.top_p = 0.9;
  if (!out.min_p_set) out.sampling.min_p = 0.1;
  if (!options.given("--repeat-last-n")) out.sampling.repeat_last_n = 64;
  out.ignore_eos = options.flag("--ignore-eos");
  out.stop = options.texts("--reverse-prompt");
  return ok_status();
}

Status read_defaults(const OptionValues& options, server::ServedModelOptions& out) {
  server::GenerationDefaults& defaults = out.defaults;
  VEDETTE_RETURN_IF_ERROR(read_sampling_defaults(options, defaults));
  const std::string_view most = options.given("--default-max-tokens") ? "--default-max-tokens" : "--max-tokens";
  defaults.max_tokens = options.integer(most).value_or(-1);
  (void)options.integer("--max-tokens");  // the other one wins where both are given
  if (defaults.max_tokens == 0)
    return invalid_request(std::string(most), "{}: expected at least 1, or -1, found 0", most);
  defaults.max_tokens_cap = options.integer("--max-tokens-cap").value_or(0);
  defaults.effort = options.text("--reasoning-effort").value_or("");
  defaults.thinking_budget = options.integer("--reasoning-budget").value_or(-1);
  if (options.flag("--no-thinking")) defaults.thinking = false;
  VEDETTE_ASSIGN_OR_RETURN(const auto chat, text_or_file(options, "--chat-template", "--chat-template-file"));
  out.chat_template = chat.value_or("");
  if (const auto kwargs = options.text("--chat-template-kwargs")) {
    auto parsed = parse_json(*kwargs, "--chat-template-kwargs");
    if (!parsed.ok() || !parsed->is_object())
      return invalid_request("--chat-template-kwargs", "--chat-template-kwargs: expected a JSON object, found {}",
                             parsed.ok() ? parsed->type_name() : parsed.error().message);
    defaults.template_kwargs = std::move(*parsed);
  }
  VEDETTE_ASSIGN_OR_RETURN(auto grammar, text_or_file(options, "--grammar", "--grammar-file"));
  VEDETTE_ASSIGN_OR_RETURN(auto schema, text_or_file(options, "--json-schema", "--json-schema-file"));
  if (grammar && schema)
    return invalid_request("--grammar", "--grammar and --json-schema exclude each other; give one");
  if (grammar) defaults.grammar = text::Grammar{text::GrammarKind::kGbnf, std::move(*grammar)};
  if (schema) defaults.grammar = text::Grammar{text::GrammarKind::kJsonSchema, std::move(*schema)};
  return ok_status();
}

}  // namespace

Result<ServeSettings> read_serve(const OptionValues& options) {
  ServeSettings out;
  out.named = read_model(options);
  VEDETTE_ASSIGN_OR_RETURN(out.model.load, read_compute(options));
  out.model.load.chunk_ms = kChunkMs;
  out.model.load.context_length = options.integer("--ctx-size").value_or(0);
  VEDETTE_ASSIGN_OR_RETURN(out.memory, read_memory(options));
  VEDETTE_RETURN_IF_ERROR(read_network(options, out.server));
  VEDETTE_RETURN_IF_ERROR(read_batching(options, out));
  VEDETTE_RETURN_IF_ERROR(read_endpoints(options, out.server));
  VEDETTE_RETURN_IF_ERROR(read_defaults(options, out.model));
  const int64_t threads = options.integer("--threads-http").value_or(-1);
  out.server.http.threads = threads > 0 ? static_cast<int>(threads) : std::min(8, out.model.load.max_sequences + 2);
  out.server.version = std::string(kVersion);
  out.server.store = out.named.store;
  out.model.aliases = split_lists(options.texts("--alias"));
  out.no_model = options.flag("--no-model");
  if (options.flag("--warmup") && options.flag("--no-warmup"))
    return invalid_request("--no-warmup", "--warmup and --no-warmup exclude each other; give one");
  out.warmup = !options.flag("--no-warmup");
  if (options.flag("--memory-guard") && options.flag("--no-memory-guard"))
    return invalid_request("--no-memory-guard", "--memory-guard and --no-memory-guard exclude each other; give one");
  out.housekeeping.memory_guard = !options.flag("--no-memory-guard");
  const int64_t sleep = options.integer("--sleep-idle-seconds").value_or(-1);
  out.housekeeping.sleep_after_ms = sleep < 0 ? -1 : sleep * 1000;
  out.quiet = read_verbosity(options).quiet;
  out.estimate_memory = options.flag("--estimate-memory");
  out.force = options.flag("--force");
  return out;
}

}  // namespace vedette::cli
