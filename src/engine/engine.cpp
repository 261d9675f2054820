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
  if (config.grant_interval < 0)
    return invalid_request("grant_interval", "grant_interval is {}, must not be negative", config.grant_interval);
  return ok_status();
}

}  // namespace

struct Engine::Impl {
  Impl(std::unique_ptr<models::Decoder> loaded, text::Tokenizer loaded_tokenizer, std::vector<int32_t> end_tokens,
       const SchedulerConfig& scheduler, int64_t context, std::function<Status()> health)
      : decoder(std::move(loaded)),
        tokenizer(std::move(loaded_tokenizer)),
        eos(std::move(end_tokens)),
        context_length(context),
        runner(*decoder, scheduler, std::move(health)) {}

  struct Message {
    std::unique_ptr<Sequence> sequence;  // null: cancel `id`
    RequestId id = 0;
  };

  void post(Message message) {
    {
      const std::scoped_lock lock(mutex);
      messages.push_back(std::move(message));
    }
    wake.notify_one();
  }

  void run() {
    std::vector<Message> taken;
    while (true) {
      {
        std::unique_lock lock(mutex);
        wake.wait(lock, [&] { return stopping || !messages.empty() || !runner.idle(); });
        taken.swap(messages);
        if (stopping) {
          lock.unlock();
          handle(taken);
          runner.cancel_all();
          return;
        }
      }
      handle(taken);
      runner.step();
    }
  }

  void handle(std::vector<Message>& taken) {
    for (Message& message : taken) {
      if (message.sequence)
        runner.add(std::move(message.sequence));
      else
        runner.cancel(message.id);
    }
    taken.clear();
  }

  std::unique_ptr<models::Decoder> decoder;
  const text::Tokenizer tokenizer;
  const std::vector<int32_t> eos;
  const int64_t context_length;
  Runner runner;  // the thread's alone

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
  auto impl = std::make_unique<Impl>(std::move(decoder), std::move(tokenizer), std::move(eos), scheduler, capacity,
                                     config.health);
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
  const RequestId id = impl_->next_id++;
  sequence->id = id;
  impl_->post({std::move(sequence), id});
  return id;
}

void Engine::cancel(RequestId id) {
  impl_->post({nullptr, id});
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

}  // namespace vedette::engine
