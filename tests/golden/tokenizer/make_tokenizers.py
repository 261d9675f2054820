#!/usr/bin/env python3
"""Makes json/*.json (small tokenizer.json files) and json_cases.json: what the Python tokenizers library does with them.

    python3 make_tokenizers.py

Needs tokenizers. Each file is trained on the sentences of make_strings.py, or built by hand; between them they hold
each model kind, the usual normalizers, pre-tokenizers, decoders and post-processors, and added tokens of each kind.
"""

import json
import os

from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers

import make_strings
from make_ids import read_strings

HERE = os.path.dirname(os.path.abspath(__file__))
PLAIN = [" ".join(make_strings.SENTENCES[:8])] + make_strings.SENTENCES[:8] + make_strings.CODE
CONTRACTIONS = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"


def added():
    return [AddedToken("<s>", special=True), AddedToken("</s>", special=True), AddedToken("<|left|>", special=True, lstrip=True),
            AddedToken("<|right|>", special=True, rstrip=True), AddedToken("<tool>", special=False, normalized=False),
            AddedToken("WORD", special=False, single_word=True), AddedToken("    ", special=False, normalized=False)]


def bos(tokenizer, single="<s> $A"):
    tokenizer.post_processor = processors.TemplateProcessing(single=single, pair=single + " $B", special_tokens=[
        ("<s>", tokenizer.token_to_id("<s>")), ("</s>", tokenizer.token_to_id("</s>"))])


def byte_level():
    t = Tokenizer(models.BPE())
    t.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.Split(Regex(CONTRACTIONS), "isolated"), pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])
    t.decoder = decoders.ByteLevel()
    t.train_from_iterator(PLAIN, trainers.BpeTrainer(vocab_size=500, initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), show_progress=False))
    t.add_tokens(added())
    bos(t)
    return t


def byte_fallback():
    t = Tokenizer(models.BPE())
    t.normalizer = normalizers.Sequence([normalizers.Prepend("\u2581"), normalizers.Replace(" ", "\u2581")])
    t.train_from_iterator(PLAIN, trainers.BpeTrainer(vocab_size=300, show_progress=False))
    state = json.loads(t.to_str())
    vocab = {"<unk>": 0, "<s>": 1, "</s>": 2} | {f"<0x{b:02X}>": 3 + b for b in range(256)}
    for token in state["model"]["vocab"]:
        vocab.setdefault(token, len(vocab))
    t.model = models.BPE(vocab=vocab, merges=[tuple(m) for m in state["model"]["merges"]], unk_token="<unk>", fuse_unk=True, byte_fallback=True)
    t.decoder = decoders.Sequence([decoders.Replace("\u2581", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)])
    t.add_tokens(added())
    bos(t, "<s> $A </s>")
    return t


def unigram():
    t = Tokenizer(models.Unigram())
    t.normalizer = normalizers.NFKC()
    t.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="first")
    t.decoder = decoders.Metaspace(prepend_scheme="first")
    t.train_from_iterator(PLAIN, trainers.UnigramTrainer(vocab_size=300, special_tokens=["<unk>"], unk_token="<unk>", show_progress=False))
    t.add_tokens(added())
    return t


def word_piece():
    t = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    t.normalizer = normalizers.BertNormalizer()
    t.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    t.decoder = decoders.WordPiece(cleanup=False)
    t.train_from_iterator(PLAIN, trainers.WordPieceTrainer(vocab_size=300, special_tokens=["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"], show_progress=False))
    t.post_processor = processors.BertProcessing(("[SEP]", 3), ("[CLS]", 2))
    t.enable_truncation(16)
    t.enable_padding(length=16)
    return t


def gpt2_digits():
    t = Tokenizer(models.BPE())
    t.normalizer = normalizers.NFC()
    t.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.ByteLevel(add_prefix_space=True)])
    t.decoder = decoders.ByteLevel()
    t.train_from_iterator(PLAIN, trainers.BpeTrainer(vocab_size=400, initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), show_progress=False))
    t.add_tokens(added())
    return t


def main():
    os.makedirs(os.path.join(HERE, "json"), exist_ok=True)
    strings = [s for i, s in enumerate(read_strings()) if i % 23 == 0 and len(s) < 200]
    strings += ["a<|left|>b", "a  <|left|>  b", "a <|right|>  \n b", "WORD SWORD WORDS (WORD)", "<tool>x<tool>", "x    y     z", "<s>a</s>", "  lead", "trail  ", "\u2581a", "WORD's", "[CLS] a [MASK]"]
    cases = {}
    for make in (byte_level, byte_fallback, unigram, word_piece, gpt2_digits):
        tokenizer = make()
        name = make.__name__
        path = os.path.join(HERE, "json", name + ".json")
        with open(path, "w", encoding="utf-8") as file:
            file.write(json.dumps(json.loads(tokenizer.to_str()), ensure_ascii=False, separators=(",", ":")) + "\n")
        tokenizer = Tokenizer.from_file(path)
        tokenizer.no_truncation()
        tokenizer.no_padding()
        ids = {}
        for literal in (False, True):
            tokenizer.encode_special_tokens = literal
            for special in (False, True):
                ids[f"{'literal' if literal else 'parsed'}{' special' if special else ''}"] = [tokenizer.encode(s, add_special_tokens=special).ids for s in strings]
        cases[name] = ids
    with open(os.path.join(HERE, "json_cases.json"), "w", encoding="utf-8") as file:
        file.write(json.dumps({"strings": strings, "ids": cases}, ensure_ascii=True, separators=(",", ":")) + "\n")
    print(len(strings), "strings,", len(cases), "tokenizers")


if __name__ == "__main__":
    main()
