#include "cli/talk.h"

#include <fmt/format.h>

#include <condition_variable>
#include <cstdlib>
#include <deque>
#include <mutex>
#include <utility>
#include <variant>

#include "base/error.h"
#include "cli/context.h"
#include "cli/memory_budget.h"
#include "cli/prompt.h"
#include "cli/terminal.h"
#include "engine/memory.h"
#include "hub/model_store.h"
#include "models/registry.h"
#include "server/job_run.h"
#include "server/prompt_builder.h"

namespace vedette::cli {
namespace {

// What a run tells its listener, from the executor's thread to ours.
using Told = std::variant<server::JobEvent, server::JobAnswer, Error>;
class ToldQueue {
 public:
  void push(Told told) {
    {
      std::lock_guard lock(mutex_);
      told_.push_back(std::move(told));
    }
    arrived_.notify_one();
  }
  std::optional<Told> pop(std::chrono::milliseconds wait) {
    std::unique_lock lock(mutex_);
    if (!arrived_.wait_for(lock, wait, [this] { return !told_.empty(); })) return std::nullopt;
    Told told = std::move(told_.front());
    told_.pop_front();
    return told;
  }

 private:
  std::mutex mutex_;
  std::condition_variable arrived_;
  std::deque<Told> told_;
};

server::GenerateJob make_job(const TalkSettings& settings, const server::ServedModel& model, server::JobPrompt prompt) {
  server::GenerateJob job;
  job.prompts.push_back(std::move(prompt));
  job.sampling = model.defaults.load()->sampling;
  job.max_tokens = settings.max_tokens;
  job.stop = settings.stop;
  job.ignore_eos = settings.ignore_eos;
  job.split_message = !settings.raw;
  return job;
}

// --estimate-memory: the rendered prompt and what may follow it, against the budget.
Status preflight(const TalkSettings& settings, const weights::Checkpoint& checkpoint,
                 const server::ServedModel& model) {
  MemoryQuery query;
  query.memory = settings.memory;
  query.load = settings.load;
  query.tokens = 0;
  if (settings.prompt && settings.max_tokens > 0) {
    const server::GenerateJob job = make_job(settings, model, given_prompt(settings));
    VEDETTE_ASSIGN_OR_RETURN(const server::BuiltPrompt prompt, server::build_prompt(model, job.prompts.front(), job));
    query.tokens = static_cast<int64_t>(prompt.ids.size()) + settings.max_tokens;
  }
  return preflight_memory(checkpoint, std::move(query), settings.force, settings.quiet);
}

std::string start_line(const server::ServedModel& model) {
  const engine::LoadReport& report = model.report;
  const ops::MemoryUse& memory = report.memory;
  return fmt::format(
      "{} ({}): compute {}, {}, {} threads, K/V {}, context {}; weights {}, K/V up to {}, activations {}; loaded in "
      "{:.2f} s",
      model.id, report.family, ops::to_string(report.backend.compute), report.backend.isa, report.backend.threads,
      ops::to_string(report.kv_type), report.context_length,
      engine::format_bytes(memory.weight_bytes + memory.mapped_bytes), engine::format_bytes(memory.kv_bytes),
      engine::format_bytes(memory.activation_bytes), report.load_ms / 1000);
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

// All that loading takes, but for the progress.
server::ServedModelOptions load_options(const TalkSettings& settings, const hub::ResolvedModel& resolved) {
  server::ServedModelOptions out;
  out.path = resolved.path;
  out.id = resolved.name;
  out.load = settings.load;
  out.load.check_memory = !settings.force;
  out.defaults = settings.generation;
  out.constrains = false;
  out.use_template = !settings.raw;
  out.before_load = [&settings](const weights::Checkpoint& checkpoint, const server::ServedModel& model,
                                engine::LoadOptions& load) -> Status {
    if (settings.estimate_memory) VEDETTE_RETURN_IF_ERROR(preflight(settings, checkpoint, model));
    return apply_memory_limit(settings.memory, settings.force, checkpoint, load);
  };
  return out;
}

}  // namespace

server::JobPrompt given_prompt(const TalkSettings& settings) {
  if (settings.raw) return *settings.prompt;
  server::Conversation conversation;
  if (!settings.system.empty()) conversation.messages.push_back(message("system", settings.system));
  conversation.messages.push_back(message("user", *settings.prompt));
  return conversation;
}

Result<std::unique_ptr<Talk>> Talk::open(const TalkSettings& settings, Interrupts& interrupts) {
  VEDETTE_ASSIGN_OR_RETURN(hub::ResolvedModel resolved, hub::resolve_model(settings.model.model, settings.model.store));
  std::unique_ptr<Talk> talk(new Talk(settings, interrupts));
  auto model = [&] {
    server::ServedModelOptions options = load_options(settings, resolved);
    ProgressBar bar("loading " + resolved.name, !settings.quiet);
    options.load.progress = [&](int64_t done, int64_t total) {
      bar.update(done, total);
      if (interrupts.take() > 0) std::_Exit(kExitInterrupted);
    };
    return server::serve_model(options);
  }();
  if (!model.ok()) {
    Error error = std::move(model).error();
    if (error.field == server::kTemplateField) error.message += "; --no-chat-template goes without it";
    return error;
  }
  talk->model_ = std::move(*model);
  if (settings.quiet) return talk;
  print_notice(start_line(*talk->model_));
  if (!settings.raw && !talk->model_->chat_template) {
    print_notice(
        "the checkpoint has no chat template, so it is likely a base model; the prompt is put into a generic chat form "
        "(--no-chat-template sends it as it is)");
  }
  return talk;
}

// The engine's thread drops its runs while the executor is there, which they need.
Talk::~Talk() {
  if (model_) model_->engine.reset();
}

Result<Reply> Talk::reply(server::JobPrompt prompt, const PartSink& on_part) {
  VEDETTE_ASSIGN_OR_RETURN(
      const std::shared_ptr<server::JobRun> run,
      server::JobRun::start(model_, make_job(settings_, *model_, std::move(prompt)), "", executor_));
  auto queue = std::make_shared<ToldQueue>();
  run->listen({[queue](const server::JobEvent& event) { queue->push(event); },
               [queue](const server::JobAnswer& answer) { queue->push(answer); },
               [queue](const Error& error) { queue->push(error); }});
  Reply reply;
  reply.prompt_ids = run->info().prompts.front();
  for (;;) {
    auto told = queue->pop(std::chrono::milliseconds(20));
    if (const int64_t count = interrupts_.take(); count > 0) {
      reply.quit = reply.interrupted || count > 1;
      reply.interrupted = true;
      run->stop();
      if (reply.quit) return reply;
    }
    if (!told) continue;
    if (const auto* error = std::get_if<Error>(&*told)) return *error;
    if (auto* answer = std::get_if<server::JobAnswer>(&*told)) {
      if (const Json* warnings = answer->x_vedette.find("warnings")) tell_warnings(*warnings);
      reply.answer = std::move(answer->choices.front());
      return reply;
    }
    for (const text::MessagePart& part : std::get<server::JobEvent>(*told).parts) {
      if (Status output = on_part(part); !output.ok()) {
        run->stop();
        return std::move(output).error();
      }
    }
  }
}

// Each once, however many turns bring it.
void Talk::tell_warnings(const Json& warnings) {
  if (settings_.quiet) return;
  for (const Json& warning : warnings.as_array())
    if (told_.insert(warning.as_string()).second) print_notice(warning.as_string());
}

std::string summary_line(const Reply& reply) {
  const engine::Timings& timings = reply.answer.timings;
  return fmt::format("[Generated {} tokens in {:.2f} s, {:.1f} tok/s, {}]\n", timings.generated_tokens,
                     (timings.prefill_ms + timings.decode_ms) / 1000, decode_rate(timings),
                     engine::to_string(reply.answer.reason));
}

std::string profile_block(const Reply& reply) {
  const engine::Timings& timings = reply.answer.timings;
  return fmt::format(
      "[Profile Results]\nPrompt tokens: {}\nCached tokens: {}\nGenerated tokens: {}\nPrefill: {:.1f} ms ({:.1f} "
      "tok/s)\n"
      "Decode: {:.1f} ms ({:.1f} tok/s)\n",
      timings.prompt_tokens, timings.cached_tokens, timings.generated_tokens, timings.prefill_ms, prefill_rate(timings),
      timings.decode_ms, decode_rate(timings));
}

namespace {

// What the back end holds after loading; K/V is what its blocks take once all are in use.
Json memory_json(const engine::LoadReport& report) {
  Json out = Json::object();
  out.set("weight_bytes", report.memory.weight_bytes);
  out.set("mapped_bytes", report.memory.mapped_bytes);
  out.set("kv_bytes", report.memory.kv_bytes);
  out.set("activation_bytes", report.memory.activation_bytes);
  out.set("estimated_program_bytes", report.estimate.program_bytes);
  out.set("estimated_total_bytes", report.estimate.total_bytes);
  return out;
}

}  // namespace

Json reply_json(const Talk& talk, const Reply& reply) {
  auto ids_json = [](const std::vector<int32_t>& ids) {
    Json array = Json::array();
    for (int32_t id : ids) array.push_back(id);
    return array;
  };
  const engine::Timings& timings = reply.answer.timings;
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
  out.set("text", reply.answer.content);
  out.set("reasoning", reply.answer.reasoning.empty() ? Json() : Json(reply.answer.reasoning));
  out.set("prompt_ids", ids_json(reply.prompt_ids));
  out.set("ids", ids_json(reply.answer.ids));
  out.set("finish_reason", engine::to_string(reply.answer.reason));
  out.set("stop", reply.answer.stop_text.empty() ? Json() : Json(reply.answer.stop_text));
  out.set("max_tokens_clamped", reply.answer.max_tokens_clamped);
  out.set("timings", std::move(times));
  out.set("seed", static_cast<int64_t>(reply.answer.seed));
  out.set("compute", ops::to_string(report.backend.compute));
  out.set("isa", report.backend.isa);
  out.set("threads", report.backend.threads);
  out.set("kv_type", ops::to_string(report.kv_type));
  out.set("context_length", report.context_length);
  out.set("memory", memory_json(report));
  return out;
}

}  // namespace vedette::cli
