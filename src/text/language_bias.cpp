#include "text/language_bias.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>

#include "base/error.h"
#include "base/utf8.h"
#include "text/script_table.h"

namespace vedette::text {
namespace {

constexpr uint64_t bit(Script script) {
  return uint64_t{1} << static_cast<int>(script);
}

struct Language {
  std::string_view names;  // ISO 639-1 codes, and ISO 15924 codes of scripts; each followed by a space
  uint64_t scripts;
};

constexpr Language kLanguages[] = {
    {"af az bs ca cs cy da de en eo es et eu fi fr ga gl hr hu id is it la lt lv ms mt nl no nb nn pl pt ro sk sl so "
     "sq "
     "sv sw tl tr uz vi latn ",
     bit(Script::kLatin)},
    {"be bg kk ky mk mn ru sr tg uk cyrl ", bit(Script::kCyrillic)},
    {"el grek ", bit(Script::kGreek)},
    {"hy armn ", bit(Script::kArmenian)},
    {"ka geor ", bit(Script::kGeorgian)},
    {"he yi hebr ", bit(Script::kHebrew)},
    {"ar fa ku ps sd ug ur arab ", bit(Script::kArabic)},
    {"dv thaa ", bit(Script::kThaana)},
    {"hi mr ne sa deva ", bit(Script::kDevanagari)},
    {"as bn beng ", bit(Script::kBengali)},
    {"pa guru ", bit(Script::kGurmukhi)},
    {"gu gujr ", bit(Script::kGujarati)},
    {"or orya ", bit(Script::kOriya)},
    {"ta taml ", bit(Script::kTamil)},
    {"te telu ", bit(Script::kTelugu)},
    {"kn knda ", bit(Script::kKannada)},
    {"ml mlym ", bit(Script::kMalayalam)},
    {"si sinh ", bit(Script::kSinhala)},
    {"th thai ", bit(Script::kThai)},
    {"lo laoo ", bit(Script::kLao)},
    {"bo dz tibt ", bit(Script::kTibetan)},
    {"my mymr ", bit(Script::kMyanmar)},
    {"km khmr ", bit(Script::kKhmer)},
    {"am ti ethi ", bit(Script::kEthiopic)},
    {"zh hans hant ", bit(Script::kHan) | bit(Script::kBopomofo)},
    {"ja jpan ", bit(Script::kHan) | bit(Script::kHiragana) | bit(Script::kKatakana)},
    {"ko kore ", bit(Script::kHangul)},
    {"hani ", bit(Script::kHan)},
    {"hira ", bit(Script::kHiragana)},
    {"kana ", bit(Script::kKatakana)},
    {"hang ", bit(Script::kHangul)},
};

// Lower case, without a region: "zh-TW" is "zh".
std::string plain_name(std::string_view language) {
  std::string name(language.substr(0, language.find_first_of("-_")));
  for (char& c : name)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return name;
}

uint64_t scripts_of(std::string_view language) {
  const std::string name = plain_name(language);
  if (name.empty() || name.find(' ') != std::string::npos) return 0;
  for (const Language& one : kLanguages)
    if (one.names.starts_with(name + " ") || one.names.find(" " + name + " ") != std::string_view::npos)
      return one.scripts;
  return 0;
}

// The classes of all code points from first to last.
uint64_t classes_between(uint32_t first, uint32_t last) {
  uint64_t found = 0;
  const auto* range = std::lower_bound(std::begin(kScriptRanges), std::end(kScriptRanges), first,
                                       [](const ScriptRange& entry, uint32_t code) { return entry.last < code; });
  for (; range != std::end(kScriptRanges) && range->first <= last; ++range) found |= bit(range->script);
  return found;
}

constexpr uint64_t kNoLetters = bit(Script::kNumber) | bit(Script::kPunctuation);

// A character as far as its bytes are there: the code points that it may be.
struct Start {
  size_t length = 0;  // bytes of it that are there; 0: no start of a character
  bool whole = false;
  uint32_t first = 0, last = 0;
};

Start start_of(std::string_view bytes) {
  const auto lead = static_cast<uint8_t>(bytes[0]);
  const size_t size = lead < 0x80 ? 1 : lead < 0xC2 ? 0 : lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : lead < 0xF5 ? 4 : 0;
  if (size == 0) return {};
  uint32_t code = size == 1 ? lead : lead & (0x7Fu >> size);
  size_t length = 1;
  for (; length < size && length < bytes.size(); ++length) {
    const auto next = static_cast<uint8_t>(bytes[length]);
    if ((next & 0xC0) != 0x80) break;
    code = code << 6 | (next & 0x3Fu);
  }
  const int missing = static_cast<int>(6 * (size - length));
  constexpr uint32_t kLeast[] = {0, 0, 0x80, 0x800, 0x10000};
  const uint32_t first = std::max(code << missing, kLeast[size]);
  return {length, missing == 0, first, std::max(first, ((code + 1) << missing) - 1)};
}

}  // namespace

Status set_language_bias(std::string_view language, double bias, LanguageBias::Entries& entries) {
  if (scripts_of(language) == 0)
    return invalid_request("language_bias", "expected the code of a language or script, as ja or cyrl, found '{}'",
                           without_controls(language.substr(0, 40), LineBreaks::kSpaces));
  constexpr double kMost = 1e6;
  const bool never = bias == -std::numeric_limits<double>::infinity();
  if (!never && !(std::abs(bias) <= kMost))
    return invalid_request("language_bias", "{}: expected a number from -1000000 to 1000000, or -inf, found {}",
                           language, bias);
  const std::string name = plain_name(language);
  const auto same =
      std::find_if(entries.begin(), entries.end(), [&](const auto& entry) { return entry.first == name; });
  if (same == entries.end())
    entries.emplace_back(name, static_cast<float>(bias));
  else
    same->second = static_cast<float>(bias);
  return ok_status();
}

Result<double> parse_bias(std::string_view text) {
  std::string_view number = text;
  if (number.starts_with('+') && !number.starts_with("+-")) number.remove_prefix(1);
  double value = 0;
  const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), value);
  if (number.empty() || error != std::errc() || end != number.data() + number.size() || std::isnan(value))
    return invalid_request("language_bias", "expected a number or -inf, found '{}'",
                           without_controls(text.substr(0, 40), LineBreaks::kSpaces));
  return value;
}

Result<LanguageBias::Entries> parse_language_bias(std::string_view text) {
  LanguageBias::Entries entries;
  while (!text.empty()) {
    const size_t comma = std::min(text.find(','), text.size());
    const std::string_view entry = text.substr(0, comma);
    text.remove_prefix(std::min(comma + 1, text.size()));
    const size_t equals = entry.find('=');
    if (equals == std::string_view::npos)
      return invalid_request("language_bias", "expected LANGUAGE=BIAS as ja=-inf, found '{}'",
                             without_controls(entry.substr(0, 40), LineBreaks::kSpaces));
    VEDETTE_ASSIGN_OR_RETURN(const double bias, parse_bias(entry.substr(equals + 1)));
    VEDETTE_RETURN_IF_ERROR(set_language_bias(entry.substr(0, equals), bias, entries));
  }
  return entries;
}

TokenScripts::Token TokenScripts::classify(std::string_view bytes) {
  Token token;
  uint64_t classes = 0;
  while (!bytes.empty()) {
    const Start start = start_of(bytes);
    if (!start.whole) token.fragment = true;
    if (start.whole)
      classes |= classes_between(start.first, start.last);
    else if (start.length > 0)
      token.scripts |= classes_between(start.first, start.last) & ~kNoLetters;
    bytes.remove_prefix(std::max<size_t>(start.length, 1));
  }
  token.scripts |= classes & ~kNoLetters;
  token.number = (classes & bit(Script::kNumber)) != 0;
  token.punctuation = (classes & bit(Script::kPunctuation)) != 0;
  return token;
}

TokenScripts::TokenScripts(const Tokenizer& tokenizer) {
  tokens_.reserve(static_cast<size_t>(tokenizer.size()));
  for (int32_t id = 0; id < tokenizer.size(); ++id) {
    const bool special = tokenizer.is_special(id);
    tokens_.push_back(special ? Token{} : classify(tokenizer.token_bytes(id)));
    tokens_.back().special = special;
  }
}

bool TokenScripts::belongs(const Token& token, uint64_t scripts, const LanguageBias& bias) {
  if (token.special) return bias.special;
  if (token.fragment && !bias.byte_fragments) return false;
  if (token.scripts != 0) return bias.strict ? (token.scripts & scripts) != 0 : (token.scripts & ~scripts) == 0;
  if (token.fragment) return false;  // the middle of any character
  return token.number ? bias.numeric : token.punctuation && bias.punctuation;
}

std::vector<float> TokenScripts::table(const LanguageBias& bias) const {
  std::vector<float> out(tokens_.size(), 0);
  std::vector<std::pair<uint64_t, float>> languages;
  for (const auto& [language, value] : bias.entries) languages.emplace_back(scripts_of(language), value);
  for (size_t id = 0; id < tokens_.size(); ++id)
    for (const auto& [scripts, value] : languages)
      if (belongs(tokens_[id], scripts, bias)) {
        out[id] = value;
        break;
      }
  return out;
}

}  // namespace vedette::text
