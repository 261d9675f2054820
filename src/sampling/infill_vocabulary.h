// What the link "infill" knows of a vocabulary: which tokens end a text, and whose bytes begin whose.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

namespace vedette::sampling {

// Immutable; any thread.
class InfillVocabulary {
 public:
  // bytes: of a token in running text, empty for control tokens; called only here. ends: tokens that end a text, the
  // first of them written where nothing else is left; none: -1.
  InfillVocabulary(int64_t size, const std::function<std::string_view(int32_t id)>& bytes,
                   std::span<const int32_t> ends);

  size_t size() const { return ids_.size(); }
  bool ends(int32_t id) const { return ends_[static_cast<size_t>(id)] != 0; }
  int32_t end() const { return end_; }
  // Places in the order of bytes: of a token, and of all tokens (itself among them) that its bytes begin; none for a
  // token without bytes.
  uint32_t place(int32_t id) const { return places_[static_cast<size_t>(id)]; }
  std::pair<uint32_t, uint32_t> begun_by(int32_t id) const { return begun_[static_cast<size_t>(id)]; }

 private:
  std::vector<int32_t> ids_;      // by place
  std::vector<uint32_t> places_;  // by id, as what follows
  std::vector<std::pair<uint32_t, uint32_t>> begun_;
  std::vector<uint8_t> ends_;
  int32_t end_ = -1;
};

}  // namespace vedette::sampling
