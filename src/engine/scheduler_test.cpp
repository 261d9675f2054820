#include "engine/scheduler.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "cache/kv_cache.h"

namespace vedette::engine {
namespace {

SequenceState decoding(int64_t known, int64_t generated = 1) {
  return {Stage::kDecode, known, known - 1, generated, cache::blocks_of(known - 1)};
}
SequenceState prefilling(int64_t known, int64_t computed) {
  return {Stage::kPrefill, known, computed, 0, cache::blocks_of(computed)};
}
SequenceState waiting(int64_t known) {
  return {Stage::kWaiting, known, 0, 0, 0};
}

SchedulerState state_of(std::vector<SequenceState> sequences, int64_t available = 1000, int64_t since = 0) {
  SchedulerState state;
  for (const SequenceState& sequence : sequences) state.held.push_back(sequence.covered_blocks);
  state.sequences = std::move(sequences);
  state.groups = {{0, available}};
  state.steps_since_prefill = since;
  return state;
}

StepPlan plan(const SchedulerConfig& config, const SchedulerState& state) {
  StepPlan out;
  plan_step(config, state, out);
  return out;
}

const SchedulerConfig kConfig{.max_rows = 520, .max_sequences = 8, .prefill_chunk = 512, .grant_interval = 16};

TEST(Scheduler, NothingToDo) {
  EXPECT_TRUE(plan(kConfig, state_of({})).picks.empty());
}

TEST(Scheduler, PrefillRunsAtOnceWhenNothingDecodes) {
  const StepPlan out = plan(kConfig, state_of({waiting(1300)}));
  ASSERT_EQ(out.picks.size(), 1u);
  EXPECT_EQ(out.picks[0].rows, 512);
  EXPECT_FALSE(out.picks[0].draws);
}

TEST(Scheduler, OnlyTheLastChunkDraws) {
  const StepPlan out = plan(kConfig, state_of({prefilling(1300, 1024)}));
  ASSERT_EQ(out.picks.size(), 1u);
  EXPECT_EQ(out.picks[0].rows, 276);
  EXPECT_TRUE(out.picks[0].draws);
}

// Where logits of the prompt are wanted, a chunk ends with the last that the step has room for.
TEST(Scheduler, AChunkHasNoMoreLogitRowsThanTheDecodeRowsLeave) {
  SchedulerConfig config = kConfig;
  config.max_logit_rows = 10;
  SequenceState asked = prefilling(200, 100);
  asked.first_logits = 100;
  const auto check = [&](std::vector<SequenceState> sequences, int64_t rows, int64_t logit_rows, bool draws) {
    const StepPlan out = plan(config, state_of(std::move(sequences)));
    const Pick& chunk = out.picks.back();
    EXPECT_EQ(chunk.rows, rows);
    EXPECT_EQ(chunk.logit_rows, logit_rows);
    EXPECT_EQ(chunk.draws, draws);
  };
  check({asked}, 10, 10, false);
  check({decoding(50), decoding(60), asked}, 8, 8, false);
  asked.first_logits = 130;  // those before were told, and are computed again after a preemption
  check({asked}, 40, 10, false);
  asked.first_logits = 195;
  check({asked}, 100, 5, true);
  asked.first_logits = INT64_MAX;
  check({asked}, 100, 1, true);
}

TEST(Scheduler, AFullChunkWaitsForItsGrantAndDecodeRowsAreInEveryStep) {
  for (int64_t since = 0; since < 16; ++since) {
    const StepPlan out = plan(kConfig, state_of({decoding(50), decoding(60), prefilling(2000, 512)}, 1000, since));
    ASSERT_EQ(out.picks.size(), 2u) << since;
    EXPECT_EQ(out.steps_since_prefill, since + 1);
  }
  const StepPlan out = plan(kConfig, state_of({decoding(50), decoding(60), prefilling(2000, 512)}, 1000, 16));
  ASSERT_EQ(out.picks.size(), 3u);
  EXPECT_EQ(out.picks[2].rows, 512);
  EXPECT_EQ(out.steps_since_prefill, 0);
}

TEST(Scheduler, AShortPromptWaitsLess) {
  EXPECT_EQ(plan(kConfig, state_of({decoding(50), waiting(20)})).picks.size(), 2u);
  EXPECT_EQ(plan(kConfig, state_of({decoding(50), waiting(64)}, 1000, 1)).picks.size(), 1u);
  EXPECT_EQ(plan(kConfig, state_of({decoding(50), waiting(64)}, 1000, 2)).picks.size(), 2u);
}

TEST(Scheduler, OnePrefillAtATimeInOrderOfArrival) {
  const StepPlan out = plan(kConfig, state_of({waiting(10), waiting(20)}));
  ASSERT_EQ(out.picks.size(), 1u);
  EXPECT_EQ(out.picks[0].sequence, 0u);
  const StepPlan parked = plan(kConfig, state_of({waiting(10), prefilling(20, 5)}));
  ASSERT_EQ(parked.picks.size(), 1u);
  EXPECT_EQ(parked.picks[0].sequence, 1u);
}

TEST(Scheduler, MaxSequencesHoldsOthersBack) {
  SchedulerConfig config = kConfig;
  config.max_sequences = 2;
  const StepPlan out = plan(config, state_of({decoding(50), decoding(50), waiting(10)}, 1000, 99));
  EXPECT_EQ(out.picks.size(), 2u);
}

TEST(Scheduler, AdmissionNeedsTheWholePromptAndRoomToGrow) {
  // 100 tokens: 4 blocks, and one more for each of the two sequences then running.
  EXPECT_EQ(plan(kConfig, state_of({decoding(50), waiting(100)}, 5, 99)).picks.size(), 1u);
  EXPECT_EQ(plan(kConfig, state_of({decoding(50), waiting(100)}, 6, 99)).picks.size(), 2u);
  EXPECT_EQ(plan(kConfig, state_of({waiting(100)}, 4)).picks.size(), 1u);
  EXPECT_TRUE(plan(kConfig, state_of({waiting(100)}, 3)).picks.empty());
}

TEST(Scheduler, ASlidingGroupNeedsOnlyItsWindowAndAChunk) {
  SchedulerState state = state_of({waiting(100000)}, 4000);
  state.groups.push_back({64, cache::most_blocks(64, 100000, kConfig.prefill_chunk)});
  state.held.assign(2, 0);
  EXPECT_EQ(plan(kConfig, state).picks.size(), 1u);
  --state.groups[1].available;
  EXPECT_TRUE(plan(kConfig, state).picks.empty());
}

TEST(Scheduler, WhenBlocksRunOutTheLeastProgressGoesBack) {
  // All three cross into a new block; two blocks are held by the one with least progress.
  const StepPlan out = plan(kConfig, state_of({decoding(65, 40), decoding(65, 3), decoding(65, 20)}, 0));
  EXPECT_EQ(out.preempted, std::vector<size_t>{1});
  ASSERT_EQ(out.picks.size(), 2u);
  EXPECT_EQ(out.picks[0].sequence, 0u);
  EXPECT_EQ(out.picks[1].sequence, 2u);
}

TEST(Scheduler, AParkedPrefillGoesBackFirst) {
  const StepPlan out = plan(kConfig, state_of({decoding(33, 1), prefilling(500, 64)}, 0, 5));
  EXPECT_EQ(out.preempted, std::vector<size_t>{1});
  EXPECT_EQ(out.picks.size(), 1u);
}

TEST(Scheduler, AChunkShrinksToTheBlocksThereAre) {
  const StepPlan out = plan(kConfig, state_of({decoding(33), prefilling(500, 40)}, 3, 99));
  ASSERT_EQ(out.picks.size(), 2u);
  EXPECT_EQ(out.picks[1].rows, (2 + 3 - 1) * 32 - 40);
}

TEST(Scheduler, AChunkEndsAtTheCutAndWithinItsTime) {
  SchedulerState state = state_of({prefilling(1300, 64)});
  state.sequences[0].cut = 192;
  EXPECT_EQ(plan(kConfig, state).picks[0].rows, 128);
  state.sequences[0].cut = 64;  // behind it
  EXPECT_EQ(plan(kConfig, state).picks[0].rows, 512);
  state.chunk_rows = 100;
  EXPECT_EQ(plan(kConfig, state).picks[0].rows, 100);
  state.chunk_rows = 1000;
  EXPECT_EQ(plan(kConfig, state).picks[0].rows, 512);
}

TEST(Scheduler, AnAdoptedPrefixCountsForAdmission) {
  // 100 tokens need four blocks; three are held already.
  SequenceState adopted = waiting(100);
  adopted.computed = 96;
  adopted.covered_blocks = 3;
  const StepPlan out = plan(kConfig, state_of({adopted}, 1));
  ASSERT_EQ(out.picks.size(), 1u);
  EXPECT_EQ(out.picks[0].rows, 4);
  EXPECT_TRUE(out.picks[0].draws);
}

TEST(Scheduler, PrefixesOfTheQueueAreDroppedBeforeAnybodyIsPreempted) {
  SequenceState adopted = waiting(500);
  adopted.computed = 64;
  adopted.covered_blocks = 2;
  const StepPlan out = plan(kConfig, state_of({decoding(65, 40), decoding(65, 3), adopted}, 0, 5));
  EXPECT_EQ(out.dropped, std::vector<size_t>{2});
  EXPECT_TRUE(out.preempted.empty());
  EXPECT_EQ(out.picks.size(), 2u);
  // Shared with others, so that nothing comes of it: then the least progress goes back.
  SchedulerState shared = state_of({decoding(65, 40), decoding(65, 3), adopted}, 0, 5);
  shared.freed = {2, 2, 0};
  EXPECT_EQ(plan(kConfig, shared).dropped, std::vector<size_t>{2});
  EXPECT_EQ(plan(kConfig, shared).preempted, std::vector<size_t>{1});
}

TEST(Scheduler, AHigherPriorityGoesAheadAndIsPreemptedLast) {
  SchedulerState state = state_of({waiting(20), prefilling(2000, 512)});
  EXPECT_EQ(plan(kConfig, state).picks[0].sequence, 1u);
  state.sequences[0].priority = 1;
  EXPECT_EQ(plan(kConfig, state).picks[0].sequence, 0u);

  state = state_of({decoding(65, 3), decoding(65, 40), decoding(65, 20)}, 0);
  state.sequences[0].priority = 1;
  EXPECT_EQ(plan(kConfig, state).preempted, std::vector<size_t>{2});
}

TEST(Scheduler, PausedSequencesGetNoRowsAndTakeNoSlot) {
  SchedulerConfig config = kConfig;
  config.max_sequences = 1;
  SchedulerState state = state_of({decoding(50), waiting(10)}, 1000, 99);
  EXPECT_EQ(plan(config, state).picks.size(), 1u);
  state.sequences[0].paused = true;
  const StepPlan out = plan(config, state);
  ASSERT_EQ(out.picks.size(), 1u);
  EXPECT_EQ(out.picks[0].sequence, 1u);
  // Resumed while another has its slot: one of them gets rows, in order of admission.
  state = state_of({decoding(50), decoding(60)}, 1000, 99);
  ASSERT_EQ(plan(config, state).picks.size(), 1u);
  EXPECT_EQ(plan(config, state).picks[0].sequence, 0u);
  // All paused: nothing to do, and nobody's fault.
  state.sequences[0].paused = state.sequences[1].paused = true;
  EXPECT_TRUE(plan(config, state).picks.empty());
  EXPECT_FALSE(plan(config, state).stuck);
}

TEST(Scheduler, PausedSequencesGiveTheirBlocksToThoseThatRunOrWait) {
  SchedulerState state = state_of({decoding(65, 3), decoding(65, 40)}, 0);
  state.sequences[1].paused = true;
  EXPECT_EQ(plan(kConfig, state).preempted, std::vector<size_t>{1});

  // 100 tokens need four blocks, two are free and the paused one has two.
  state = state_of({decoding(65, 3), waiting(100)}, 2);
  state.sequences[0].paused = true;
  const StepPlan out = plan(kConfig, state);
  EXPECT_EQ(out.preempted, std::vector<size_t>{0});
  EXPECT_TRUE(out.picks.empty());
  EXPECT_FALSE(out.stuck);
  // Where that would not help, it keeps them.
  state.groups[0].available = 1;
  EXPECT_EQ(plan(kConfig, state).preempted, std::vector<size_t>{0}) << "nothing runs, so there is nothing else to try";
  state.sequences.push_back(decoding(40));
  state.held.push_back(2);
  EXPECT_TRUE(plan(kConfig, state).preempted.empty());
}

TEST(Scheduler, OnlyWhatCannotFitAloneIsStuck) {
  EXPECT_EQ(plan(kConfig, state_of({waiting(100)}, 3)).stuck, 0u);
  EXPECT_FALSE(plan(kConfig, state_of({waiting(100)}, 4)).stuck);
  EXPECT_FALSE(plan(kConfig, state_of({})).stuck);
}

// A small engine of counters: whatever arrives, all invariants hold and everything finishes.
TEST(Scheduler, RandomLoadsKeepEveryInvariantAndFinish) {
  std::mt19937_64 random(1);
  for (int run = 0; run < 60; ++run) {
    const SchedulerConfig config{.max_rows = 40 + static_cast<int64_t>(random() % 100),
                                 .max_sequences = 1 + static_cast<int64_t>(random() % 8),
                                 .prefill_chunk = 1 + static_cast<int64_t>(random() % 90),
                                 .grant_interval = static_cast<int64_t>(random() % 20)};
    const int64_t context = 200;
    const int windows[] = {0, 1 + static_cast<int>(random() % 80)};
    std::vector<cache::KvGroupLayout> groups;
    for (const int window : windows)
      groups.push_back(
          {window, cache::most_blocks(window, context, config.prefill_chunk) + static_cast<int64_t>(random() % 6)});
    cache::KvCache cache(groups);
    struct Running {
      SequenceState state;
      int64_t limit;
      cache::SequenceBlocks blocks;
    };
    std::vector<Running> sequences;
    int64_t to_come = 20, since = 0, starving = 0;
    const bool pauses = run % 2 == 1;
    for (int64_t step = 0; to_come > 0 || !sequences.empty(); ++step) {
      ASSERT_LT(step, 100000) << "no progress";
      if (to_come > 0 && (sequences.empty() || random() % 10 == 0)) {
        const int64_t prompt = 1 + static_cast<int64_t>(random() % 150);
        sequences.push_back({waiting(prompt), prompt + 1 + static_cast<int64_t>(random() % 50), {}});
        --to_come;
      }
      for (Running& sequence : sequences)
        if (pauses && random() % 8 == 0) sequence.state.paused = random() % 2 == 0;
      SchedulerState state;
      for (const Running& sequence : sequences) {
        state.sequences.push_back(sequence.state);
        for (size_t group = 0; group < 2; ++group) {
          int64_t held = 0;
          if (!sequence.blocks.tables.empty())
            for (const int32_t block : sequence.blocks.tables[group]) held += block >= 0;
          state.held.push_back(held);
        }
      }
      for (size_t group = 0; group < 2; ++group)
        state.groups.push_back({windows[group], cache.pool(group).available()});
      state.steps_since_prefill = since;
      const StepPlan out = plan(config, state);
      since = out.steps_since_prefill;
      ASSERT_FALSE(out.stuck);
      ASSERT_TRUE(pauses || !out.picks.empty());
      const bool any_awake = std::any_of(sequences.begin(), sequences.end(),
                                         [](const Running& sequence) { return !sequence.state.paused; });
      ASSERT_TRUE(!any_awake || out.gave_back() || !out.picks.empty());

      for (const size_t i : out.preempted) {
        cache.release(sequences[i].blocks);
        sequences[i].state.stage = Stage::kWaiting;
        sequences[i].state.computed = sequences[i].state.covered_blocks = 0;
      }
      int64_t rows = 0, chunks = 0;
      for (const Pick& pick : out.picks) {
        SequenceState& sequence = sequences[pick.sequence].state;
        ASSERT_FALSE(sequence.paused);
        rows += pick.rows;
        chunks += sequence.stage != Stage::kDecode;
        ASSERT_GE(pick.rows, 1);
        ASSERT_LE(sequence.computed + pick.rows, sequence.known);
        ASSERT_EQ(pick.draws, sequence.computed + pick.rows == sequence.known);
        ASSERT_TRUE(cache.reserve(sequences[pick.sequence].blocks, sequence.computed + pick.rows));
      }
      ASSERT_LE(rows, config.max_rows);
      ASSERT_LE(chunks, 1);
      ASSERT_LE(static_cast<int64_t>(out.picks.size()), config.max_sequences);
      // A sequence under prefill gets a chunk after at most grant_interval steps, or is preempted.
      bool parked = false;
      for (const Running& sequence : sequences) parked |= !pauses && sequence.state.stage == Stage::kPrefill;
      starving = parked && chunks == 0 ? starving + 1 : 0;
      ASSERT_LE(starving, config.grant_interval);

      for (const Pick& pick : out.picks) {
        Running& sequence = sequences[pick.sequence];
        sequence.state.computed += pick.rows;
        sequence.state.stage = pick.draws ? Stage::kDecode : Stage::kPrefill;
        cache.free_outside_window(sequence.blocks, sequence.state.computed);
        sequence.state.covered_blocks = sequence.blocks.covered_blocks();
        if (!pick.draws) continue;
        ++sequence.state.known;
        ++sequence.state.generated;
      }
      for (size_t i = sequences.size(); i-- > 0;) {
        if (sequences[i].state.known < sequences[i].limit) continue;
        cache.release(sequences[i].blocks);
        sequences.erase(sequences.begin() + static_cast<std::ptrdiff_t>(i));
      }
    }
    for (size_t group = 0; group < 2; ++group) EXPECT_EQ(cache.pool(group).available(), cache.pool(group).total());
  }
}

}  // namespace
}  // namespace vedette::engine
