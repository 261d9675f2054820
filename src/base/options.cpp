#include "base/options.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdlib>

#include "base/error.h"
#include "base/utf8.h"

namespace vedette {
namespace {

std::optional<int64_t> parse_integer(std::string_view text) {
  if (text.starts_with('+')) text.remove_prefix(1);
  int64_t value = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

std::optional<double> parse_number(std::string_view text) {
  if (text.starts_with('+')) text.remove_prefix(1);
  double value = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || std::isnan(value)) return std::nullopt;
  return value;
}

std::optional<bool> parse_flag(std::string_view text) {
  constexpr std::array<std::string_view, 4> kTrue = {"1", "true", "yes", "on"};
  constexpr std::array<std::string_view, 4> kFalse = {"0", "false", "no", "off"};
  if (std::ranges::find(kTrue, text) != kTrue.end()) return true;
  if (std::ranges::find(kFalse, text) != kFalse.end()) return false;
  return std::nullopt;
}

bool is_remark(std::string_view default_text) {
  return default_text.empty() || default_text.front() == '(';
}

// A refused option asked for exactly what happens without it.
bool is_neutral(const OptionSpec& option, std::string_view value) {
  if (option.type == OptionType::kFlag || is_remark(option.default_text)) return false;
  if (value == option.default_text) return true;
  auto given = parse_number(value), neutral = parse_number(option.default_text);
  return given && neutral && *given == *neutral;
}

std::string join(const std::vector<std::string_view>& words) {
  return fmt::format("{}", fmt::join(words, ", "));
}

// At most 60 bytes of a value, for messages.
std::string shown(std::string_view value) {
  if (value.size() <= 60) return repair_utf8(value);
  return repair_utf8(value.substr(0, complete_utf8_prefix(value.substr(0, 57)))) + "...";
}

Status check_range(const OptionSpec& option, double value, std::string_view text, std::string_view source) {
  if (option.min == option.max || (value >= option.min && value <= option.max)) return ok_status();
  return invalid_request(std::string(option.name), "{} ({}): expected a value from {} to {}, found {}", option.name,
                         source, option.min, option.max, shown(text));
}

Status check_choice(const OptionSpec& option, std::string_view value, std::string_view source) {
  if (std::ranges::find(option.choices, value) != option.choices.end()) return ok_status();
  if (std::ranges::find(option.refused_choices, value) != option.refused_choices.end()) {
    return unsupported(std::string(option.name), "{} ({}): {} is not available: {}; use one of: {}", option.name,
                       source, value, option.note, join(option.choices));
  }
  return invalid_request(std::string(option.name), "{} ({}): expected one of {}, found '{}'", option.name, source,
                         join(option.choices), shown(value));
}

Status check_value(const OptionSpec& option, std::string_view value, std::string_view source) {
  const std::string name(option.name);
  switch (option.type) {
    case OptionType::kFlag:
      if (parse_flag(value)) return ok_status();
      return invalid_request(name, "{} ({}): expected 1 or 0, found '{}'", name, source, shown(value));
    case OptionType::kInteger:
      if (auto number = parse_integer(value)) return check_range(option, static_cast<double>(*number), value, source);
      return invalid_request(name, "{} ({}): expected an integer, found '{}'", name, source, shown(value));
    case OptionType::kNumber:
      if (auto number = parse_number(value)) return check_range(option, *number, value, source);
      return invalid_request(name, "{} ({}): expected a number, found '{}'", name, source, shown(value));
    case OptionType::kPath:
      if (value.empty()) return invalid_request(name, "{} ({}): expected a path, found an empty text", name, source);
      if (value.find('\0') != std::string_view::npos)
        return invalid_request(name, "{} ({}): a path cannot hold a zero byte", name, source);
      return ok_status();
    case OptionType::kText:
      return ok_status();
    case OptionType::kChoice:
      return check_choice(option, value, source);
  }
  return ok_status();
}

size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      size_t substituted = diagonal + (a[i - 1] != b[j - 1]);
      diagonal = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, substituted});
    }
  }
  return row[b.size()];
}

class Nearest {
 public:
  explicit Nearest(std::string_view spelling)
      : spelling_(spelling.substr(0, 64)), best_distance_(std::max<size_t>(2, spelling_.size() / 3) + 1) {}
  void offer(std::string_view candidate) {
    size_t distance = edit_distance(spelling_, candidate);
    if (distance >= best_distance_) return;
    best_distance_ = distance;
    best_ = candidate;
  }
  std::string best() const { return std::string(best_); }

 private:
  std::string_view spelling_;
  size_t best_distance_;
  std::string_view best_;
};

bool belongs_to(const OptionSpec& option, std::string_view subcommand) {
  return std::ranges::find(option.subcommands, subcommand) != option.subcommands.end();
}

}  // namespace

const OptionSpec* find_option(std::string_view name_or_alias) {
  for (const OptionSpec& option : option_table()) {
    if (option.name == name_or_alias) return &option;
    if (std::ranges::find(option.aliases, name_or_alias) != option.aliases.end()) return &option;
  }
  return nullptr;
}

std::vector<const OptionSpec*> options_of(std::string_view subcommand) {
  std::vector<const OptionSpec*> found;
  for (const OptionSpec& option : option_table()) {
    if (belongs_to(option, subcommand)) found.push_back(&option);
  }
  return found;
}

std::string nearest_option(std::string_view subcommand, std::string_view spelling) {
  Nearest nearest(spelling);
  for (const OptionSpec* option : options_of(subcommand)) {
    if (option->state != OptionState::kActive) continue;
    nearest.offer(option->name);
    for (std::string_view alias : option->aliases) {
      if (alias.starts_with("--")) nearest.offer(alias);
    }
  }
  return nearest.best();
}

const SubcommandSpec* find_subcommand(std::string_view name_or_alias) {
  for (const SubcommandSpec& subcommand : subcommand_table()) {
    if (subcommand.name == name_or_alias) return &subcommand;
    if (std::ranges::find(subcommand.aliases, name_or_alias) != subcommand.aliases.end()) return &subcommand;
  }
  return nullptr;
}

std::string nearest_subcommand(std::string_view spelling) {
  Nearest nearest(spelling);
  for (const SubcommandSpec& subcommand : subcommand_table()) {
    if (subcommand.state == OptionState::kActive) nearest.offer(subcommand.name);
  }
  return nearest.best();
}

Status OptionValues::set(std::string_view name, std::string_view value, std::string_view source) {
  const OptionSpec* option = find_option(name);
  if (option == nullptr) return invalid_request(std::string(name), "{}: unknown option '{}'", source, shown(name));
  if (option->state == OptionState::kRefused) {
    if (is_neutral(*option, value)) return ok_status();
    return unsupported(std::string(option->name), "{} ({}): {}", option->name, source, option->note);
  }
  if (option->state == OptionState::kInert) {
    std::string notice = fmt::format("{} ({}): {}", option->name, source, option->note);
    if (std::ranges::find(notices_, notice) == notices_.end()) notices_.push_back(std::move(notice));
    return ok_status();
  }
  VEDETTE_RETURN_IF_ERROR(check_value(*option, value, source));
  Value& stored = values_[std::string(option->name)];
  if (!option->repeatable) stored.texts.clear();
  stored.texts.emplace_back(value);
  stored.source = source;
  return ok_status();
}

Status OptionValues::apply_environment(std::string_view subcommand) {
  for (const OptionSpec* option : options_of(subcommand)) {
    if (option->environment.empty() || values_.contains(option->name)) continue;
    const char* value = std::getenv(std::string(option->environment).c_str());
    if (value == nullptr || *value == '\0') continue;
    VEDETTE_RETURN_IF_ERROR(set(option->name, value, option->environment));
  }
  return ok_status();
}

const std::vector<std::string>* OptionValues::find(std::string_view name) const {
  read_.emplace(name);
  auto found = values_.find(name);
  return found == values_.end() ? nullptr : &found->second.texts;
}

bool OptionValues::given(std::string_view name) const {
  return find(name) != nullptr;
}

bool OptionValues::flag(std::string_view name) const {
  const auto* texts = find(name);
  return texts != nullptr && parse_flag(texts->back()).value_or(false);
}

std::optional<int64_t> OptionValues::integer(std::string_view name) const {
  if (const auto* texts = find(name)) return parse_integer(texts->back());
  const OptionSpec* option = find_option(name);
  return option == nullptr ? std::nullopt : parse_integer(option->default_text);
}

std::optional<double> OptionValues::number(std::string_view name) const {
  if (const auto* texts = find(name)) return parse_number(texts->back());
  const OptionSpec* option = find_option(name);
  return option == nullptr ? std::nullopt : parse_number(option->default_text);
}

std::optional<std::string> OptionValues::text(std::string_view name) const {
  if (const auto* texts = find(name)) return texts->back();
  const OptionSpec* option = find_option(name);
  if (option == nullptr || is_remark(option->default_text)) return std::nullopt;
  return std::string(option->default_text);
}

std::vector<std::string> OptionValues::texts(std::string_view name) const {
  const auto* texts = find(name);
  return texts == nullptr ? std::vector<std::string>() : *texts;
}

std::string_view OptionValues::source(std::string_view name) const {
  auto found = values_.find(name);
  return found == values_.end() ? "default" : std::string_view(found->second.source);
}

Status OptionValues::check_all_read() const {
  for (const auto& [name, value] : values_) {
    if (read_.contains(name)) continue;
    return internal_error(name, "{} ({}) was set but nothing reads it here; leave it out and report this", name,
                          value.source);
  }
  return ok_status();
}

}  // namespace vedette
