#include "scripted_reply.h"

#include <algorithm>
#include <fstream>
#include <sstream>

#include "base/error.h"
#include "base/json.h"

namespace vedette::test {
namespace {

class ForcedText final : public sampling::Constraint {
 public:
  explicit ForcedText(std::vector<int32_t> ids) : ids_(std::move(ids)) {}

  Result<bool> allowed(std::span<uint32_t> words) override {
    if (next_ >= ids_.size()) return internal_error("", "the scripted reply is over");
    std::fill(words.begin(), words.end(), 0);
    const auto id = static_cast<uint32_t>(ids_[next_]);
    words[id / 32] |= 1u << (id % 32);
    return true;
  }
  Status accept(int32_t token) override {
    if (next_ >= ids_.size() || token != ids_[next_]) return internal_error("", "token {} is not the script's", token);
    ++next_;
    return ok_status();
  }
  bool complete() const override { return next_ == ids_.size(); }
  std::unique_ptr<sampling::Constraint> clone() const override { return std::make_unique<ForcedText>(*this); }

 private:
  std::vector<int32_t> ids_;
  size_t next_ = 0;
};

}  // namespace

std::shared_ptr<const sampling::Constraint> force_text(const text::Tokenizer& tokenizer, const std::string& text) {
  auto ids = tokenizer.encode(text, {.add_special = false, .parse_special = true});
  if (!ids.ok() || ids->empty()) return nullptr;
  return std::make_shared<const ForcedText>(std::move(*ids));
}

Result<Script> Script::read(const std::string& path) {
  std::ifstream file(path);
  if (!file) return not_found("", "{}: cannot be read", path);
  std::stringstream text;
  text << file.rdbuf();
  VEDETTE_ASSIGN_OR_RETURN(const Json json, parse_json(text.str(), path));
  if (!json.is_array()) return invalid_request("", "{}: expected a list", path);
  Script out;
  for (const Json& entry : json.as_array()) {
    const JsonReader reader(entry, path);
    Entry read;
    VEDETTE_ASSIGN_OR_RETURN(read.when, reader.string("when", ""));
    VEDETTE_ASSIGN_OR_RETURN(read.reply, reader.string("reply"));
    VEDETTE_ASSIGN_OR_RETURN(read.always, reader.boolean("always", false));
    out.entries_.push_back(std::move(read));
  }
  return out;
}

const std::string* Script::take(const std::string& prompt) {
  for (Entry& entry : entries_) {
    if (entry.used || prompt.find(entry.when) == std::string::npos) continue;
    entry.used = !entry.always;
    return &entry.reply;
  }
  return nullptr;
}

}  // namespace vedette::test
