#include "engine/stop_matcher.h"

#include <algorithm>

namespace vedette::engine {

StopMatcher::StopMatcher(std::vector<std::string> stops) {
  for (std::string& text : stops) {
    Stop stop{std::move(text), {}, 0};
    stop.fallback.assign(stop.text.size(), 0);
    for (size_t i = 1, length = 0; i < stop.text.size(); ++i) {
      while (length > 0 && stop.text[i] != stop.text[length]) length = stop.fallback[length - 1];
      if (stop.text[i] == stop.text[length]) ++length;
      stop.fallback[i] = length;
    }
    stops_.push_back(std::move(stop));
  }
}

// True if the byte completes a stop.
bool StopMatcher::advance(char byte) {
  for (size_t i = 0; i < stops_.size(); ++i) {
    Stop& stop = stops_[i];
    while (stop.length > 0 && stop.text[stop.length] != byte) stop.length = stop.fallback[stop.length - 1];
    if (stop.text[stop.length] == byte) ++stop.length;
    if (stop.length < stop.text.size()) continue;
    if (matched_ < 0 || stop.text.size() > stops_[static_cast<size_t>(matched_)].text.size())
      matched_ = static_cast<int>(i);
  }
  return matched();
}

bool StopMatcher::push(std::string_view text, std::string& out) {
  if (matched()) return true;
  if (stops_.empty()) {
    out += text;
    return false;
  }
  for (const char byte : text) {
    held_ += byte;
    if (!advance(byte)) continue;
    out.append(held_, 0, held_.size() - stop().size());
    held_.clear();
    return true;
  }
  size_t keep = 0;
  for (const Stop& stop : stops_) keep = std::max(keep, stop.length);
  out.append(held_, 0, held_.size() - keep);
  held_.erase(0, held_.size() - keep);
  return false;
}

void StopMatcher::finish(std::string& out) {
  if (!matched()) out += held_;
  held_.clear();
}

}  // namespace vedette::engine
