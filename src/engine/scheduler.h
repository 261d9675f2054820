// The scheduler: picks the rows of the next step. A pure function of plain state, so tests call what ships.
//
// Sequences stand in order of admission: higher priority first, then arrival. Every running sequence has its decode row
// in every step. A prefill (one at a time, but that a higher priority goes ahead) adds a chunk of rows to a step: at
// once when nothing decodes, else after grant_interval * rows / prefill_chunk steps without one. So a full chunk waits
// grant_interval steps, a short prompt less, and nobody starves. Where logits of the prompt are wanted, a chunk has no
// more of them than the decode rows leave.
//
// A waiting sequence is admitted, in order, when the K/V blocks of all its tokens can be had and one more for each
// running sequence. A paused one gets no rows and counts for nothing but the blocks it holds. When decode rows need
// blocks and none are left: prefixes that waiting sequences hold are dropped, then paused sequences go back to waiting
// and lose their blocks (nobody waits for their rows), then running ones: lowest priority, then least progress. One
// sequence alone always fits.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

namespace vedette::engine {

enum class Stage : uint8_t { kWaiting, kPrefill, kDecode };

struct SequenceState {
  Stage stage = Stage::kWaiting;
  int64_t known = 0;     // tokens: prompt and generated
  int64_t computed = 0;  // of them, those with K/V
  int64_t generated = 0;
  int64_t covered_blocks = 0;  // length of its block tables, the same in every group
  int64_t cut = 0;             // a chunk that begins before it ends there at the latest; 0: none
  int priority = 0;
  bool paused = false;
  int64_t first_logits = INT64_MAX;  // logits are wanted from this position on; those of the last token always are
};

struct GroupState {
  int window = 0;
  int64_t available = 0;  // blocks that are free or can be had for the asking
};

struct SchedulerConfig {
  int64_t max_rows = 512;       // of a step; more than max_sequences
  int64_t max_sequences = 8;    // decoded together; at most max_logit_rows
  int64_t max_logit_rows = 64;  // of a step
  int64_t prefill_chunk = 512;  // rows
  int64_t grant_interval = 16;  // steps
};

struct SchedulerState {
  std::vector<SequenceState> sequences;  // in order of admission
  std::vector<int64_t> held;             // [sequence, group]: blocks held
  std::vector<int64_t> freed;            // [sequence, group]: of them, those had back without it; empty: all
  std::vector<GroupState> groups;
  int64_t steps_since_prefill = 0;
  int64_t chunk_rows = 0;  // rows of a chunk for the time it may take; 0: prefill_chunk
};

struct Pick {
  size_t sequence = 0;
  int64_t rows = 0;        // the next `rows` tokens without K/V
  int64_t logit_rows = 0;  // the last of them, whose logits are wanted
  bool draws = false;      // the last row's logits give the next token
};

struct StepPlan {
  std::vector<size_t> dropped;    // waiting, lose the prefix they hold
  std::vector<size_t> preempted;  // back to waiting before the step
  std::vector<Pick> picks;        // decode rows first, then the chunk; empty: nothing can run
  std::optional<size_t> stuck;    // nothing can run, and this one never fits
  int64_t steps_since_prefill = 0;

  // Blocks changed hands, so another plan may find more.
  bool gave_back() const { return !dropped.empty() || !preempted.empty(); }
};

// Fills `plan`, whose memory is re-used.
void plan_step(const SchedulerConfig& config, const SchedulerState& state, StepPlan& plan);

}  // namespace vedette::engine
