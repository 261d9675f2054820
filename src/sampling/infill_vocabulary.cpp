#include "sampling/infill_vocabulary.h"

#include <algorithm>
#include <numeric>

namespace vedette::sampling {

InfillVocabulary::InfillVocabulary(int64_t size, const std::function<std::string_view(int32_t id)>& bytes,
                                   std::span<const int32_t> ends)
    : ids_(static_cast<size_t>(size)), places_(ids_.size()), begun_(ids_.size()), ends_(ids_.size()) {
  std::iota(ids_.begin(), ids_.end(), 0);
  std::sort(ids_.begin(), ids_.end(), [&](int32_t a, int32_t b) {
    const std::string_view left = bytes(a), right = bytes(b);
    return left < right || (left == right && a < b);
  });
  // What a text begins stands right behind it; the stack holds the texts that begin the one looked at.
  std::vector<int32_t> open;
  const auto close_until = [&](std::string_view text, uint32_t place) {
    while (!open.empty() && !text.starts_with(bytes(open.back()))) {
      begun_[static_cast<size_t>(open.back())].second = place;
      open.pop_back();
    }
  };
  for (uint32_t place = 0; place < ids_.size(); ++place) {
    const int32_t id = ids_[place];
    const std::string_view text = bytes(id);
    places_[static_cast<size_t>(id)] = place;
    if (text.empty()) continue;
    close_until(text, place);
    const bool same = !open.empty() && bytes(open.back()) == text;
    begun_[static_cast<size_t>(id)].first = same ? begun_[static_cast<size_t>(open.back())].first : place;
    open.push_back(id);
  }
  for (const int32_t id : open) begun_[static_cast<size_t>(id)].second = static_cast<uint32_t>(ids_.size());
  for (const int32_t id : ends) {
    if (id < 0 || id >= size) continue;
    ends_[static_cast<size_t>(id)] = 1;
    if (end_ < 0) end_ = id;
  }
}

}  // namespace vedette::sampling
