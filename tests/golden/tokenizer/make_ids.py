#!/usr/bin/env python3
"""Makes ids_smollm2.bin, ids_gemma.bin and disagreements.json from strings.bin with the reference tokenizers.

    python3 make_ids.py MODEL_DIR LLAMA_BATCH

MODEL_DIR holds the two GGUF files, LLAMA_BATCH is llama_batch.cpp built. Needs gguf, tokenizers, sentencepiece,
protobuf. Each text is first repaired to valid UTF-8 (U+FFFD per maximal ill-formed part), as our tokenizer does.

SmolLM2: llama.cpp, and the `tokenizers` library on the file's vocabulary with the model's own pre-tokenizer (digits
apart, then GPT-2's pattern). Gemma: llama.cpp, and the `sentencepiece` library on a model made of the file's
vocabulary. Where the two references differ, the library's ids are the golden ones and the text is listed in
disagreements.json with both lists.

Format of ids_*.bin: for each text twice (special tokens in the text read, then not) the number of ids and the ids, all
as unsigned LEB128 numbers; a count of 1,000,000 stands for "the same as the first list". BOS is not added.
"""

import json
import os
import struct
import subprocess
import sys

import sentencepiece
from gguf import GGUFReader
from sentencepiece import sentencepiece_model_pb2
from tokenizers import AddedToken, Regex, Tokenizer, models, pre_tokenizers

HERE = os.path.dirname(os.path.abspath(__file__))
SMOLLM2 = "SmolLM2-135M-Instruct.Q4_1.gguf"
GEMMA = "gemma-3-270m.Q4_K_M.gguf"
SAME = 1_000_000
CONTROL, USER_DEFINED = 3, 4


def read_strings():
    with open(os.path.join(HERE, "strings.bin"), "rb") as file:
        data = file.read()
    strings, at = [], 0
    while at < len(data):
        size, shift = 0, 0
        while True:
            byte = data[at]
            at += 1
            size |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                break
        strings.append(data[at:at + size].decode("utf-8", "replace"))
        at += size
    return strings


def leb128(value):
    out = bytearray()
    while True:
        byte = value & 0x7F
        value >>= 7
        out.append(byte | (0x80 if value else 0))
        if not value:
            return bytes(out)


def llama_cpp(batch, model, strings, parse_special):
    data = b"".join(struct.pack("<I", len(s.encode())) + s.encode() for s in strings)
    out = subprocess.run([batch, model, "0", "1" if parse_special else "0"], input=data, capture_output=True, check=True)
    lines = out.stdout.decode().split("\n")[:-1]
    assert len(lines) == len(strings), (len(lines), len(strings))
    return [[int(i) for i in line.split()] for line in lines]


def vocabulary(path):
    fields = GGUFReader(path).fields
    get = lambda key: fields["tokenizer.ggml." + key].contents() if "tokenizer.ggml." + key in fields else None
    return {key: get(key) for key in ("tokens", "token_type", "scores", "merges")}


def tokenizers_library(vocab, parse_special):
    ids = {token: i for i, token in enumerate(vocab["tokens"])}
    merges = [tuple(merge.split(" ")) for merge in vocab["merges"]]
    tokenizer = Tokenizer(models.BPE(vocab=ids, merges=merges))
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True)])
    tokenizer.add_special_tokens(
        [AddedToken(t, special=True, normalized=False) for t, kind in zip(vocab["tokens"], vocab["token_type"]) if kind == CONTROL])
    tokenizer.encode_special_tokens = not parse_special
    return lambda text: tokenizer.encode(text, add_special_tokens=False).ids


def sentencepiece_library(vocab):
    proto = sentencepiece_model_pb2.ModelProto()
    kinds = sentencepiece_model_pb2.ModelProto.SentencePiece
    for token, kind, score in zip(vocab["tokens"], vocab["token_type"], vocab["scores"]):
        piece = proto.pieces.add()
        piece.piece = token.replace(" ", "\u2581") if kind == USER_DEFINED else token
        piece.score = score
        piece.type = kinds.UNKNOWN if token == "<unk>" else kind
    proto.trainer_spec.model_type = sentencepiece_model_pb2.TrainerSpec.BPE
    proto.trainer_spec.byte_fallback = True
    proto.trainer_spec.vocab_size = len(vocab["tokens"])
    for name, text in (("unk", "<unk>"), ("bos", "<bos>"), ("eos", "<eos>"), ("pad", "<pad>")):
        setattr(proto.trainer_spec, name + "_id", vocab["tokens"].index(text))
        setattr(proto.trainer_spec, name + "_piece", text)
    proto.normalizer_spec.name = "identity"
    proto.normalizer_spec.add_dummy_prefix = False
    proto.normalizer_spec.remove_extra_whitespaces = False
    proto.normalizer_spec.escape_whitespaces = True
    processor = sentencepiece.SentencePieceProcessor()
    processor.LoadFromSerializedProto(proto.SerializeToString())
    return processor.EncodeAsIds


def with_control_tokens(encode, vocab):
    """sentencepiece knows no control tokens in a text: they are cut out here, leftmost and longest first."""
    control = {t: i for i, (t, kind) in enumerate(zip(vocab["tokens"], vocab["token_type"])) if kind == CONTROL}
    longest = max(map(len, control))

    def run(text):
        ids, start, at = [], 0, 0
        while at < len(text):
            match = next((text[at:at + n] for n in range(longest, 0, -1) if text[at:at + n] in control), None) if text[at] in "<[" else None
            if match is None:
                at += 1
                continue
            ids += encode(text[start:at]) + [control[match]]
            at += len(match)
            start = at
        return ids + encode(text[start:])

    return run


def main():
    folder, batch = sys.argv[1:3]
    strings = read_strings()
    disagreements = []
    for name, file in (("smollm2", SMOLLM2), ("gemma", GEMMA)):
        path = os.path.join(folder, file)
        vocab = vocabulary(path)
        if name == "smollm2":
            library = [tokenizers_library(vocab, parse) for parse in (True, False)]
        else:
            plain = sentencepiece_library(vocab)
            library = [with_control_tokens(plain, vocab), plain]
        lists = []
        for parse, encode in zip((True, False), library):
            golden = [encode(text) for text in strings]
            other = llama_cpp(batch, path, strings, parse)
            for index, (a, b) in enumerate(zip(golden, other)):
                if a != b:
                    disagreements.append({"model": name, "string": index, "text": strings[index], "parse_special": parse, "library": a, "llama_cpp": b})
            lists.append(golden)
        with open(os.path.join(HERE, f"ids_{name}.bin"), "wb") as out:
            for parsed, literal in zip(*lists):
                out.write(b"".join(map(leb128, [len(parsed)] + parsed)))
                out.write(leb128(SAME) if parsed == literal else b"".join(map(leb128, [len(literal)] + literal)))
        print(name, sum(map(len, lists[0])), "ids")
    with open(os.path.join(HERE, "disagreements.json"), "w") as out:
        json.dump(disagreements, out, ensure_ascii=True, indent=0)
        out.write("\n")
    print(len(disagreements), "disagreements between the references")


if __name__ == "__main__":
    main()
