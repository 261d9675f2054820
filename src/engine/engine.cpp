#include "engine/engine.h"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <mutex>
#include <thread>

#include "base/error.h"
#include "cache/kv_cache.h"
#include "engine/request.h"
#include "engine/runner.h"

namespace vedette::engine {

const char* to_string(FinishReason reason) {
  switch (reason) {
    case FinishReason::kStop:
      return "stop";
    case FinishReason::kLength:
      return "length";
    case FinishReason::kCancelled:
      return "cancelled";
    case FinishReason::kError:
      return "error";
  }
  return "error";
}

namespace {

// Tokens that one sequence can reach with the whole K/V pool to itself.
int64_t pool_capacity(const models::Decoder& decoder, int64_t chunk, int64_t wanted) {
  int64_t capacity = wanted;
  for (const cache::KvGroupLayout& group : kv_layout(decoder)) {
    // A sliding group that holds its window and a chunk carries any length.
    if (group.n_blocks < cache::most_blocks(group.window, wanted, chunk))
      capacity = std::min(capacity, group.n_blocks * ops::kBlockTokens);
  }
  return capacity;
}

Status check_config(const models::Decoder& decoder, const EngineConfig& config) {
  const models::DecoderConfig& loaded = decoder.config();
  if (config.max_sequences < 1 || config.max_sequences > loaded.max_logit_rows)
    return invalid_request("max_sequences", "max_sequences is {}, must be from 1 to {} (logit rows of a step)",
                           config.max_sequences, loaded.max_logit_rows);
  if (config.prefill_chunk < 1 || config.prefill_chunk + config.max_sequences - 1 > loaded.max_rows)
    return invalid_request("prefill_chunk", "prefill_chunk is {}, must be from 1 to {} (rows of a step)",
                           config.prefill_chunk, loaded.max_rows - config.max_sequences + 1);
  const auto not_negative = [](const char* field, int64_t value) -> Status {
    if (value >= 0) return ok_status();
    return invalid_request(field, "{} is {}, must not be negative", field, value);
  };
  VEDETTE_RETURN_IF_ERROR(not_negative("grant_interval", config.grant_interval));
  VEDETTE_RETURN_IF_ERROR(not_negative("max_waiting", config.max_waiting));
  VEDETTE_RETURN_IF_ERROR(not_negative("prefix_cache_tokens", config.prefix_cache_tokens));
  if (config.snapshot_interval < 1)
    return invalid_request("snapshot_interval", "snapshot_interval is {}, must be at least 1",
                           config.snapshot_interval);
  if (!(config.chunk_ms >= 0))
    return invalid_request("chunk_ms", "chunk_ms is {}, must not be negative", config.chunk_ms);
  return ok_status();
}

}  // namespace

struct Engine::Impl {
  Impl(std::unique_ptr<models::Decoder> loaded, text::Tokenizer loaded_tokenizer, std::vector<int32_t> end_tokens,
       const SchedulerConfig& scheduler, int64_t context, const EngineConfig& config)
      : decoder(std::move(loaded)),
        tokenizer(std::move(loaded_tokenizer)),
        eos(std::move(end_tokens)),
        context_length(context),
        max_running(config.max_sequences),
        max_waiting(config.max_waiting),
        runner(*decoder, scheduler, runner_options(config)) {}

  struct Message {
    enum class Kind : uint8_t { kAdd, kCancel, kPause, kResume, kResetCache } kind = Kind::kAdd;
    RequestId id = 0;
    std::unique_ptr<Sequence> sequence;  // kAdd
  };

  RunnerOptions runner_options(const EngineConfig& config) {
    RunnerOptions options;
    options.prefix = {config.prefix_cache, config.prefix_cache_tokens, config.snapshot_interval};
    options.chunk_ms = config.chunk_ms;
    options.health = config.health;
    options.on_finish = [this] { --live; };
    return options;
  }

  // Takes a place among those that run and wait.
  Status enter() {
    int64_t there = live.load();
    do {
      if (there >= max_running + max_waiting)
        return unavailable("", "the queue is full: {} requests wait (limit {}); try again later", there - max_running,
                           max_waiting);
    } while (!live.compare_exchange_weak(there, there + 1));
    return ok_status();
  }

  void post(Message message) {
    {
      const std::scoped_lock lock(mutex);
      messages.push_back(std::move(message));
    }
    wake.notify_one();
  }

  void run() {
    std::vector<Message> taken;
    bool progress = false;
    while (true) {
      {
        std::unique_lock lock(mutex);
        wake.wait(lock, [&] { return stopping || !messages.empty() || progress; });
        taken.swap(messages);
        if (stopping) {
          lock.unlock();
          handle(taken);
          runner.cancel_all();
          return;
        }
      }
      handle(taken);
      progress = runner.step();
    }
  }

  void handle(std::vector<Message>& taken) {
    if (taken.empty()) return;
    for (Message& message : taken) {
      switch (message.kind) {
        case Message::Kind::kAdd:
          runner.add(std::move(message.sequence));
          break;
        case Message::Kind::kCancel:
          runner.cancel(message.id);
          break;
        case Message::Kind::kPause:
        case Message::Kind::kResume:
          runner.set_paused(message.id, message.kind == Message::Kind::kPause);
          break;
        case Message::Kind::kResetCache:
          runner.reset_prefix_cache();
      }
    }
    taken.clear();
    runner.publish();
  }

  std::unique_ptr<models::Decoder> decoder;
  const text::Tokenizer tokenizer;
  const std::vector<int32_t> eos;
  const int64_t context_length;
  const int64_t max_running, max_waiting;
  std::atomic<int64_t> live{0};  // requests submitted and not finished
  Runner runner;                 // the thread's alone, but for its board

  std::atomic<RequestId> next_id{1};
  std::mutex mutex;  // messages, stopping
  std::condition_variable wake;
  std::vector<Message> messages;
  bool stopping = false;
  std::thread thread;
};

Result<std::unique_ptr<Engine>> Engine::start(std::unique_ptr<models::Decoder> decoder, text::Tokenizer tokenizer,
                                              std::vector<int32_t> eos, const EngineConfig& config) {
  VEDETTE_RETURN_IF_ERROR(check_config(*decoder, config));
  const int64_t wanted = config.context_length > 0 ? config.context_length : decoder->spec().context_length;
  const int64_t capacity = pool_capacity(*decoder, config.prefill_chunk, wanted);
  if (config.context_length > capacity)
    return out_of_budget("context_length",
                         "a context of {} tokens does not fit the K/V pool, which holds {} tokens; lower --ctx-size or "
                         "raise the K/V budget",
                         config.context_length, capacity);
  if (capacity < 2) return out_of_budget("context_length", "a context of {} tokens is of no use, 2 needed", capacity);
  const SchedulerConfig scheduler{.max_rows = decoder->config().max_rows,
                                  .max_sequences = config.max_sequences,
                                  .prefill_chunk = config.prefill_chunk,
                                  .grant_interval = config.grant_interval};
  auto impl =
      std::make_unique<Impl>(std::move(decoder), std::move(tokenizer), std::move(eos), scheduler, capacity, config);
  impl->thread = std::thread([raw = impl.get()] { raw->run(); });
  return std::unique_ptr<Engine>(new Engine(std::move(impl)));
}

Engine::Engine(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

Engine::~Engine() {
  {
    const std::scoped_lock lock(impl_->mutex);
    impl_->stopping = true;
  }
  impl_->wake.notify_one();
  impl_->thread.join();
}

Result<RequestId> Engine::submit(GenerateRequest request, EventSink sink) {
  const RequestLimits limits{impl_->decoder->spec().vocab_size, impl_->context_length, impl_->eos, &impl_->tokenizer};
  VEDETTE_ASSIGN_OR_RETURN(std::unique_ptr<Sequence> sequence,
                           make_sequence(std::move(request), std::move(sink), limits));
  VEDETTE_RETURN_IF_ERROR(impl_->enter());
  const RequestId id = impl_->next_id++;
  sequence->id = id;
  impl_->post({Impl::Message::Kind::kAdd, id, std::move(sequence)});
  return id;
}

void Engine::cancel(RequestId id) {
  impl_->post({Impl::Message::Kind::kCancel, id, nullptr});
}

void Engine::pause(RequestId id) {
  impl_->post({Impl::Message::Kind::kPause, id, nullptr});
}

void Engine::resume(RequestId id) {
  impl_->post({Impl::Message::Kind::kResume, id, nullptr});
}

void Engine::reset_prefix_cache() {
  impl_->post({Impl::Message::Kind::kResetCache, 0, nullptr});
}

EngineStats Engine::stats() const {
  return impl_->runner.board().read();
}

const text::Tokenizer& Engine::tokenizer() const {
  return impl_->tokenizer;
}
const models::DecoderSpec& Engine::spec() const {
  return impl_->decoder->spec();
}
int64_t Engine::context_length() const {
  return impl_->context_length;
}
int64_t Engine::most_requests() const {
  return impl_->max_running + impl_->max_waiting;
}

}  // namespace vedette::engine
