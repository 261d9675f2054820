#include "cli/talk.h"

#include <fmt/format.h>

#include <condition_variable>
#include <cstdlib>
#include <deque>
#include <mutex>

#include "base/error.h"
#include "cli/context.h"
#include "cli/memory_budget.h"
#include "cli/terminal.h"
#include "hub/model_store.h"
#include "models/registry.h"
#include "text/chat_fallback.h"

namespace vedette::cli {
namespace {

// Events from the engine's thread to ours.
class EventQueue {
 public:
  void push(const engine::Event& event) {
    {
      std::lock_guard lock(mutex_);
      events_.push_back(event);
    }
    arrived_.notify_one();
  }
  std::optional<engine::Event> pop(std::chrono::milliseconds wait) {
    std::unique_lock lock(mutex_);
    if (!arrived_.wait_for(lock, wait, [this] { return !events_.empty(); })) return std::nullopt;
    engine::Event event = std::move(events_.front());
    events_.pop_front();
    return event;
  }

 private:
  std::mutex mutex_;
  std::condition_variable arrived_;
  std::deque<engine::Event> events_;
};

// A number of generation_config.json; absent or null: fallback.
Result<double> config_number(const Json& config, const char* key, double fallback, double most) {
  const Json* value = config.find(key);
  if (value == nullptr || value->is_null()) return fallback;
  if (!value->is_number() || !(value->as_double() >= 0 && value->as_double() <= most))
    return corrupt_file(key,
                        "generation_config.json: {}: expected a number from 0 to {}, found {}; correct it, or give "
                        "the value as an option to `generate`",
                        key, most, value->dump().substr(0, 60));
  return value->as_double();
}

// generation_config.json's sampling, where it asks for sampling and the command line said nothing.
Status apply_generation_config(const Json& config, const TalkSettings& settings, sampling::SamplingParams& params) {
  const Json* samples = config.find("do_sample");
  if (samples == nullptr || samples->is_null()) return ok_status();
  if (!samples->is_bool())
    return corrupt_file("do_sample", "generation_config.json: do_sample: expected true or false, found {}; correct it",
                        samples->dump().substr(0, 60));
  if (!samples->as_bool()) return ok_status();
  VEDETTE_ASSIGN_OR_RETURN(const double temperature, config_number(config, "temperature", 1, 100));
  VEDETTE_ASSIGN_OR_RETURN(const double top_k, config_number(config, "top_k", 0, 1e9));
  VEDETTE_ASSIGN_OR_RETURN(const double top_p, config_number(config, "top_p", 1, 1));
  VEDETTE_ASSIGN_OR_RETURN(const double min_p, config_number(config, "min_p", 0, 1));
  if (!settings.temperature_given) params.temperature = temperature;
  if (!settings.top_k_given) params.top_k = static_cast<int64_t>(top_k);
  if (!settings.top_p_given) params.top_p = top_p;
  if (!settings.min_p_given) params.min_p = min_p;
  return ok_status();
}

// A token id beyond the model's is the checkpoint's fault, not the prompt's.
Result<Prompt> within_vocabulary(Result<Prompt> prompt, int64_t vocab_size) {
  if (!prompt.ok()) return prompt;
  for (const int32_t id : prompt->ids) {
    if (id >= vocab_size)
      return corrupt_file("",
                          "the checkpoint's tokenizer made token id {} of the prompt, the model has ids from 0 to {} "
                          "(vocab_size {}); the tokenizer and the weights do not belong together",
                          id, vocab_size - 1, vocab_size);
  }
  return prompt;
}

// --estimate-memory: the rendered prompt and what may follow it, against the budget.
Status preflight(const TalkSettings& settings, const weights::Checkpoint& checkpoint, const PromptBuilder& prompts) {
  VEDETTE_ASSIGN_OR_RETURN(models::DecoderSpec spec, models::build_spec(checkpoint));
  MemoryQuery query;
  query.memory = settings.memory;
  query.load = settings.load;
  query.tokens = settings.load.context_length > 0 ? settings.load.context_length : spec.context_length;
  if (settings.prompt && settings.max_tokens > 0) {
    VEDETTE_ASSIGN_OR_RETURN(text::Tokenizer tokenizer, text::Tokenizer::create(checkpoint.tokenizer));
    Json messages = Json::array();
    if (!settings.system.empty()) messages.push_back(message("system", settings.system));
    messages.push_back(message("user", *settings.prompt));
    auto prompt = settings.raw ? prompts.plain(*settings.prompt, tokenizer) : prompts.conversation(messages, tokenizer);
    if (!prompt.ok()) return std::move(prompt).error();
    query.tokens = static_cast<int64_t>(prompt->ids.size()) + settings.max_tokens;
  }
  const MemoryReport report = report_memory(checkpoint, &spec, query);
  Status fits = check_fits(report);
  if (!fits.ok() && !settings.force) return fits;
  if (!fits.ok()) print_notice(fits.error().message + "; going on, as --force asks");
  if (settings.quiet) return ok_status();
  print_notice(fmt::format("memory: weights {}, K/V {} for {} tokens, in all {} of {} available",
                           engine::format_bytes(report.weight_bytes), engine::format_bytes(report.kv_bytes.value_or(0)),
                           report.tokens, engine::format_bytes(report.total_bytes.value_or(0)),
                           report.budget_bytes ? engine::format_bytes(*report.budget_bytes) : "an unknown amount"));
  return ok_status();
}

std::string start_line(const std::string& name, const engine::LoadReport& report) {
  return fmt::format("{} ({}): compute {}, {}, {} threads, K/V {}, context {}, loaded in {:.1f} s", name, report.family,
                     ops::to_string(report.backend.compute), report.backend.isa, report.backend.threads,
                     ops::to_string(report.kv_type), report.context_length, report.load_ms / 1000);
}

double rate(int64_t tokens, double milliseconds) {
  return tokens > 0 && milliseconds > 0 ? 1000.0 * static_cast<double>(tokens) / milliseconds : 0;
}

// The first generated token comes with the prefill.
double decode_rate(const engine::Timings& timings) {
  return rate(timings.generated_tokens - 1, timings.decode_ms);
}
double prefill_rate(const engine::Timings& timings) {
  return rate(timings.prompt_tokens - timings.cached_tokens, timings.prefill_ms);
}

}  // namespace

Talk::Talk(const TalkSettings& settings, Interrupts& interrupts, PromptBuilder prompts, engine::LoadedModel model)
    : settings_(settings),
      interrupts_(interrupts),
      prompts_(std::move(prompts)),
      model_(std::move(model)),
      sampling_(settings.sampling) {}

Result<std::unique_ptr<Talk>> Talk::open(const TalkSettings& settings, Interrupts& interrupts) {
  VEDETTE_ASSIGN_OR_RETURN(hub::ResolvedModel resolved, hub::resolve_model(settings.model.model, settings.model.store));
  VEDETTE_ASSIGN_OR_RETURN(weights::Checkpoint checkpoint, weights::open_checkpoint(resolved.path));
  VEDETTE_ASSIGN_OR_RETURN(PromptBuilder prompts, PromptBuilder::create(checkpoint, settings.raw));
  if (settings.estimate_memory) VEDETTE_RETURN_IF_ERROR(preflight(settings, checkpoint, prompts));

  engine::LoadOptions load = settings.load;
  load.check_memory = !settings.force;
  VEDETTE_RETURN_IF_ERROR(apply_memory_limit(settings.memory, settings.force, checkpoint, load));
  Result<engine::LoadedModel> model = [&] {
    ProgressBar bar("loading " + resolved.name, !settings.quiet);
    load.progress = [&](int64_t done, int64_t total) {
      bar.update(done, total);
      if (interrupts.take() > 0) std::_Exit(kExitInterrupted);
    };
    return engine::load_model(checkpoint, load);
  }();
  if (!model.ok()) return std::move(model).error();

  std::unique_ptr<Talk> talk(new Talk(settings, interrupts, std::move(prompts), std::move(*model)));
  talk->name_ = resolved.name;
  if (settings.sampling_from_model) {
    VEDETTE_RETURN_IF_ERROR(apply_generation_config(checkpoint.generation_config, settings, talk->sampling_));
    VEDETTE_RETURN_IF_ERROR(sampling::validate(talk->sampling_));
  }
  if (!settings.quiet) print_notice(start_line(resolved.name, talk->report()));
  if (!settings.quiet && talk->prompts_.is_fallback()) {
    print_notice(
        "the checkpoint has no chat template, so it is likely a base model; the prompt is put into a generic chat form "
        "(--no-chat-template sends it as it is)");
  }
  return talk;
}

Result<Prompt> Talk::prompt_for(const Json& messages) const {
  return within_vocabulary(prompts_.conversation(messages, model_.engine->tokenizer()),
                           model_.engine->spec().vocab_size);
}

Result<Prompt> Talk::prompt_for(const std::string& text) const {
  return within_vocabulary(prompts_.plain(text, model_.engine->tokenizer()), model_.engine->spec().vocab_size);
}

Result<Reply> Talk::reply(const Prompt& prompt, const std::function<Status(const ReplyPart&)>& on_part) {
  Reply reply;
  ReasoningFilter filter(settings_.raw ? std::string_view() : std::string_view(prompt.text));
  Status output = ok_status();
  auto deliver = [&](const std::vector<ReplyPart>& parts) {
    for (const ReplyPart& part : parts) {
      (part.reasoning ? reply.reasoning : reply.answer) += part.text;
      if (output.ok()) output = on_part(part);
    }
  };
  // In raw mode the text is printed as it comes.
  auto split = [&](const std::string& text) {
    if (!settings_.raw) return filter.push(text);
    return text.empty() ? std::vector<ReplyPart>() : std::vector<ReplyPart>{{false, text}};
  };

  engine::GenerateRequest request;
  request.prompt = prompt.ids;
  request.max_tokens = settings_.max_tokens;
  request.stop = settings_.stop;
  if (prompts_.is_fallback()) request.stop.emplace_back(text::kChatFallbackStop);
  request.ignore_eos = settings_.ignore_eos;
  request.sampling = sampling_;
  auto queue = std::make_shared<EventQueue>();
  VEDETTE_ASSIGN_OR_RETURN(
      engine::RequestId id,
      model_.engine->submit(std::move(request), [queue](const engine::Event& event) { queue->push(event); }));
  for (;;) {
    auto event = queue->pop(std::chrono::milliseconds(20));
    if (const int64_t count = interrupts_.take(); count > 0) {
      reply.quit = reply.interrupted || count > 1;
      reply.interrupted = true;
      model_.engine->cancel(id);
      if (reply.quit) return reply;
    }
    if (!event) continue;
    reply.ids.insert(reply.ids.end(), event->ids.begin(), event->ids.end());
    deliver(split(event->text));
    if (!output.ok()) {
      model_.engine->cancel(id);
      return std::move(output).error();
    }
    if (event->kind != engine::Event::Kind::kFinished) continue;
    if (!settings_.raw) deliver(filter.finish());
    reply.finish = std::move(*event);
    break;
  }
  if (!output.ok()) return std::move(output).error();
  if (reply.finish.error) return *reply.finish.error;
  return reply;
}

std::string summary_line(const Reply& reply) {
  const engine::Timings& timings = reply.finish.timings;
  return fmt::format("[Generated {} tokens in {:.2f} s, {:.1f} tok/s, {}]\n", timings.generated_tokens,
                     (timings.prefill_ms + timings.decode_ms) / 1000, decode_rate(timings),
                     engine::to_string(reply.finish.reason));
}

std::string profile_block(const Reply& reply) {
  const engine::Timings& timings = reply.finish.timings;
  return fmt::format(
      "[Profile Results]\nPrompt tokens: {}\nGenerated tokens: {}\nPrefill: {:.1f} ms ({:.1f} tok/s)\n"
      "Decode: {:.1f} ms ({:.1f} tok/s)\n",
      timings.prompt_tokens, timings.generated_tokens, timings.prefill_ms, prefill_rate(timings), timings.decode_ms,
      decode_rate(timings));
}

Json reply_json(const Talk& talk, const Prompt& prompt, const Reply& reply) {
  auto ids_json = [](const std::vector<int32_t>& ids) {
    Json array = Json::array();
    for (int32_t id : ids) array.push_back(id);
    return array;
  };
  const engine::Timings& timings = reply.finish.timings;
  const engine::LoadReport& report = talk.report();
  Json times = Json::object();
  times.set("load_ms", report.load_ms);
  times.set("queue_ms", timings.queue_ms);
  times.set("prefill_ms", timings.prefill_ms);
  times.set("decode_ms", timings.decode_ms);
  times.set("prompt_tokens", timings.prompt_tokens);
  times.set("cached_tokens", timings.cached_tokens);
  times.set("generated_tokens", timings.generated_tokens);
  times.set("prefill_tokens_per_second", prefill_rate(timings));
  times.set("decode_tokens_per_second", decode_rate(timings));
  Json out = Json::object();
  out.set("model", talk.name());
  out.set("text", reply.answer);
  out.set("reasoning", reply.reasoning.empty() ? Json() : Json(reply.reasoning));
  out.set("prompt_ids", ids_json(prompt.ids));
  out.set("ids", ids_json(reply.ids));
  out.set("finish_reason", engine::to_string(reply.finish.reason));
  out.set("stop", reply.finish.stop_text.empty() ? Json() : Json(reply.finish.stop_text));
  out.set("max_tokens_clamped", reply.finish.max_tokens_clamped);
  out.set("timings", std::move(times));
  out.set("seed", static_cast<int64_t>(reply.finish.seed));
  out.set("compute", ops::to_string(report.backend.compute));
  out.set("isa", report.backend.isa);
  out.set("threads", report.backend.threads);
  out.set("kv_type", ops::to_string(report.kv_type));
  out.set("context_length", report.context_length);
  return out;
}

}  // namespace vedette::cli
