#include "cli/language_bias_options.h"

#include <algorithm>

#include "base/error.h"
#include "base/utf8.h"
#include "cli/prompt.h"

namespace vedette::cli {
namespace {

constexpr std::string_view kConfig = "--lang-bias-config";

struct Include {
  std::string_view name;
  bool text::LanguageBias::* member;
};
constexpr Include kIncludes[] = {{"special", &text::LanguageBias::special},
                                 {"numeric", &text::LanguageBias::numeric},
                                 {"punctuation", &text::LanguageBias::punctuation},
                                 {"byte-fragments", &text::LanguageBias::byte_fragments}};

// Without blanks and quotes around it.
std::string_view bare(std::string_view text) {
  constexpr std::string_view kBlank = " \t\r";
  const size_t first = text.find_first_not_of(kBlank);
  if (first == std::string_view::npos) return {};
  text = text.substr(first, text.find_last_not_of(kBlank) - first + 1);
  if (text.size() >= 2 && (text[0] == '"' || text[0] == '\'') && text.back() == text[0])
    text = text.substr(1, text.size() - 2);
  return text;
}

Error wrong_line(size_t line, std::string_view expected, std::string_view found) {
  return invalid_request(std::string(kConfig), "{}: line {}: expected {}, found '{}'", kConfig, line, expected,
                         without_controls(found.substr(0, 60), LineBreaks::kSpaces));
}

Status set_entry(std::string_view key, std::string_view value, size_t line, text::LanguageBias& out) {
  if (key == "policy") {
    if (value != "conservative" && value != "strict") return wrong_line(line, "conservative or strict", value);
    out.strict = value == "strict";
    return ok_status();
  }
  if (key.starts_with("include_")) {
    std::string name(key.substr(8));
    std::replace(name.begin(), name.end(), '_', '-');
    for (const Include& include : kIncludes) {
      if (include.name != name) continue;
      if (value != "true" && value != "false") return wrong_line(line, "true or false", value);
      out.*include.member = value == "true";
      return ok_status();
    }
    return wrong_line(line, "include_special, _numeric, _punctuation or _byte_fragments", key);
  }
  if (value == "-.inf" || value == "-.Inf" || value == "-.INF") value = "-inf";  // as YAML writes it
  const auto bias = text::parse_bias(value);
  if (!bias.ok()) return wrong_line(line, "a number or -inf", value);
  if (const Status set = text::set_language_bias(key, *bias, out.entries); !set.ok())
    return invalid_request(std::string(kConfig), "{}: line {}: {}", kConfig, line, set.error().message);
  return ok_status();
}

}  // namespace

Result<text::LanguageBias> parse_language_bias_file(std::string_view content) {
  text::LanguageBias out;
  for (size_t line = 1; !content.empty(); ++line) {
    const size_t end = std::min(content.find('\n'), content.size());
    const std::string_view whole = content.substr(0, end);
    content.remove_prefix(std::min(end + 1, content.size()));
    const std::string_view text = bare(whole.substr(0, whole.find('#')));
    if (text.empty() || text == "---") continue;
    const size_t colon = text.find(':');
    if (colon == std::string_view::npos) return wrong_line(line, "LANGUAGE: BIAS as ja: -10", text);
    VEDETTE_RETURN_IF_ERROR(set_entry(bare(text.substr(0, colon)), bare(text.substr(colon + 1)), line, out));
  }
  return out;
}

Result<text::LanguageBias> read_language_bias_options(const OptionValues& options) {
  text::LanguageBias out;
  if (const auto path = options.text(kConfig)) {
    VEDETTE_ASSIGN_OR_RETURN(const std::string content, read_prompt_file(*path, kConfig));
    VEDETTE_ASSIGN_OR_RETURN(out, parse_language_bias_file(content));
  }
  if (const auto given = options.text("--lang-bias")) {
    auto entries = text::parse_language_bias(*given);
    if (!entries.ok()) return invalid_request("--lang-bias", "--lang-bias: {}", entries.error().message);
    // Before the file's, so that they also win where languages share a script.
    for (const auto& [language, bias] : out.entries)
      if (std::ranges::none_of(*entries, [&](const auto& entry) { return entry.first == language; }))
        entries->emplace_back(language, bias);
    out.entries = std::move(*entries);
  }
  if (options.given("--lang-bias-policy")) out.strict = options.text("--lang-bias-policy") == "strict";
  for (const Include& include : kIncludes)
    if (options.flag("--lang-bias-include-" + std::string(include.name))) out.*include.member = true;
  return out;
}

}  // namespace vedette::cli
