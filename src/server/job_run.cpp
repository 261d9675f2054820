#include "server/job_run.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <ctime>
#include <mutex>
#include <optional>
#include <utility>

#include "base/error.h"
#include "server/job_constraint.h"
#include "server/job_report.h"
#include "server/prompt_builder.h"
#include "server/token_places.h"

namespace vedette::server {
namespace {

using Clock = std::chrono::steady_clock;

int64_t now_ms() {
  return std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now().time_since_epoch()).count();
}

std::string random_id() {
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string out;
  for (int half = 0; half < 2; ++half) {
    uint64_t bits = sampling::draw_seed();
    for (int digit = 0; digit < 12; ++digit, bits >>= 4) out += kDigits[bits & 15];
  }
  return out;
}

// Text goes on with the stretch it belongs to.
AnswerItem& append_item(std::vector<AnswerItem>& items, AnswerItem::Kind kind, const std::string& text) {
  if (items.empty() || items.back().kind != kind) items.push_back({kind});
  items.back().text += text;
  return items.back();
}

}  // namespace

// One choice's way from engine events to message parts. Touched by the serial queue alone, but for `request`.
struct Choice {
  engine::RequestId request = 0;
  std::optional<text::MessageParser> parser;  // none: all text is content
  std::optional<TokenPlaces> places;          // with a parser, where log probabilities are wanted
  ChoiceAnswer answer;
  bool ended = false;
};

struct JobRun::State {
  Executor* executor = nullptr;
  std::shared_ptr<ServedModel> model;
  GenerateJob job;
  JobStart start;
  std::shared_ptr<SerialQueue> queue;
  std::vector<Choice> choices;
  JobListener listener;
  std::optional<Error> error;  // of the first choice that failed
  size_t open_choices = 0;
  std::atomic<int64_t> progress_ms{0};
  std::atomic<bool> done{false};
  std::mutex mutex;  // submitted, reason, stopped
  std::vector<engine::RequestId> submitted;
  std::optional<Error> reason;  // why it was cancelled from outside
  bool stopped = false;         // cancelled: what came until then is the answer, and no error

  Status build(const std::string& scope, std::vector<engine::GenerateRequest>& requests);
  Result<engine::GenerateRequest> request_for(const BuiltPrompt& prompt, const JobConstraint& constraints,
                                              const std::string& scope) const;
  void take(size_t index, const engine::Event& event);
  void take_prompt(size_t index, const engine::Event& event);
  void take_text(size_t index, const engine::Event& event);
  void end_choice(size_t index, const engine::Event& event);
  void give(Choice& choice, size_t index, bool reasoned, JobEvent& out);
  void add_part(Choice& choice, size_t index, const text::MessagePart& part,
                const std::vector<engine::TokenLogprobs>& tokens);
  void finish();
};

JobRun::JobRun(std::unique_ptr<State> state) : state_(std::move(state)) {}

// The engine thread may drop the last reference to a run; it must not be the one that ends the engine.
JobRun::~JobRun() {
  state_->executor->post([model = std::move(state_->model)] {});
}

Result<engine::GenerateRequest> JobRun::State::request_for(const BuiltPrompt& prompt, const JobConstraint& constraints,
                                                           const std::string& scope) const {
  const std::shared_ptr<const GenerationDefaults> shared = model->defaults.load();
  const GenerationDefaults& defaults = *shared;
  engine::GenerateRequest request;
  request.prompt = prompt.ids;
  request.max_tokens = job.max_tokens.value_or(defaults.max_tokens);
  if (defaults.max_tokens_cap > 0)
    request.max_tokens =
        request.max_tokens < 0 ? defaults.max_tokens_cap : std::min(request.max_tokens, defaults.max_tokens_cap);
  request.stop = job.stop;
  request.stop.insert(request.stop.end(), prompt.stop.begin(), prompt.stop.end());
  request.ignore_eos = job.ignore_eos;
  request.sampling = job.sampling;
  if (request.sampling.dry_multiplier > 0 && !request.sampling.dry_breakers) {
    const std::vector<std::string>& texts = job.dry_breakers.empty() ? defaults.dry_breakers : job.dry_breakers;
    VEDETTE_ASSIGN_OR_RETURN(request.sampling.dry_breakers,
                             model->tables.dry_breakers(model->tokenizer(), model->vocab_size(), texts));
  }
  text::LanguageBias languages = defaults.language_bias;
  if (job.language_bias) languages.entries = *job.language_bias;
  request.sampling.bias_table = model->tables.language_bias(model->tokenizer(), languages);
  if (sampling::names_infill(request.sampling))
    request.sampling.infill_vocabulary =
        model->tables.infill(model->tokenizer(), model->vocab_size(), model->report.eos);
  if (job.split_message) request.visible_specials = model->visible_specials;
  request.logprobs = job.logprobs;
  request.prompt_logprobs = job.prompt_logprobs;
  request.progress = true;
  request.priority = job.priority;
  request.loop = job.loop;
  request.cache = {job.cache_prompt, scope, prompt.history_tokens};
  VEDETTE_ASSIGN_OR_RETURN(request.constraint, constraints.of(prompt.text));
  return request;
}

Status JobRun::State::build(const std::string& scope, std::vector<engine::GenerateRequest>& requests) {
  VEDETTE_ASSIGN_OR_RETURN(const JobConstraint constraints, JobConstraint::make(*model, job));
  for (size_t p = 0; p < job.prompts.size(); ++p) {
    VEDETTE_ASSIGN_OR_RETURN(BuiltPrompt prompt, build_prompt(*model, job.prompts[p], job));
    for (std::string& note : prompt.notes) job.warnings.push_back(std::move(note));
    VEDETTE_ASSIGN_OR_RETURN(const engine::GenerateRequest request, request_for(prompt, constraints, scope));
    for (int k = 0; k < job.n; ++k) {
      requests.push_back(request);
      requests.back().sampling.choice = static_cast<uint32_t>(k);
      if (model->before_submit) model->before_submit(job, static_cast<int>(requests.size()) - 1, requests.back());
      Choice& choice = choices.emplace_back();
      if (job.split_message) {
        if (job.logprobs >= 0) choice.places.emplace(model->tokenizer());
        text::MessageFormat format = model->message_format;
        if (job.tools.empty() || job.tool_choice.kind == text::ToolChoiceKind::kNone) format.tools = nullptr;
        const bool tail = prompt.text.size() > 4096;
        choice.parser.emplace(format, job.tools,
                              tail ? std::string_view(prompt.text).substr(prompt.text.size() - 4096) : prompt.text);
      }
    }
    start.prompts.push_back(std::move(prompt.ids));
    start.prompt_texts.push_back(std::move(prompt.text));
  }
  return ok_status();
}

Result<std::shared_ptr<JobRun>> JobRun::start(std::shared_ptr<ServedModel> model, GenerateJob job, std::string scope,
                                              Executor& executor) {
  auto run = std::make_shared<JobRun>(std::make_unique<State>());
  State& state = *run->state_;
  state.executor = &executor;
  state.model = std::move(model);
  state.job = std::move(job);
  state.queue = std::make_shared<SerialQueue>(executor);
  state.start.model = state.model->id;
  state.start.created = static_cast<int64_t>(std::time(nullptr));
  state.start.id = random_id();
  state.progress_ms = now_ms();
  // Choices of one seed differ by their index; without a seed they share one that is drawn here and reported.
  if (!state.job.sampling.seed) state.job.sampling.seed = sampling::draw_seed();
  std::vector<engine::GenerateRequest> requests;
  VEDETTE_RETURN_IF_ERROR(state.build(scope, requests));
  state.start.call_ids.resize(state.choices.size());
  state.open_choices = state.choices.size();
  for (size_t i = 0; i < requests.size(); ++i) {
    // Sinks keep the run alive until the engine is done with the sequence.
    auto sink = [run, i](const engine::Event& event) {
      run->state_->progress_ms = now_ms();
      run->state_->queue->post([run, i, event] { run->state_->take(i, event); });
    };
    auto id = state.model->engine->submit(std::move(requests[i]), std::move(sink));
    if (!id.ok()) {
      run->cancel();
      state.queue->open();  // nobody listens: events run into nothing
      return std::move(id).error();
    }
    const std::scoped_lock lock(state.mutex);
    state.choices[i].request = *id;
    state.submitted.push_back(*id);
  }
  return run;
}

const JobStart& JobRun::info() const {
  return state_->start;
}
const ServedModel& JobRun::model() const {
  return *state_->model;
}
bool JobRun::finished() const {
  return state_->done;
}
int64_t JobRun::idle_ms() const {
  return now_ms() - state_->progress_ms;
}

void JobRun::listen(JobListener listener) {
  state_->listener = std::move(listener);
  state_->queue->open();
}

void JobRun::cancel() {
  const std::scoped_lock lock(state_->mutex);
  for (const engine::RequestId id : state_->submitted) state_->model->engine->cancel(id);
}

void JobRun::stop() {
  {
    const std::scoped_lock lock(state_->mutex);
    state_->stopped = true;
  }
  cancel();
}

void JobRun::fail(Error error) {
  {
    const std::scoped_lock lock(state_->mutex);
    if (!state_->reason) state_->reason = std::move(error);
  }
  cancel();
}

bool JobRun::end_reasoning() {
  const GenerateJob& job = state_->job;
  if (!job.end_reasoning || !may_reason(*state_->model, job)) return false;
  *job.end_reasoning = true;
  return true;
}

void JobRun::pause() {
  const std::scoped_lock lock(state_->mutex);
  for (const engine::RequestId id : state_->submitted) state_->model->engine->pause(id);
}

void JobRun::resume() {
  const std::scoped_lock lock(state_->mutex);
  for (const engine::RequestId id : state_->submitted) state_->model->engine->resume(id);
}

void JobRun::State::take(size_t index, const engine::Event& event) {
  switch (event.kind) {
    case engine::Event::Kind::kProgress: {
      JobEvent out;
      out.kind = JobEvent::Kind::kProgress;
      out.choice = static_cast<int>(index);
      out.prefilled = event.prefilled;
      out.prompt_tokens = static_cast<int64_t>(start.prompts[index / static_cast<size_t>(job.n)].size());
      if (listener.event) listener.event(out);
      break;
    }
    case engine::Event::Kind::kPrompt:
      take_prompt(index, event);
      break;
    case engine::Event::Kind::kTokens:
      take_text(index, event);
      break;
    case engine::Event::Kind::kFinished:
      end_choice(index, event);
      break;
  }
}

// Parts go into the answer, get their calls' ids and the tokens that content was written with. reasoned: reasoning was
// open before they came.
void JobRun::State::give(Choice& choice, size_t index, bool reasoned, JobEvent& out) {
  using Kind = text::MessagePart::Kind;
  std::vector<text::MessagePart>& parts = out.parts;
  const bool in_content = !parts.empty() && parts.back().kind == Kind::kContent;
  const bool elsewhere = !parts.empty() || reasoned || (choice.parser && choice.parser->in_reasoning());
  if (!job.keep_reasoning) std::erase_if(parts, [](const auto& part) { return part.kind == Kind::kReasoning; });
  for (const text::MessagePart& part : parts) {
    std::vector<engine::TokenLogprobs> tokens;
    if (choice.places && part.kind == Kind::kContent) tokens = choice.places->take(part.text);
    add_part(choice, index, part, tokens);
    if (choice.places) out.part_logprobs.push_back(std::move(tokens));
  }
  if (choice.places && !in_content && elsewhere) choice.places->drop();
}

void JobRun::State::add_part(Choice& choice, size_t index, const text::MessagePart& part,
                             const std::vector<engine::TokenLogprobs>& tokens) {
  using Kind = text::MessagePart::Kind;
  ChoiceAnswer& answer = choice.answer;
  std::vector<CallAnswer>& calls = answer.calls;
  switch (part.kind) {
    case Kind::kReasoning:
      answer.reasoning += part.text;
      append_item(answer.items, AnswerItem::Kind::kReasoning, part.text);
      break;
    case Kind::kContent: {
      answer.content += part.text;
      auto& logprobs = append_item(answer.items, AnswerItem::Kind::kContent, part.text).logprobs;
      logprobs.insert(logprobs.end(), tokens.begin(), tokens.end());
      break;
    }
    case Kind::kCallBegin:
      answer.items.push_back({.kind = AnswerItem::Kind::kCall, .call = calls.size()});
      calls.push_back({random_id(), part.text, "", false});
      start.call_ids[index].push_back(calls.back().id);
      break;
    case Kind::kArguments:
      if (!calls.empty()) calls.back().arguments += part.text;
      break;
    case Kind::kCallEnd:
      if (!calls.empty()) calls.back().malformed = part.malformed;
      break;
  }
}

void JobRun::State::take_prompt(size_t index, const engine::Event& event) {
  std::vector<engine::TokenLogprobs>& all = choices[index].answer.prompt_logprobs;
  all.insert(all.end(), event.logprobs.begin(), event.logprobs.end());
  JobEvent out;
  out.kind = JobEvent::Kind::kPrompt;
  out.choice = static_cast<int>(index);
  out.logprobs = event.logprobs;
  if (listener.event) listener.event(out);
}

void JobRun::State::take_text(size_t index, const engine::Event& event) {
  Choice& choice = choices[index];
  JobEvent out;
  out.choice = static_cast<int>(index);
  out.ids = event.ids;
  out.logprobs = event.logprobs;
  const bool reasoned = choice.parser && choice.parser->in_reasoning();
  if (choice.parser)
    choice.parser->push(event.text, out.parts);
  else if (!event.text.empty())
    out.parts.push_back({.kind = text::MessagePart::Kind::kContent, .text = event.text});
  if (reasoned) choice.answer.reasoning_tokens += static_cast<int64_t>(event.ids.size());
  choice.answer.ids.insert(choice.answer.ids.end(), event.ids.begin(), event.ids.end());
  choice.answer.logprobs.insert(choice.answer.logprobs.end(), event.logprobs.begin(), event.logprobs.end());
  if (choice.places) choice.places->add(event.logprobs);
  give(choice, index, reasoned, out);
  if (listener.event) listener.event(out);
}

void JobRun::State::end_choice(size_t index, const engine::Event& event) {
  Choice& choice = choices[index];
  if (choice.ended) return;
  choice.ended = true;
  ChoiceAnswer& answer = choice.answer;
  answer.reason = event.reason;
  answer.stop_text = event.stop_text;
  answer.timings = event.timings;
  answer.cache = event.cache;
  answer.seed = event.seed;
  answer.max_tokens_clamped = event.max_tokens_clamped;
  if (event.error && !error) error = event.error;
  if (event.reason == engine::FinishReason::kCancelled && !error) {
    const std::scoped_lock lock(mutex);
    if (reason)
      error = *reason;
    else if (!stopped)
      error = cancelled("", "the request was cancelled");
  }
  JobEvent out;
  out.kind = JobEvent::Kind::kText;
  out.choice = static_cast<int>(index);
  if (choice.parser) choice.parser->finish(out.parts);
  give(choice, index, false, out);
  if (!out.parts.empty() && listener.event) listener.event(out);
  out = {};
  out.kind = JobEvent::Kind::kEnd;
  out.choice = static_cast<int>(index);
  if (listener.event) listener.event(out);
  if (--open_choices == 0) finish();
}

void JobRun::State::finish() {
  done = true;
  if (error) {
    if (listener.failed) listener.failed(*error);
    listener = {};
    return;
  }
  JobAnswer answer;
  for (Choice& choice : choices) answer.choices.push_back(std::move(choice.answer));
  for (size_t i = 0; i < answer.choices.size(); ++i) {
    const ChoiceAnswer& choice = answer.choices[i];
    if (i % static_cast<size_t>(job.n) == 0) {
      answer.prompt_tokens += choice.timings.prompt_tokens;
      answer.cached_tokens += choice.timings.cached_tokens;
    }
    answer.completion_tokens += choice.timings.generated_tokens;
    answer.reasoning_tokens += choice.reasoning_tokens;
  }
  answer.x_vedette = report_job(*model, job, start, answer);
  if (listener.done) listener.done(answer);
  listener = {};
}

}  // namespace vedette::server
