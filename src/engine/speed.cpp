#include "engine/speed.h"

#include <algorithm>
#include <chrono>
#include <memory>
#include <optional>
#include <utility>

#include "base/error.h"
#include "cache/kv_cache.h"
#include "engine/request.h"
#include "engine/runner.h"
#include "engine/step_builder.h"

namespace vedette::engine {
namespace {

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

// What a sequence's events have told.
struct Heard {
  int64_t tokens = 0;
  bool finished = false;
  std::optional<Error> error;
};

// A Runner with the sequences of one measurement.
class Race {
 public:
  Race(models::Decoder& decoder, int prefill_chunk, int sequences, const std::function<Status()>& health)
      : decoder_(decoder),
        heard_(static_cast<size_t>(sequences)),
        runner_(decoder,
                {.max_rows = decoder.config().max_rows, .max_sequences = sequences, .prefill_chunk = prefill_chunk},
                {.prefix = {.enabled = false}, .health = health, .on_finish = {}}) {}

  Status add(size_t index, std::vector<int32_t> prompt, int64_t max_tokens) {
    GenerateRequest request;
    const int64_t context = static_cast<int64_t>(prompt.size()) + max_tokens + 1;
    request.prompt = std::move(prompt);
    request.max_tokens = max_tokens;
    request.ignore_eos = true;
    request.sampling.seed = 0;  // greedy; no need to draw one
    request.cache.enabled = false;
    Heard& heard = heard_[index];
    auto sink = [&heard](const Event& event) {
      heard.tokens += static_cast<int64_t>(event.ids.size());
      heard.finished |= event.kind == Event::Kind::kFinished;
      if (event.error) heard.error = event.error;
    };
    const RequestLimits limits{
        .vocab_size = decoder_.spec().vocab_size, .context_length = context, .eos = {}, .tokenizer = nullptr};
    VEDETTE_ASSIGN_OR_RETURN(std::unique_ptr<Sequence> sequence,
                             make_sequence(std::move(request), std::move(sink), limits));
    sequence->id = index + 1;
    runner_.add(std::move(sequence));
    return ok_status();
  }

  // Steps until sequence `index` has drawn so many tokens or has finished.
  Status run_until(size_t index, int64_t tokens) {
    while (heard_[index].tokens < tokens && !heard_[index].finished) {
      if (!runner_.step()) return internal_error("", "nothing runs while a measurement waits for tokens");
      for (const Heard& heard : heard_)
        if (heard.error) return *heard.error;
    }
    return ok_status();
  }

  void set_paused(size_t index, bool paused) { runner_.set_paused(index + 1, paused); }
  bool preempted() const { return runner_.preemptions() > 0; }

 private:
  models::Decoder& decoder_;
  std::vector<Heard> heard_;
  Runner runner_;
};

}  // namespace

SpeedMeter::SpeedMeter(models::Decoder& decoder, int prefill_chunk, uint64_t seed, std::function<Status()> health)
    : decoder_(decoder), prefill_chunk_(prefill_chunk), state_(seed), health_(std::move(health)) {}

// SplitMix64 (Steele, Lea, Flood 2014).
std::vector<int32_t> SpeedMeter::random_ids(int64_t count) {
  std::vector<int32_t> ids(static_cast<size_t>(count));
  const auto vocab_size = static_cast<uint64_t>(decoder_.spec().vocab_size);
  for (int32_t& id : ids) {
    uint64_t z = state_ += 0x9E3779B97F4A7C15u;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    id = static_cast<int32_t>((z ^ (z >> 31)) % vocab_size);
  }
  return ids;
}

Result<double> SpeedMeter::prefill(int64_t tokens) {
  Race race(decoder_, prefill_chunk_, 1, health_);
  VEDETTE_RETURN_IF_ERROR(race.add(0, random_ids(tokens), 0));
  const auto start = Clock::now();
  VEDETTE_RETURN_IF_ERROR(race.run_until(0, 1));
  return seconds_since(start);
}

Result<double> SpeedMeter::decode(int64_t tokens, int64_t depth, int sequences) {
  Race race(decoder_, prefill_chunk_, sequences, health_);
  // One after the other each computes its prompt and draws one token, then waits for the rest.
  const auto count = static_cast<size_t>(sequences);
  for (size_t i = 0; i < count; ++i) {
    VEDETTE_RETURN_IF_ERROR(race.add(i, random_ids(std::max<int64_t>(depth, 1)), tokens + 1));
    VEDETTE_RETURN_IF_ERROR(race.run_until(i, 1));
    race.set_paused(i, true);
  }
  for (size_t i = 0; i < count; ++i) race.set_paused(i, false);
  const auto start = Clock::now();
  for (size_t i = 0; i < count; ++i) VEDETTE_RETURN_IF_ERROR(race.run_until(i, tokens + 1));
  const double seconds = seconds_since(start);
  if (race.preempted())
    return out_of_budget("sequences", "the K/V pool does not hold {} sequences of {} tokens together", sequences,
                         decode_context(tokens, depth));
  return seconds;
}

Result<std::vector<std::vector<double>>> SpeedMeter::rows(std::span<const int64_t> rows, int64_t depth,
                                                          int repetitions) {
  const int64_t most = rows.empty() ? 0 : *std::ranges::max_element(rows);
  if (most < 1 || most > decoder_.config().max_logit_rows)
    return invalid_request("rows", "a step of {} rows with logits, must be from 1 to {}", most,
                           decoder_.config().max_logit_rows);
  cache::KvCache cache(kv_layout(decoder_));
  cache::SequenceBlocks blocks;
  StepBuilder builder;
  const std::vector<int32_t> ids = random_ids(depth + most);
  const auto step = [&](int64_t first, int64_t count, int64_t first_logits) -> Status {
    if (!cache.reserve(blocks, first + count))
      return out_of_budget("rows", "{} tokens do not fit the K/V pool", first + count);
    builder.clear();
    builder.append(blocks, std::span(ids).subspan(static_cast<size_t>(first), static_cast<size_t>(count)), first,
                   first_logits);
    VEDETTE_RETURN_IF_ERROR(decoder_.run(builder.step()));
    return health_ ? health_() : ok_status();
  };
  for (int64_t done = 0; done < depth;) {
    const int64_t count = std::min<int64_t>(prefill_chunk_, depth - done);
    VEDETTE_RETURN_IF_ERROR(step(done, count, depth));
    done += count;
    cache.free_outside_window(blocks, done);
  }
  // The same positions again and again: a step writes the K/V that the one before it wrote.
  std::vector<std::vector<double>> seconds(rows.size());
  for (int repetition = -1; repetition < repetitions; ++repetition) {  // the first is a warm-up
    for (size_t i = 0; i < rows.size(); ++i) {
      const auto start = Clock::now();
      for (int n = 0; n < kStepsPerSample; ++n) VEDETTE_RETURN_IF_ERROR(step(depth, rows[i], depth));
      if (repetition >= 0) seconds[i].push_back(seconds_since(start) / kStepsPerSample);
    }
  }
  return seconds;
}

}  // namespace vedette::engine
