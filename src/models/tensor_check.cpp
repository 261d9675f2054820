#include "models/tensor_check.h"

#include <algorithm>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace vedette::models {

namespace {

// Names of one kind of trouble; the first few are shown.
class Trouble {
 public:
  explicit Trouble(std::string_view kind) : kind_(kind) {}
  void add(std::string_view item) {
    if (count_++ >= kShown) return;
    if (!text_.empty()) text_ += ", ";
    text_ += item;
  }
  bool any() const { return count_ > 0; }
  std::string text() const {
    std::string out = std::string(kind_) + ": " + text_;
    if (count_ > kShown) out += fmt::format(" and {} more", count_ - kShown);
    return out;
  }

 private:
  static constexpr int kShown = 8;
  std::string_view kind_;
  std::string text_;
  int count_ = 0;
};

std::string shape_text(const std::vector<int64_t>& shape) {
  std::string out = "[";
  for (const int64_t size : shape) {
    if (out.size() > 1) out += ",";
    out += std::to_string(size);
  }
  return out + "]";
}

// A scalar may be stored with or without an axis of 1.
bool same_shape(const std::vector<int64_t>& a, const std::vector<int64_t>& b) {
  if (a == b) return true;
  const auto scalar = [](const std::vector<int64_t>& s) {
    return std::ranges::all_of(s, [](int64_t n) { return n == 1; });
  };
  return scalar(a) && scalar(b);
}

bool ignored(const DecoderSpec& spec, std::string_view name) {
  return std::ranges::any_of(spec.ignored_tensors, [&](const std::string& end) { return name.ends_with(end); }) ||
         std::ranges::any_of(spec.ignored_prefixes, [&](const std::string& start) { return name.starts_with(start); });
}

}  // namespace

Status check_tensors(const weights::Checkpoint& checkpoint, const DecoderSpec& spec) {
  Trouble missing("missing"), unreadable("unreadable"), shapes("wrong shape"), surplus("surplus");
  std::set<std::string_view> known;
  const std::vector<ExpectedTensor> expected = expected_tensors(spec);
  for (const ExpectedTensor& tensor : expected) {
    known.insert(tensor.name);
    const weights::StoredTensor* stored = checkpoint.find(tensor.name);
    if (!stored) {
      const auto why = checkpoint.unreadable.find(tensor.name);
      if (why == checkpoint.unreadable.end())
        missing.add("'" + tensor.name + "'");
      else
        unreadable.add("'" + tensor.name + "' (" + why->second + ")");
    } else if (!same_shape(stored->shape, tensor.shape)) {
      shapes.add(
          fmt::format("'{}' is {}, expected {}", tensor.name, shape_text(stored->shape), shape_text(tensor.shape)));
    }
  }
  for (const auto& [name, stored] : checkpoint.tensors)
    if (!known.contains(name) && !ignored(spec, name)) surplus.add("'" + name + "'");
  for (const auto& [name, why] : checkpoint.unreadable)
    if (!known.contains(name) && !ignored(spec, name)) surplus.add("'" + name + "'");
  std::string all;
  for (const Trouble* trouble : {&missing, &unreadable, &shapes, &surplus}) {
    if (!trouble->any()) continue;
    if (!all.empty()) all += "; ";
    all += trouble->text();
  }
  if (all.empty()) return ok_status();
  return corrupt_file("", "{}: tensors do not fit the model family '{}': {}", checkpoint.path, spec.family, all);
}

}  // namespace vedette::models
