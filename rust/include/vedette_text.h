/* C border of the `vedette_text` static library: tokenizers, chat templates, grammars.
 *
 * Conventions. Text is UTF-8 given as pointer and length, never NUL-terminated. Every function that can fail
 * returns a VtStatus and, unless it is kVtOk, fills *error with one line of text that the caller frees. Outputs are
 * written only on kVtOk. No panic crosses this border: one is caught and reported as kVtPanic. All objects are
 * immutable after creation and may be used from any thread, but where it says otherwise. */
#ifndef VEDETTE_TEXT_H
#define VEDETTE_TEXT_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum {
  kVtOk = 0,
  kVtInvalid = 1, /* the input is wrong */
  kVtRaised = 2,  /* a template called raise_exception; *error is its text */
  kVtPanic = 3    /* our own mistake */
} VtStatus;

typedef struct {
  uint8_t* data;
  size_t size;
} VtBytes;

typedef struct {
  uint32_t* data;
  size_t size;
} VtIds;

void vt_bytes_free(VtBytes bytes);
void vt_ids_free(VtIds ids);

/* Texts laid end to end: text i is bytes[ends[i-1], ends[i]), with ends[-1] = 0. Borrowed for the call. */
typedef struct {
  const uint8_t* bytes;
  size_t size;
  const uint32_t* ends;
  size_t count;
} VtTexts;

typedef struct VtTokenizer VtTokenizer;

/* A Hugging Face tokenizer.json. extra_tokens: a JSON array of added-token objects ({"content", "special", "lstrip",
 * "rstrip", "single_word", "normalized"}) to add where missing; may be empty (size 0). */
VtStatus vt_tokenizer_from_json(const uint8_t* json, size_t size, const uint8_t* extra_tokens, size_t extra_size,
                                VtTokenizer** out, VtBytes* error);

/* One step of splitting a text before byte-pair merging; steps apply in order to each piece of the one before. */
typedef enum {
  kVtSplitPattern = 0,       /* matches of `pattern` and the gaps between them become pieces */
  kVtSplitDigitsByThree = 1, /* runs of decimal digits in groups of three counted from their right end */
  kVtSplitDigitsBounded = 2  /* the same, only for runs that end at a word boundary */
} VtSplitKind;

typedef struct {
  int32_t kind; /* VtSplitKind */
  const uint8_t* pattern;
  size_t pattern_size;
} VtSplit;

typedef struct {
  const VtSplit* splits;
  size_t split_count;
  int32_t byte_level;     /* pieces are written in the GPT-2 byte alphabet; else raw UTF-8 with <0xNN> fallback */
  int32_t ignore_merges;  /* a piece that is a token is taken whole */
  int32_t whole_newlines; /* a piece of newlines that is a token is taken whole */
} VtBpeRules;

/* A byte-pair vocabulary. tokens: text of id i at i. merges: "left right" in order of rank. Special tokens are the
 * caller's business. */
VtStatus vt_tokenizer_from_bpe(VtTexts tokens, VtTexts merges, const VtBpeRules* rules, VtTokenizer** out,
                               VtBytes* error);

/* A WordPiece vocabulary as BERT writes it ("##" marks a continuation), uncased. */
VtStatus vt_tokenizer_from_wordpiece(VtTexts tokens, const uint8_t* unknown, size_t unknown_size, VtTokenizer** out,
                                     VtBytes* error);

void vt_tokenizer_free(VtTokenizer* tokenizer);

/* Only a tokenizer from JSON heeds add_special (its post-processor) and parse_special (special tokens in the text). */
VtStatus vt_tokenizer_encode(const VtTokenizer* tokenizer, const uint8_t* text, size_t size, int32_t add_special,
                             int32_t parse_special, VtIds* out, VtBytes* error);

/* A tokenizer from JSON described as JSON: {"size", "model", "decoder", "added_tokens": [{"id", "content",
 * "special"}]}; size is the largest id plus one. */
VtStatus vt_tokenizer_describe(const VtTokenizer* tokenizer, VtBytes* out, VtBytes* error);
/* All tokens of a tokenizer from JSON in id order (ends as in VtTexts); ids that do not exist are empty. */
VtStatus vt_tokenizer_tokens(const VtTokenizer* tokenizer, VtBytes* bytes, VtIds* ends, VtBytes* error);
/* The crate's own decoding, the reference of tests. */
VtStatus vt_tokenizer_decode(const VtTokenizer* tokenizer, const uint32_t* ids, size_t count, int32_t skip_special,
                             VtBytes* out, VtBytes* error);

typedef struct VtTemplate VtTemplate;

/* A chat template, checked to be UTF-8 and within limits of size and shape. *error names line and column. */
VtStatus vt_template_parse(const uint8_t* source, size_t size, VtTemplate** out, VtBytes* error);
void vt_template_free(VtTemplate* chat_template);
/* variables: a JSON object. now: seconds since 1970 for strftime_now (local time), negative for the clock's. */
VtStatus vt_template_render(const VtTemplate* chat_template, const uint8_t* variables, size_t size, int64_t now,
                            VtBytes* out, VtBytes* error);

typedef struct VtGrammars VtGrammars;

/* Bytes of tokens laid end to end as in VtTexts, any bytes. A special token begins with the byte 0xff, then its text.
 */
typedef struct {
  const uint8_t* bytes;
  size_t size;
  const uint32_t* ends;
  size_t count;
} VtTokenBytes;

/* A compiler of grammars over one vocabulary. eos: tokens that end a text. */
VtStatus vt_grammars_create(VtTokenBytes tokens, const uint32_t* eos, size_t eos_count, VtGrammars** out,
                            VtBytes* error);
void vt_grammars_free(VtGrammars* grammars);

/* State of one text under a grammar. Not immutable: used from one thread at a time. */
typedef struct VtMatcher VtMatcher;

/* kind is "json" (a JSON schema), "regex" or "lark". Bounded in time and memory. */
VtStatus vt_grammars_compile(const VtGrammars* grammars, const uint8_t* kind, size_t kind_size, const uint8_t* text,
                             size_t size, VtMatcher** out, VtBytes* error);
VtStatus vt_matcher_clone(const VtMatcher* matcher, VtMatcher** out, VtBytes* error);
void vt_matcher_free(VtMatcher* matcher);
/* Tokens that may come next: bit id % 32 of word id / 32; words past the vocabulary are zero. The end tokens are among
 * them where the text may end here. */
VtStatus vt_matcher_mask(VtMatcher* matcher, uint32_t* words, size_t count, VtBytes* error);
/* After a failure the matcher stays failed. */
VtStatus vt_matcher_consume(VtMatcher* matcher, uint32_t token, VtBytes* error);
/* Whether nothing may follow. */
int32_t vt_matcher_stopped(const VtMatcher* matcher);

#ifdef __cplusplus
}
#endif

#endif
