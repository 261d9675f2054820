#include <algorithm>

#include "base/error.h"
#include "sampling/links.h"

// One line per link, in the order in which they run: llama-server's order, in which filters see the untempered
// distribution; p_less, which llama-server lacks, looks at the whole row.
#define VEDETTE_SAMPLING_LINKS(LINK)   \
  LINK(logit_bias, 0, kBias)           \
  LINK(language_bias, 0, kBias)        \
  LINK(penalties, 'e', kPenalty)       \
  LINK(dry, 'd', kPenalty)             \
  LINK(top_n_sigma, 's', kTruncate)    \
  LINK(p_less, 0, kTruncate)           \
  LINK(top_k, 'k', kTruncate)          \
  LINK(typ_p, 'y', kTruncate)          \
  LINK(top_p, 'p', kTruncate)          \
  LINK(min_p, 'm', kTruncate)          \
  LINK(xtc, 'x', kTruncate)            \
  LINK(temperature, 't', kTemperature) \
  LINK(adaptive_p, 'a', kAdaptive)     \
  LINK(infill, 'i', kInfill)           \
  LINK(mirostat_1, 0, kMirostat)       \
  LINK(mirostat_2, 0, kMirostat)

namespace vedette::sampling {

#define VEDETTE_DECLARE_LINK(name, letter, kind) \
  std::unique_ptr<Sampler> make_##name(const SamplingParams& params, int64_t vocab_size);
VEDETTE_SAMPLING_LINKS(VEDETTE_DECLARE_LINK)
#undef VEDETTE_DECLARE_LINK

namespace {

bool can_be_named(const Link& link) {
  return link.kind != LinkKind::kBias && link.kind != LinkKind::kMirostat;
}

std::string plain(std::string_view name) {
  std::string result;
  for (const char c : name)
    if (c != '-' && c != '_') result += static_cast<char>(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
  return result;
}

}  // namespace

std::span<const Link> links() {
#define VEDETTE_LINK_ENTRY(name, letter, kind) {#name, letter, LinkKind::kind, make_##name},
  static constexpr Link kLinks[] = {VEDETTE_SAMPLING_LINKS(VEDETTE_LINK_ENTRY)};
#undef VEDETTE_LINK_ENTRY
  return kLinks;
}

const Link* find_link(std::string_view name) {
  struct Spelling {
    const char* other;
    const char* name;
  };
  static constexpr Spelling kSpellings[] = {{"nucleus", "top_p"},
                                            {"temp", "temperature"},
                                            {"typ", "typ_p"},
                                            {"typicalp", "typ_p"},
                                            {"topnsigma", "top_n_sigma"}};
  std::string wanted = plain(name);
  for (const Spelling& spelling : kSpellings)
    if (wanted == spelling.other) wanted = plain(spelling.name);
  for (const Link& link : links())
    if (can_be_named(link) && plain(link.name) == wanted) return &link;
  return nullptr;
}

std::string known_links() {
  std::string names;
  for (const Link& link : links()) {
    if (!can_be_named(link)) continue;
    if (!names.empty()) names += ", ";
    names += link.name;
  }
  return names;
}

std::vector<const Link*> chain_links(const SamplingParams& params, bool greedy) {
  const bool mirostat = params.mirostat != 0;
  std::vector<const Link*> chain;
  const auto add_kind = [&](auto wanted) {
    for (const Link& link : links())
      if (wanted(link.kind) && (!greedy || runs_greedy(link.kind))) chain.push_back(&link);
  };
  add_kind([](LinkKind kind) { return kind == LinkKind::kBias; });
  if (mirostat || params.order.empty()) {
    add_kind([&](LinkKind kind) {
      return kind == LinkKind::kPenalty || (kind == LinkKind::kTruncate && !mirostat) ||
             kind == LinkKind::kTemperature || (kind == LinkKind::kMirostat && mirostat);
    });
    return chain;
  }

  std::vector<const Link*> named;
  for (const std::string& name : params.order)
    if (const Link* link = find_link(name)) named.push_back(link);
  // Asked for but not named, as an order in llama-server's words cannot: before all that changes the distribution.
  const Link* p_less = find_link("p_less");
  if (params.p_less && std::find(named.begin(), named.end(), p_less) == named.end())
    named.insert(std::find_if(named.begin(), named.end(), [](const Link* l) { return l->kind != LinkKind::kPenalty; }),
                 p_less);
  std::stable_partition(named.begin(), named.end(), [](const Link* l) { return l->kind != LinkKind::kAdaptive; });
  for (const Link* link : named)
    if (!greedy || runs_greedy(link->kind)) chain.push_back(link);
  return chain;
}

bool names_infill(const SamplingParams& params) {
  return std::ranges::any_of(params.order, [](const std::string& name) {
    const Link* link = find_link(name);
    return link != nullptr && link->kind == LinkKind::kInfill;
  });
}

std::string known_letters() {
  std::string letters;
  for (const Link& link : links())
    if (link.letter != 0) letters += link.letter;
  return letters;
}

Result<std::vector<std::string>> order_of_letters(std::string_view letters) {
  std::vector<std::string> order;
  for (const char letter : letters) {
    const auto all = links();
    const auto found = std::find_if(all.begin(), all.end(), [&](const Link& link) { return link.letter == letter; });
    if (letter == 0 || found == all.end())
      return invalid_request("samplers", "samplers: a letter of the sequence is none of '{}'", known_letters());
    order.emplace_back(found->name);
  }
  return order;
}

}  // namespace vedette::sampling
