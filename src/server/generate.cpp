#include "server/generate.h"

#include <algorithm>
#include <atomic>
#include <mutex>
#include <optional>
#include <utility>

#include "base/error.h"
#include "base/utf8.h"
#include "server/job_run.h"
#include "server/prompt_builder.h"

namespace vedette::server {
namespace {

// Below what the template engine reads, so that the body is refused and not a template blamed.
constexpr int kMostBodyDepth = 100;

// One answer under way. The writer, the responder and the stream's copy are touched under `mutex_`.
class Answer final : public LiveJob, public std::enable_shared_from_this<Answer> {
 public:
  Answer(ServerCore& core, const Dialect& dialect, const HttpRequest& request, std::shared_ptr<Responder> responder,
         std::unique_ptr<AnswerWriter> writer, std::shared_ptr<JobRun> run, bool stream, std::string scope)
      : core_(core),
        dialect_(dialect),
        request_(request),
        responder_(std::move(responder)),
        writer_(std::move(writer)),
        run_(std::move(run)),
        stream_(stream),
        scope_(std::move(scope)),
        id_(writer_->answer_id(run_->info())),
        number_(core.events->next_request()) {
    if (const std::string* id = request_.header("x-conversation-id"); id != nullptr && stream_ && !id->empty())
      conversation_ = *id;
    request_.body.clear();
  }

  void begin() {
    const auto self = shared_from_this();
    last_ms_ = started_ms_ = LiveJobs::now_ms();
    core_.jobs.add(self);
    if (!conversation_.empty())
      core_.streams.open(scope_, conversation_, [run = std::weak_ptr<JobRun>(run_)] {
        if (const auto held = run.lock()) held->cancel();
      });
    if (stream_) {
      const std::scoped_lock lock(mutex_);
      responder_->begin_stream(200, "text/event-stream", headers());
      std::string out;
      writer_->begin(run_->info(), out);
      write(std::move(out));
      responder_->on_drained(core_.settings.most_unsent_bytes / 4, [weak = weak_from_this()] {
        if (const auto held = weak.lock()) held->resume();
      });
    }
    // A client that is gone is nobody's to answer; resumable streams go on without it.
    responder_->on_closed([weak = weak_from_this()] {
      if (const auto held = weak.lock()) held->client_gone();
    });
    run_->listen({[self](const JobEvent& event) { self->event(event); },
                  [self](const JobAnswer& answer) { self->done(answer); },
                  [self](const Error& error) { self->failed(error); }});
  }

  void tick(int64_t now_ms) override {
    if (run_->finished()) return;
    if (core_.settings.decode_timeout_ms > 0 && !paused_ && run_->idle_ms() > core_.settings.decode_timeout_ms)
      run_->fail(internal_error("", "no token came for {} ms; the request was ended by the watchdog (--decode-timeout)",
                                core_.settings.decode_timeout_ms));
    if (!stream_ || core_.settings.sse_ping_ms < 0) return;
    const std::scoped_lock lock(mutex_);
    if (ended_ || now_ms - last_ms_ < core_.settings.sse_ping_ms) return;
    std::string out;
    writer_->keep_alive(out);
    write(std::move(out));
  }

  void abort(const Error& error) override { run_->fail(error); }

  bool cancel(const std::string& scope, const std::string& id, const Told& told) override {
    if (id_.empty() || id != id_ || scope != scope_) return false;
    {
      const std::scoped_lock lock(mutex_);
      if (ended_) return false;
      cancelled_by_.push_back(told);
    }
    run_->stop();
    return true;
  }

  std::optional<bool> end_reasoning(std::string_view id, std::string_view scope) override {
    if (scope != scope_ || &dialect_ != &kChatDialect || id != chat_id(run_->info()) || run_->finished())
      return std::nullopt;
    return run_->end_reasoning();
  }

 private:
  static HeaderList headers() { return {{"Cache-Control", "no-cache"}, {"X-Accel-Buffering", "no"}}; }

  void write(std::string out) {
    if (out.empty()) return;
    last_ms_ = LiveJobs::now_ms();
    if (!conversation_.empty()) core_.streams.append(scope_, conversation_, out);
    responder_->write(std::move(out));
    if (!paused_ && conversation_.empty() && responder_->unsent_bytes() > core_.settings.most_unsent_bytes) {
      paused_ = true;
      run_->pause();
      // What was unsent may have drained before the flag was up.
      if (responder_->unsent_bytes() <= core_.settings.most_unsent_bytes / 4) resume();
    }
  }

  void resume() {
    if (paused_.exchange(false)) run_->resume();
  }

  void client_gone() {
    if (run_->finished()) return;
    if (!conversation_.empty()) return;
    ++core_.counters.cancelled;
    run_->cancel();
  }

  void event(const JobEvent& event) {
    if (event.kind == JobEvent::Kind::kProgress) core_.events->prefill(number_, event.prefilled, event.prompt_tokens);
    if (!stream_) return;
    const std::scoped_lock lock(mutex_);
    std::string out;
    writer_->event(event, run_->info(), out);
    write(std::move(out));
  }

  void done(const JobAnswer& answer) {
    const std::scoped_lock lock(mutex_);
    ended_ = true;
    writer_->completed(run_->info(), answer);
    core_.events->finished(number_, dialect_.name, run_->info(), answer, LiveJobs::now_ms() - started_ms_);
    if (stream_) {
      std::string out;
      writer_->finish(run_->info(), answer, out);
      write(std::move(out));
      end_stream();
    } else {
      send_json(writer_->body(run_->info(), answer), 200, {}, responder_);
    }
    for (const Told& told : cancelled_by_) told(writer_->body(run_->info(), answer));
  }

  void failed(const Error& error) {
    const std::scoped_lock lock(mutex_);
    ended_ = true;
    if (error.kind != ErrorKind::kCancelled) ++core_.counters.failures;
    core_.events->failed(number_, dialect_.name, error, LiveJobs::now_ms() - started_ms_);
    if (stream_) {
      std::string out;
      writer_->fail(error, out);
      write(std::move(out));
      end_stream();
    } else {
      send_error(&dialect_, error, request_, responder_, {});
    }
    for (const Told& told : cancelled_by_) told(error);
  }

  void end_stream() {
    if (!conversation_.empty()) core_.streams.finish(scope_, conversation_);
    responder_->end();
  }

  ServerCore& core_;
  const Dialect& dialect_;
  HttpRequest request_;
  std::shared_ptr<Responder> responder_;
  std::mutex mutex_;
  std::unique_ptr<AnswerWriter> writer_;
  std::shared_ptr<JobRun> run_;
  const bool stream_;
  const std::string scope_;
  const std::string id_;  // by which it may be cancelled
  const int64_t number_;  // of the request, for those who watch
  std::string conversation_;
  int64_t started_ms_ = 0, last_ms_ = 0;
  bool ended_ = false;
  std::vector<Told> cancelled_by_;
  std::atomic<bool> paused_{false};
};

struct Admitted {
  std::shared_ptr<ServedModel> model;
  Translation translation;
  std::string scope;
};

// More than the queue can ever hold would be told to come back for ever.
Status check_choices(const ServerCore& core, const ServedModel& model, const GenerateJob& job) {
  const auto choices = static_cast<int64_t>(job.prompts.size()) * job.n;
  const int64_t room = model.engine->most_requests();
  if (choices <= std::min<int64_t>(core.settings.max_choices, room)) return ok_status();
  const char* field = job.n > 1 ? "n" : "prompt";
  if (choices > room)
    return invalid_request(field,
                           "{}: {} choices were asked for (prompts times n), slots and queue hold {} together; ask for "
                           "fewer, or raise --parallel or --max-queue-depth",
                           field, choices, room);
  return invalid_request(field,
                         "{}: {} choices were asked for (prompts times n), one request may have {}; ask for fewer",
                         field, choices, core.settings.max_choices);
}

Result<Admitted> translate(ServerCore& core, const Dialect& dialect, const HttpRequest& request) {
  Admitted out;
  core.counters.last_request_ms = LiveJobs::now_ms();
  VEDETTE_ASSIGN_OR_RETURN(out.model, core.models.wake());
  VEDETTE_ASSIGN_OR_RETURN(const Json body, read_body(request));
  out.scope = scope_of(request, core.settings.gate);
  const ServedModel& model = *out.model;
  const std::shared_ptr<const GenerationDefaults> defaults = model.defaults.load();
  const DialectContext context{.request = request,
                               .model = model.id,
                               .tokenizer = model.tokenizer(),
                               .vocab_size = model.vocab_size(),
                               .context_length = model.engine->context_length(),
                               .defaults = defaults->sampling,
                               .has_template = model.chat_template.has_value(),
                               .responses = &core.responses,
                               .scope = out.scope};
  VEDETTE_ASSIGN_OR_RETURN(out.translation, dialect.translate(body, context));
  GenerateJob& job = out.translation.job;
  VEDETTE_RETURN_IF_ERROR(check_choices(core, model, job));
  if (job.stop.empty()) job.stop = defaults->stop;
  if (defaults->ignore_eos) job.ignore_eos = true;
  if (job.thinking_budget < 0) job.thinking_budget = defaults->thinking_budget;
  if (job.loop.max_pattern == 0) job.loop = defaults->loop;
  return out;
}

}  // namespace

Result<Json> read_body(const HttpRequest& request) {
  auto body =
      parse_json(request.body, "request body", {.max_bytes = request.body.size() + 1, .max_depth = kMostBodyDepth});
  if (!body.ok()) {
    Error error = std::move(body).error();
    error.kind = ErrorKind::kInvalidRequest;
    return error;
  }
  if (!body->is_object())
    return invalid_request("", "request body: expected a JSON object, found {}; send one", body->type_name());
  return body;
}

void send_json(const Json& body, int status, const HeaderList& headers, const std::shared_ptr<Responder>& responder) {
  HttpResponse response;
  response.status = status;
  response.body = body.dump();
  // Texts of requests and single tokens may hold bytes that are no UTF-8.
  if (!is_valid_utf8(response.body)) response.body = repair_utf8(response.body);
  response.headers = headers;
  responder->send(std::move(response));
}

void send_error(const Dialect* dialect, const Error& error, const HttpRequest&,
                const std::shared_ptr<Responder>& responder, const HeaderList& headers) {
  const int status = status_of(error);
  HeaderList all = headers;
  if (status == 503) all.emplace_back("Retry-After", "1");
  send_json(dialect != nullptr ? dialect->error_body(error, status) : openai_error(error, status), status, all,
            responder);
}

void generate(ServerCore& core, const Dialect& dialect, const HttpRequest& request,
              const std::shared_ptr<Responder>& responder) {
  ++core.counters.requests;
  auto admitted = translate(core, dialect, request);
  if (!admitted.ok()) return send_error(&dialect, admitted.error(), request, responder, {});
  const bool stream = admitted->translation.job.stream;
  auto run = JobRun::start(admitted->model, std::move(admitted->translation.job), admitted->scope, core.executor);
  if (!run.ok()) {
    if (run.error().kind == ErrorKind::kUnavailable) ++core.counters.refused_busy;
    return send_error(&dialect, run.error(), request, responder, {});
  }
  const auto answer =
      std::make_shared<Answer>(core, dialect, request, responder, std::move(admitted->translation.writer),
                               std::move(*run), stream, std::move(admitted->scope));
  answer->begin();
}

void count_tokens(ServerCore& core, const Dialect& dialect, const HttpRequest& request,
                  const std::shared_ptr<Responder>& responder) {
  auto admitted = translate(core, dialect, request);
  if (!admitted.ok()) return send_error(&dialect, admitted.error(), request, responder, {});
  int64_t tokens = 0;
  for (const JobPrompt& prompt : admitted->translation.job.prompts) {
    auto built = build_prompt(*admitted->model, prompt, admitted->translation.job);
    if (!built.ok()) return send_error(&dialect, built.error(), request, responder, {});
    tokens += static_cast<int64_t>(built->ids.size());
  }
  Json body = Json::object();
  if (&dialect == &kResponsesDialect) body.set("object", "response.input_tokens");
  body.set("input_tokens", tokens);
  send_json(body, 200, {}, responder);
}

}  // namespace vedette::server
