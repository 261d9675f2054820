#include "engine/evaluate.h"

#include <algorithm>

#include "base/error.h"
#include "cache/kv_cache.h"
#include "engine/runner.h"
#include "engine/step_builder.h"

namespace vedette::engine {

Status evaluate(models::Decoder& decoder, std::span<const int32_t> ids, int chunk, const LogitsCallback& callback,
                int64_t first_row, const std::function<Status()>& health) {
  if (ids.empty()) return invalid_request("ids", "no token ids to evaluate");
  const int64_t vocab_size = decoder.spec().vocab_size;
  for (size_t i = 0; i < ids.size(); ++i)
    if (ids[i] < 0 || ids[i] >= vocab_size)
      return invalid_request("ids", "ids[{}] is token id {}, must be from 0 to {}", i, ids[i], vocab_size - 1);
  if (chunk < 1) return invalid_request("chunk", "chunk is {}, must be at least 1", chunk);

  cache::KvCache cache(kv_layout(decoder));
  cache::SequenceBlocks blocks;
  StepBuilder builder;
  const int64_t total = static_cast<int64_t>(ids.size());
  for (int64_t done = 0; done < total;) {
    int64_t rows = std::min<int64_t>({chunk, decoder.config().max_rows, total - done});
    // Rows with logits are fewer: a chunk that reaches them ends with the last that has room.
    const int64_t last = std::max(done, first_row) + decoder.config().max_logit_rows;
    rows = std::min(rows, last - done);
    if (!cache.reserve(blocks, done + rows))
      return out_of_budget("ids", "{} tokens do not fit the K/V pool; lower the length or raise --ctx-size", total);
    builder.clear();
    builder.append(blocks, ids.subspan(static_cast<size_t>(done), static_cast<size_t>(rows)), done, first_row);
    VEDETTE_RETURN_IF_ERROR(decoder.run(builder.step()));
    if (health) VEDETTE_RETURN_IF_ERROR(health());
    int64_t slot = 0;
    for (int64_t row = std::max(done, first_row); row < done + rows; ++row)
      VEDETTE_RETURN_IF_ERROR(callback(row, decoder.logits(slot++)));
    done += rows;
    cache.free_outside_window(blocks, done);
  }
  return ok_status();
}

}  // namespace vedette::engine
