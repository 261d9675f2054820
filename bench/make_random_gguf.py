#!/usr/bin/env python3
"""Writes a GGUF file of a known model's shape with random weights: speed depends on shapes and formats alone.

    python3 make_random_gguf.py OUT.gguf [--type Q4_0] [--head-type Q8_0] [--shape 0.6B] [--layers N] [--seed 0]
                                [--vocabulary full]

Shapes: Qwen3-0.6B (tied head) and Qwen3-8B (untied; one random layer, written as often as there are layers). Types:
F32, F16, BF16, Q4_0, Q4_1, Q5_0, Q5_1, Q8_0, Q2_K, Q3_K, Q4_K, Q5_K, Q6_K, and the mix Q4_K_M as llama.cpp's quantizer
lays it out. K-quants are random blocks with small scales, the others quantized normal numbers. The head is Q8_0 unless
--head-type says otherwise, Q6_K in Q4_K_M. The vocabulary is the 256 bytes and fillers, so that any text has tokens;
`--vocabulary full` instead has as many merges as Qwen3's, each making a token of its own, and its control tokens. Needs
gguf and numpy.

The files that bars.py looks for:

    for type in Q4_0 Q4_1 Q4_K_M Q8_0 BF16; do python3 make_random_gguf.py DIR/q06-$type.gguf --type $type; done
    for bits in 4 8; do vedette convert DIR/q06-BF16.gguf --q-bits $bits --q-group-size 64 -o DIR/mlx$bits; done
    python3 make_random_gguf.py DIR/8b-Q4_0.gguf --shape 8B
"""

import argparse
from typing import NamedTuple

import numpy as np
from gguf import GGML_QUANT_SIZES, GGMLQuantizationType, GGUFWriter
from gguf.quants import quantize



class Shape(NamedTuple):
    name: str
    layers: int
    hidden: int
    feed_forward: int
    heads: int
    tied: bool


SHAPES = {"0.6B": Shape("Qwen3-0.6B", 28, 1024, 3072, 16, True), "8B": Shape("Qwen3-8B", 36, 4096, 12288, 32, False)}
KV_HEADS, HEAD_DIM, VOCAB = 8, 128, 151_936
MERGES, LONGEST_TOKEN = 151_387, 11
CONTEXT, ROPE_BASE, EPSILON = 40_960, 1_000_000.0, 1e-6
# Byte offsets of the float16 scales inside a block of each K-quant.
SCALE_OFFSETS = {"Q2_K": (80, 82), "Q3_K": (108,), "Q4_K": (0, 2), "Q5_K": (0, 2), "Q6_K": (208,)}


def random_matrix(rng, rows, cols, type_name):
    kind = GGMLQuantizationType[type_name]
    if type_name not in SCALE_OFFSETS:
        return quantize(rng.standard_normal((rows, cols), dtype=np.float32) * np.float32(0.02), kind)
    block, size = GGML_QUANT_SIZES[kind]
    blocks = rng.integers(0, 256, (rows, cols // block, size), dtype=np.uint8)
    scale = np.frombuffer(np.float16(2e-5).tobytes(), np.uint8)
    for offset in SCALE_OFFSETS[type_name]:
        blocks[..., offset:offset + 2] = scale
    return blocks.reshape(rows, -1)


def layer_type(type_name, name, layer, layers):
    """Type of a layer's matrix: in Q4_K_M, values and the way down are finer in the first and last eighths and in every
    third layer between."""
    if type_name != "Q4_K_M":
        return type_name
    eighth = layers // 8
    finer = layer < eighth or layer >= 7 * layers // 8 or (layer - eighth) % 3 == 2
    return "Q6_K" if finer and name in ("attn_v", "ffn_down") else "Q4_K"


def byte_tokens():
    """The 256 bytes in the byte-level alphabet of GPT-2: printable ones stand for themselves, others from U+0100 on."""
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    shifted = iter(range(0x100, 0x200))
    return [chr(byte) if byte in printable else chr(next(shifted)) for byte in range(256)]


def random_merges(rng, tokens, count):
    """Pairs whose joined texts are new tokens, in rank order; texts of letters and spaces are likelier, as in real ones."""
    tokens, merges = list(tokens), []
    known = set(tokens)
    space = "\u0120"  # stands for the byte 0x20
    letters = [space, *"etaoinshrdlucmfwypvbgkjqxz"]
    pool = letters * 40 + tokens
    while len(merges) < count:
        for left, right, begin in zip(rng.random(4096), rng.random(4096), rng.random(4096)):
            # Squares favour the older, shorter tokens.
            a, b = pool[int(left * left * len(pool))], pool[int(right * right * len(pool))]
            if begin < 0.2:
                a = space
            text = a + b
            if len(merges) == count or len(text) > LONGEST_TOKEN or text in known or space in b:
                continue
            known.add(text)
            pool.append(text)
            tokens.append(text)
            merges.append(f"{a} {b}")
    return tokens, merges


def add_full_vocabulary(writer, rng):
    tokens, merges = random_merges(rng, byte_tokens(), MERGES)
    control = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
    fillers = [f"[PAD{i}]" for i in range(len(tokens) + len(control), VOCAB)]
    writer.add_token_list(tokens + control + fillers)
    writer.add_token_types([1] * len(tokens) + [3] * len(control) + [5] * len(fillers))
    writer.add_token_merges(merges)
    writer.add_eos_token_id(len(tokens) + 2)
    writer.add_add_bos_token(False)


def add_byte_vocabulary(writer):
    tokens = byte_tokens() + ["he"]
    fillers = [f"<|filler_{i}|>" for i in range(len(tokens), VOCAB - 1)]
    writer.add_token_list(tokens + fillers + ["<|end|>"])
    writer.add_token_types([1] * len(tokens) + [5] * len(fillers) + [3])
    writer.add_token_merges(["h e"])
    writer.add_eos_token_id(VOCAB - 1)
    writer.add_add_bos_token(False)


def add_metadata(writer, shape, layers):
    writer.add_name(f"random weights, shape of {shape.name}")
    writer.add_block_count(layers)
    writer.add_context_length(CONTEXT)
    writer.add_embedding_length(shape.hidden)
    writer.add_feed_forward_length(shape.feed_forward)
    writer.add_head_count(shape.heads)
    writer.add_head_count_kv(KV_HEADS)
    writer.add_key_length(HEAD_DIM)
    writer.add_value_length(HEAD_DIM)
    writer.add_rope_freq_base(ROPE_BASE)
    writer.add_layer_norm_rms_eps(EPSILON)
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("qwen2")


def add_tensors(writer, rng, args, shape, layers):
    head_type = args.head_type or ("Q6_K" if args.type == "Q4_K_M" else "Q8_0")
    made = {}

    def matrix(name, rows, cols, type_name, key=None):
        if key is None or (key, type_name) not in made:
            made[key, type_name] = random_matrix(rng, rows, cols, type_name)
        writer.add_tensor(name, made[key, type_name], raw_dtype=GGMLQuantizationType[type_name])

    def norm(name, size):
        writer.add_tensor(name, np.ones(size, np.float32))

    query, key_value = shape.heads * HEAD_DIM, KV_HEADS * HEAD_DIM
    matrix("token_embd.weight", VOCAB, shape.hidden, head_type)
    for i in range(layers):
        norm(f"blk.{i}.attn_norm.weight", shape.hidden)
        norm(f"blk.{i}.attn_q_norm.weight", HEAD_DIM)
        norm(f"blk.{i}.attn_k_norm.weight", HEAD_DIM)
        norm(f"blk.{i}.ffn_norm.weight", shape.hidden)
        for name, rows, cols in (("attn_q", query, shape.hidden), ("attn_k", key_value, shape.hidden),
                                 ("attn_v", key_value, shape.hidden), ("attn_output", shape.hidden, query),
                                 ("ffn_gate", shape.feed_forward, shape.hidden),
                                 ("ffn_up", shape.feed_forward, shape.hidden),
                                 ("ffn_down", shape.hidden, shape.feed_forward)):
            matrix(f"blk.{i}.{name}.weight", rows, cols, layer_type(args.type, name, i, layers),
                   None if shape.tied else name)
    norm("output_norm.weight", shape.hidden)
    if not shape.tied:
        matrix("output.weight", VOCAB, shape.hidden, head_type)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("output")
    parser.add_argument("--type", default="Q4_0")
    parser.add_argument("--head-type", help="type of the embedding and the head")
    parser.add_argument("--shape", choices=SHAPES, default="0.6B")
    parser.add_argument("--layers", type=int)
    parser.add_argument("--vocabulary", choices=["bytes", "full"], default="bytes")
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()

    rng = np.random.default_rng(args.seed)
    shape = SHAPES[args.shape]
    layers = args.layers or shape.layers
    writer = GGUFWriter(args.output, "qwen3")
    add_metadata(writer, shape, layers)
    if args.vocabulary == "full":
        add_full_vocabulary(writer, np.random.default_rng(args.seed + 1))
    else:
        add_byte_vocabulary(writer)
    add_tensors(writer, rng, args, shape, layers)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


main()
