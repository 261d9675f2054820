#include "text/pre_tokenizers.h"

#include <algorithm>
#include <vector>

namespace vedette::text {
namespace {

// Building blocks that many models share, named after the first that used them.
#define VEDETTE_CONTRACTIONS R"re((?i:'s|'t|'re|'ve|'m|'ll|'d))re"
#define VEDETTE_SPACES R"re(|\s*[\r\n]+|\s+(?!\S)|\s+)re"
#define VEDETTE_WORD_UPPER_LOWER R"re([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+)re"
#define VEDETTE_WORD_UPPER R"re([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*)re"
#define VEDETTE_PUNCTUATION_WORDS                                                               \
  R"re([!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+)re" \
  R"re(| ?[\p{P}\p{S}]+)re"

constexpr SplitStep kGpt2 = {kVtSplitPattern,
                             R"re('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)re"};
constexpr SplitStep kDigit = {kVtSplitPattern, R"re(\p{N})re"};
constexpr SplitStep kDigits = {kVtSplitPattern, R"re(\p{N}+)re"};
constexpr SplitStep kThreeDigits = {kVtSplitPattern, R"re([0-9][0-9][0-9])re"};
constexpr SplitStep kUpToThreeDigits = {kVtSplitPattern, R"re(\p{N}{1,3})re"};
constexpr SplitStep kLineBreak = {kVtSplitPattern, R"re([\r\n])re"};
constexpr SplitStep kLines = {kVtSplitPattern, R"re([^\n]+|[\n]+)re"};
constexpr SplitStep kHanAndKana = {kVtSplitPattern, R"re([\x{4E00}-\x{9FA5}\x{3040}-\x{309F}\x{30A0}-\x{30FF}]+)re"};
constexpr SplitStep kHanAndHangul = {kVtSplitPattern, R"re([\x{4E00}-\x{9FA5}\x{0800}-\x{4E00}\x{AC00}-\x{D7FF}]+)re"};
constexpr SplitStep kPunctuationWords = {kVtSplitPattern, VEDETTE_PUNCTUATION_WORDS R"re([\r\n]*)re" VEDETTE_SPACES};

constexpr SplitStep kLlama3Words = {kVtSplitPattern,
                                    VEDETTE_CONTRACTIONS R"re(|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3})re"
                                                         R"re(| ?[^\s\p{L}\p{N}]+[\r\n]*)re" VEDETTE_SPACES};
constexpr SplitStep kQwen2Words = {kVtSplitPattern,
                                   VEDETTE_CONTRACTIONS R"re(|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N})re"
                                                        R"re(| ?[^\s\p{L}\p{N}]+[\r\n]*)re" VEDETTE_SPACES};
constexpr SplitStep kGpt4oWords = {kVtSplitPattern, VEDETTE_WORD_UPPER_LOWER VEDETTE_CONTRACTIONS
                                   "?|" VEDETTE_WORD_UPPER VEDETTE_CONTRACTIONS
                                   R"re(?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*)re" VEDETTE_SPACES};

constexpr SplitStep kGpt2Kind[] = {kGpt2};
constexpr SplitStep kStarcoderKind[] = {kDigit, kGpt2};
constexpr SplitStep kLlama3Kind[] = {kLlama3Words};
constexpr SplitStep kQwen2Kind[] = {kQwen2Words};
constexpr SplitStep kGpt4oKind[] = {kGpt4oWords};
constexpr SplitStep kTinyAyaKind[] = {{kVtSplitDigitsBounded, {}}, kGpt4oWords};
constexpr SplitStep kSuperBpeKind[] = {kDigits, {kVtSplitDigitsByThree, {}}};
constexpr SplitStep kDeepseek3Kind[] = {kUpToThreeDigits, kHanAndKana, kPunctuationWords};
constexpr SplitStep kLagunaKind[] = {kLines, kQwen2Words};
constexpr SplitStep kLinesKind[] = {kLines};
constexpr SplitStep kJais2Kind[] = {
    {kVtSplitPattern, VEDETTE_CONTRACTIONS
     R"re(|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s{512}(?!\S)|\s{256}(?!\S))re"
     R"re(|\s{128}(?!\S)|\s{64}(?!\S)|\s{32}(?!\S)|\s{16}(?!\S)|\s{8}(?!\S)|\s{4}(?!\S)|\s{1,2}(?!\S)|\s{1})re"}};
constexpr SplitStep kDeepseekLlmKind[] = {
    kLineBreak,
    {kVtSplitPattern,
     R"re(\s?[A-Za-z\x{B5}\x{C0}-\x{D6}\x{D8}-\x{F6}\x{F8}-\x{1BA}\x{1BC}-\x{1BF}\x{1C4}-\x{293}\x{295}-)re"
     R"re(\x{2AF}\x{370}-\x{373}\x{376}\x{377}\x{37B}-\x{37D}\x{37F}\x{386}\x{388}-\x{38A}\x{38C}\x{38E}-)re"
     R"re(\x{3A1}\x{3A3}-\x{3F5}\x{3F7}-\x{481}\x{48A}-\x{52F}\x{531}-\x{556}\x{10A0}-\x{10C5}\x{13A0}-)re"
     R"re(\x{13F5}\x{13F8}-\x{13FD}\x{1C90}-\x{1CBA}\x{1CBD}-\x{1CBF}\x{1D00}-\x{1D2B}\x{1D6B}-\x{1D77})re"
     R"re(\x{1D79}-\x{1D9A}\x{1E00}-\x{1F15}\x{1F18}-\x{1F1D}\x{1F20}-\x{1F45}\x{1F48}-\x{1F4D}\x{1F50}-)re"
     R"re(\x{1F57}\x{1F59}\x{1F5B}\x{1F5D}\x{1F5F}-\x{1F7D}\x{1F80}-\x{1FB4}\x{1FB6}-\x{1FBC}\x{1FBE})re"
     R"re(\x{1FC2}-\x{1FC4}\x{1FC6}-\x{1FCC}\x{1FD0}-\x{1FD3}\x{1FD6}-\x{1FDB}\x{1FE0}-\x{1FEC}\x{1FF2}-)re"
     R"re(\x{1FF4}\x{1FF6}-\x{1FFC}\x{2102}\x{2107}\x{210A}-\x{2113}\x{2115}\x{2119}-\x{211D}\x{2124})re"
     R"re(\x{2126}\x{2128}\x{212A}-\x{212D}\x{212F}-\x{2134}\x{2139}\x{213C}-\x{213F}\x{2145}-\x{2149})re"
     R"re(\x{214E}\x{2183}\x{2184}\x{2C00}-\x{2C7B}\x{2C7E}-\x{2CE4}\x{2CEB}-\x{2CEE}\x{2CF2}\x{2CF3})re"
     R"re(\x{A640}-\x{A66D}\x{A680}-\x{A69B}\x{A722}-\x{A76F}\x{A771}-\x{A787}\x{A78B}-\x{A78E}\x{AB70}-)re"
     R"re(\x{ABBF}\x{FB00}-\x{FB06}\x{FB13}-\x{FB17}\x{FF21}-\x{FF3A}\x{FF41}-\x{FF5A}\x{10400}-\x{1044F})re"
     R"re(\x{104B0}-\x{104D3}\x{104D8}-\x{104FB}\x{10C80}-\x{10CB2}\x{10CC0}-\x{10CF2}\x{118A0}-\x{118DF})re"
     R"re(\x{1E900}-\x{1E943}]+)re"},
    {kVtSplitPattern, R"re(\s?[!-/:-~\x{FF01}-\x{FF0F}\x{FF1A}-\x{FF5E}\x{2018}-\x{201F}\x{3000}-\x{3002}]+)re"},
    {kVtSplitPattern, R"re(\s+$)re"},
    kHanAndHangul,
    kDigits};
constexpr SplitStep kDeepseekCoderKind[] = {
    kLineBreak, {kVtSplitPattern, R"re(\s?\p{L}+)re"}, {kVtSplitPattern, R"re(\s?\p{P}+)re"}, kHanAndHangul, kDigit};
constexpr SplitStep kSparkKind[] = {
    kUpToThreeDigits, kHanAndKana, {kVtSplitPattern, VEDETTE_PUNCTUATION_WORDS R"re(|[\r\n]|\s+(?!\S)|\s+)re"}, kDigit};
constexpr SplitStep kYoutuKind[] = {
    {kVtSplitPattern,
     R"re([\x{AC00}-\x{D7A3}\x{3131}-\x{318E}]+)re"
     R"re(|[\x{FF01}\x{2026}\x{201C}\x{201D}\x{2018}\x{2019}\x{2014}\x{FF1A}\x{FF1B}\x{FF0C}\x{3001}-\x{303F}\x{FE30}-\x{FE4F}]+)re"
     R"re(|[\x{3105}-\x{312F}]+|[\x{4E00}-\x{9FA5}\x{3040}-\x{309F}\x{30A0}-\x{30FF}]+)re"},
    {kVtSplitPattern, VEDETTE_WORD_UPPER_LOWER VEDETTE_CONTRACTIONS
     "?|" VEDETTE_WORD_UPPER VEDETTE_CONTRACTIONS R"re(?|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*)re" VEDETTE_SPACES}};
constexpr SplitStep kFalconKind[] = {{kVtSplitPattern, R"re([\p{P}\$\+<=>\^~\|`]+)re"}, kGpt2, kThreeDigits};
constexpr SplitStep kDefaultKind[] = {{kVtSplitPattern, R"re([\p{P}\$\+<=>\^~\|]+)re"}, kGpt2, kDigits, kThreeDigits};
constexpr SplitStep kQwen35Kind[] = {{kVtSplitPattern,
                                      VEDETTE_CONTRACTIONS R"re(|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N})re"
                                                           R"re(| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*)re" VEDETTE_SPACES}};
constexpr SplitStep kBloomWords = {kVtSplitPattern,
                                   R"re( ?[^(\s|.,!?\x{2026}\x{3002}\x{FF0C}\x{3001}\x{0964}\x{06D4}\x{060C})]+)re"};
constexpr SplitStep kBloomKind[] = {kBloomWords};
constexpr SplitStep kVikingKind[] = {kBloomWords, kDigit};
constexpr SplitStep kTekkenKind[] = {{kVtSplitPattern, VEDETTE_WORD_UPPER_LOWER
                                      "|" VEDETTE_WORD_UPPER
                                      R"re(|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*)re" VEDETTE_SPACES}};
constexpr SplitStep kChameleonKind[] = {
    {kVtSplitPattern, R"re(<sentinel:[0-9]+>)re"},    {kVtSplitPattern, R"re((IMGIMG)((A|B|C|D|E|F|G|H|I){1,4})Z)re"},
    {kVtSplitPattern, R"re([\t\n]|    |  )re"},       kDigit,
    {kVtSplitPattern, R"re([\p{P}!-/:-@\[-`{-~])re"}, kGpt2};
constexpr SplitStep kKimiKind[] = {{kVtSplitPattern,
                                    R"re([\p{Han}]+)re"
                                    R"re(|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]*)re"
                                    R"re([\p{Ll}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]+)re" VEDETTE_CONTRACTIONS "?"
                                    R"re(|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]+)re"
                                    R"re([\p{Ll}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]*)re" VEDETTE_CONTRACTIONS "?"
                                    R"re(|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*)re" VEDETTE_SPACES}};
constexpr SplitStep kBailingKind[] = {
    {kVtSplitPattern, R"re('(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]++[\r\n]*)re"
                      R"re(|\s*[\r\n]|\s+(?!\S)|\s+)re"}};
constexpr SplitStep kSeedCoderKind[] = {
    {kVtSplitPattern,
     VEDETTE_CONTRACTIONS R"re(|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1}| ?[^\s\p{L}\p{N}\r\n]+)re" VEDETTE_SPACES}};
constexpr SplitStep kUfakzekaKind[] = {
    {kVtSplitPattern, R"re([^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*)re" VEDETTE_SPACES}};
constexpr SplitStep kAfmoeKind[] = {
    {kVtSplitDigitsByThree, {}},
    {kVtSplitPattern,
     R"re([\x{4E00}-\x{9FFF}\x{3400}-\x{4DBF}\x{F900}-\x{FAFF}\x{3040}-\x{309F}\x{30A0}-\x{30FF}\x{FF65}-\x{FF9F})re"
     R"re(\x{2F00}-\x{2FDF}\x{0E00}-\x{0E7F}\x{0E80}-\x{0EFF}\x{1780}-\x{17FF}\x{1000}-\x{109F}\x{AA60}-\x{AA7F})re"
     R"re(\x{A9E0}-\x{A9FF}\x{AC00}-\x{D7AF}\x{1100}-\x{11FF}]+)re"},
    kPunctuationWords};
constexpr SplitStep kExaoneMoeKind[] = {{kVtSplitPattern, VEDETTE_CONTRACTIONS
                                         R"re(|[^\r\n\p{L}\p{N}]?(?:\p{L}\p{M}*(?: \p{L}\p{M}*)*)+|\p{N})re"
                                         R"re(| ?[^\s\p{L}\p{N}]+[\r\n/]?|\s*[\r\n]|\s+(?!\S)|\s+)re"}};
constexpr SplitStep kMinicpm5Kind[] = {
    kUpToThreeDigits,
    {kVtSplitPattern, VEDETTE_CONTRACTIONS R"re(|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}+)re"
                                           R"re(| ?[^\s\p{L}\p{N}]+[\r\n]*)re" VEDETTE_SPACES}};

#undef VEDETTE_CONTRACTIONS
#undef VEDETTE_SPACES
#undef VEDETTE_WORD_UPPER_LOWER
#undef VEDETTE_WORD_UPPER
#undef VEDETTE_PUNCTUATION_WORDS

struct Kind {
  std::string_view names;  // separated by spaces
  PreTokenizer rules;
};

constexpr Kind kKinds[] = {
    {"default", {.steps = kDefaultKind}},
    {"llama3 llama-v3 llama-bpe falcon3 falcon-h1 pixtral midm-2.0 lfm2 jina-v5-nano",
     {.steps = kLlama3Kind, .ignore_merges = true, .add_bos = true}},
    {"dbrx smaug-bpe", {.steps = kLlama3Kind}},
    {"chatglm-bpe", {.steps = kLlama3Kind, .default_bos = false}},
    {"glm4 glm5", {.steps = kLlama3Kind, .ignore_merges = true, .default_bos = false}},
    {"jais-2", {.steps = kJais2Kind}},
    {"deepseek-llm", {.steps = kDeepseekLlmKind}},
    {"deepseek-coder", {.steps = kDeepseekCoderKind}},
    {"deepseek-v3 hunyuan-dense hy_v4 joyai-llm", {.steps = kDeepseek3Kind}},
    {"spark2_5", {.steps = kSparkKind}},
    {"youtu", {.steps = kYoutuKind, .ignore_merges = true}},
    {"falcon", {.steps = kFalconKind}},
    {"starcoder refact command-r smollm codeshell exaone minerva-7b mellum2", {.steps = kStarcoderKind}},
    {"gpt-2 phi-2 jina-es jina-de gigachat jina-v2-es jina-v2-de a.x-4.0 mellum modern-bert mpt olmo jais trillion "
     "granite-docling exaone4 jina-v1-en jina-v2-code roberta-bpe",
     {.steps = kGpt2Kind}},
    {"qwen2 deepseek-r1-qwen kormo f2llmv2 stablelm2 hunyuan solar-open megrez grok-2", {.steps = kQwen2Kind}},
    {"qwen35", {.steps = kQwen35Kind}},
    {"poro-chat bloom gpt3-finnish", {.steps = kBloomKind}},
    {"viking", {.steps = kVikingKind}},
    {"tekken", {.steps = kTekkenKind, .ignore_merges = true, .add_bos = true}},
    {"chameleon", {.steps = kChameleonKind, .add_bos = true}},
    {"gpt-4o llama4 kanana2 talkie minimax-m2", {.steps = kGpt4oKind}},
    {"granite-embed-multi-97m", {.steps = kGpt4oKind, .ignore_merges = true}},
    {"tiny_aya cohere2moe", {.steps = kTinyAyaKind}},
    {"superbpe", {.steps = kSuperBpeKind}},
    {"kimi-k2", {.steps = kKimiKind}},
    {"bailingmoe bailingmoe2 llada-moe", {.steps = kBailingKind}},
    {"seed-coder", {.steps = kSeedCoderKind}},
    {"ufakzeka", {.steps = kUfakzekaKind}},
    {"afmoe", {.steps = kAfmoeKind}},
    {"laguna", {.steps = kLagunaKind}},
    {"exaone-moe", {.steps = kExaoneMoeKind}},
    {"minicpm5", {.steps = kMinicpm5Kind, .ignore_merges = true}},
    {"gemma4 granite-embed-multi-311m",
     {.steps = kLinesKind, .byte_level = false, .whole_newlines = true, .always_bos = true}},
    {"sarvam-moe", {.steps = kLinesKind, .byte_level = false}},
};

template <typename Visit>
void each_name(std::string_view names, Visit&& visit) {
  while (!names.empty()) {
    const size_t end = std::min(names.find(' '), names.size());
    visit(names.substr(0, end));
    names.remove_prefix(std::min(end + 1, names.size()));
  }
}

}  // namespace

const PreTokenizer* find_pre_tokenizer(std::string_view kind) {
  if (kind.empty()) kind = "default";
  for (const Kind& entry : kKinds) {
    bool found = false;
    each_name(entry.names, [&](std::string_view name) { found = found || name == kind; });
    if (found) return &entry.rules;
  }
  return nullptr;
}

std::string pre_tokenizer_kinds() {
  std::vector<std::string_view> names;
  for (const Kind& entry : kKinds) each_name(entry.names, [&](std::string_view name) { names.push_back(name); });
  std::sort(names.begin(), names.end());
  std::string list;
  for (const std::string_view name : names) {
    if (!list.empty()) list += ", ";
    list += name;
  }
  return list;
}

}  // namespace vedette::text
