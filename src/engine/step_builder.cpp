#include "engine/step_builder.h"

namespace vedette::engine {

void StepBuilder::clear() {
  step_.rows.clear();
  for (ops::StepSequence& sequence : step_.sequences) spare_.push_back(std::move(sequence));
  step_.sequences.clear();
}

void StepBuilder::append(const cache::SequenceBlocks& blocks, std::span<const int32_t> ids, int64_t first_position,
                         int64_t first_logits) {
  ops::StepSequence sequence;
  if (!spare_.empty()) {
    sequence = std::move(spare_.back());
    spare_.pop_back();
  }
  sequence.first_row = static_cast<int32_t>(step_.rows.size());
  sequence.n_rows = static_cast<int32_t>(ids.size());
  sequence.block_tables.resize(blocks.tables.size());
  for (size_t group = 0; group < blocks.tables.size(); ++group) {
    sequence.block_tables[group].reserve(blocks.tables[group].capacity());
    sequence.block_tables[group].assign(blocks.tables[group].begin(), blocks.tables[group].end());
  }

  ops::Row row;
  row.sequence = static_cast<int32_t>(step_.sequences.size());
  for (size_t i = 0; i < ids.size(); ++i) {
    const int64_t position = first_position + static_cast<int64_t>(i);
    row.value = ids[i];
    row.position[0] = row.position[1] = row.position[2] = static_cast<int32_t>(position);
    row.wants_logits = position >= first_logits;
    step_.rows.push_back(row);
  }
  step_.sequences.push_back(std::move(sequence));
}

}  // namespace vedette::engine
