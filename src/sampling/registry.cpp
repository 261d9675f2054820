#include "sampling/links.h"

// One line per link, in the order in which they run: filters see the untempered distribution.
#define VEDETTE_SAMPLING_LINKS(LINK) \
  LINK(logit_bias, kAlways)          \
  LINK(penalties, kAlways)           \
  LINK(top_k, kDrawOnly)             \
  LINK(top_p, kDrawOnly)             \
  LINK(min_p, kDrawOnly)             \
  LINK(temperature, kDrawOnly)

namespace vedette::sampling {

#define VEDETTE_DECLARE_LINK(name, use) \
  std::unique_ptr<Sampler> make_##name(const SamplingParams& params, int64_t vocab_size);
VEDETTE_SAMPLING_LINKS(VEDETTE_DECLARE_LINK)
#undef VEDETTE_DECLARE_LINK

std::span<const Link> links() {
#define VEDETTE_LINK_ENTRY(name, use) {#name, make_##name, LinkUse::use},
  static constexpr Link kLinks[] = {VEDETTE_SAMPLING_LINKS(VEDETTE_LINK_ENTRY)};
#undef VEDETTE_LINK_ENTRY
  return kLinks;
}

}  // namespace vedette::sampling
