#!/usr/bin/env python3
"""Makes greedy_smollm2.json and greedy_gemma.json: 20 prompts x 64 greedy tokens by transformers, and reference logits.

    python3 make_greedy.py MODEL_DIR [smollm2|gemma ...]

Needs torch, transformers 5.17, gguf, tokenizers, sentencepiece, jinja2. The weights are the file's, dequantized to
float32; float32 arithmetic, eager attention, one prompt at a time. Each token comes with its margin: the distance of
the two highest logits. A token whose margin is below 1e-3 is a near-tie that another order of float32 sums may
decide otherwise. End tokens do not end a continuation.
"""

import hashlib
import json
import os
import sys

from gguf import GGUFReader

import reference

HERE = os.path.dirname(os.path.abspath(__file__))
TOKENS = 64
LOGIT_PROMPT = 64
TOP = 50

RAW = [
    "In 1969, the first people to walk on the Moon",
    "The lighthouse keeper climbed the stairs one last time and",
    "To make a simple vegetable soup, begin by",
    "def fibonacci(n):\n    \"\"\"Return the n-th Fibonacci number.\"\"\"\n",
    "Water boils at a lower temperature on a mountain because",
    "Once upon a time, in a village between two rivers, there lived",
    "The three primary colours are",
    "Dear Sir,\n\nI am writing to you about the letter of 12 March, in which",
    "1, 2, 4, 8, 16, 32,",
    "Question: Why is the sky blue?\nAnswer:",
    "Les trains pour Lyon partent de la gare",
    "SELECT name, price FROM products WHERE",
    "A good carpenter measures twice and",
    "The largest planet of the solar system is",
    "Der alte Mann ging langsam durch den Wald und",
    "<html>\n<head>\n<title>",
    "Bees find their way back to the hive by",
    "The treaty was signed in the autumn of 1648, and",
    "Monday: rain. Tuesday: rain. Wednesday:",
    "She opened the old wooden box and found",
]
CHAT = [
    "What is the capital of France?",
    "Name three animals that live in the sea.",
    "Write a short poem about the wind.",
    "How many minutes are there in two hours?",
    "Explain what a prime number is.",
    "Translate 'good morning' into Spanish.",
    "Give me a recipe for pancakes.",
    "Why do leaves change colour in autumn?",
    "Write a Python function that reverses a string.",
    "Who wrote Hamlet, and when?",
]


def greedy(model, ids):
    import torch

    tokens, margins, cache, inputs = [], [], None, torch.tensor([ids])
    for _ in range(TOKENS):
        out = model(inputs, past_key_values=cache, use_cache=True, logits_to_keep=1)
        cache = out.past_key_values
        best = torch.topk(out.logits[0, -1].float(), 2)
        tokens.append(int(best.indices[0]))
        margins.append(round(float(best.values[0] - best.values[1]), 6))
        inputs = torch.tensor([[tokens[-1]]])
    return tokens, margins


def logits(model, ids):
    """The TOP highest logits of each position of one prompt."""
    import torch

    best = torch.topk(model(torch.tensor([ids]), use_cache=False).logits[0].float(), TOP)
    return {"prompt_ids": ids, "ids": best.indices.tolist(),
            "values": [[float(f"{value:.7g}") for value in row] for row in best.values.tolist()]}


def make(name, folder):
    import torch
    import transformers

    path = os.path.join(folder, reference.FILES[name])
    with open(path, "rb") as file:
        if hashlib.file_digest(file, "sha256").hexdigest() != reference.SHA256[name]:
            raise SystemExit(f"{path}: not the file that the references are of (sha256 differs)")
    tokenizer = reference.make_tokenizer(name, GGUFReader(path))
    prompts = RAW if name == "gemma" else [tokenizer.chat(text) for text in CHAT] + RAW[:20 - len(CHAT)]
    if name == "gemma":
        assert tokenizer.encode(RAW[0]) == [2, 902, 236743, 236770, 236819, 236825, 236819, 236764, 506, 1171, 1331,
                                            531, 3727, 580, 506, 19656]
    with open(os.path.join(HERE, "kl_text.txt"), encoding="utf-8") as file:
        long_prompt = tokenizer.encode(file.read())[:LOGIT_PROMPT]
    model = reference.load_model(path)
    cases = []
    with torch.inference_mode():
        for text in prompts:
            ids = tokenizer.encode(text)
            tokens, margins = greedy(model, ids)
            cases.append({"prompt": text, "prompt_ids": ids, "ids": tokens, "margins": margins,
                          "text": tokenizer.decode(tokens)})
            print(f"{name}: {text[-40:]!r} -> {cases[-1]['text'][:60]!r}", file=sys.stderr)
        reference_logits = logits(model, long_prompt)
    near = sum(margin < 1e-3 for case in cases for margin in case["margins"])
    print(f"{name}: {near} near-ties", file=sys.stderr)
    head = {"model": reference.FILES[name], "sha256": reference.SHA256[name],
            "made_with": f"transformers {transformers.__version__}, torch {torch.__version__}, float32, eager"}
    write(os.path.join(HERE, f"greedy_{name}.json"), head, cases, reference_logits)


def write(path, head, cases, reference_logits):
    """One line per case, so that a change can be read."""
    lines = [f"{json.dumps(key)}: {json.dumps(value)}" for key, value in head.items()]
    lines.append('"cases": [\n' + ",\n".join(json.dumps(case, ensure_ascii=False) for case in cases) + "\n]")
    lines.append('"logits": ' + json.dumps(reference_logits))
    with open(path, "w", encoding="utf-8") as file:
        file.write("{" + ",\n".join(lines) + "}\n")


def main():
    for name in sys.argv[2:] or reference.NAMES:
        make(name, sys.argv[1])


main()
