"""Greedy continuations of the family fixtures by whole forward passes, without a K/V cache.

Many fixtures' configs carry `sliding_window: 16` although their family has no windows. transformers' forward pass
ignores the key, but its cache drops all but the last 16 tokens, so the fixtures' own `greedy_ids` are of a model that
attends to everything while it reads the prompt and to 16 tokens while it writes. These ids are of the model itself.

Usage: make_greedy_without_cache.py FIXTURES > greedy_without_cache.json   (transformers 5.17, torch 2.11)
"""

import json
import pathlib
import sys

import torch
from safetensors.torch import load_file
from transformers import AutoConfig, AutoModelForCausalLM


def greedy(model, ids, count):
    ids = list(ids)
    margin = float("inf")
    for _ in range(count):
        logits = model(torch.tensor([ids]), use_cache=False).logits[0, -1]
        best = torch.topk(logits, 2).values
        margin = min(margin, float(best[0] - best[1]))
        ids.append(int(torch.argmax(logits)))
    return ids[-count:], margin


def main():
    out = {}
    for folder in sorted(pathlib.Path(sys.argv[1]).iterdir()):
        config = json.loads((folder / "config.json").read_text())
        if not config.get("sliding_window") or "layer_types" in config:
            continue
        try:
            loaded = AutoConfig.from_pretrained(folder)
            model = AutoModelForCausalLM.from_pretrained(
                folder, config=loaded, dtype=torch.float32, attn_implementation="eager"
            ).eval()
            reference = load_file(folder / "reference.safetensors")
            with torch.no_grad():
                ids, margin = greedy(model, reference["input_ids"].flatten().tolist(), 24)
        except Exception as error:  # families that need more than this loop
            print(f"{folder.name}: {error}", file=sys.stderr)
            continue
        same = ids == reference["greedy_ids"].flatten().tolist()
        print(f"{folder.name}: margin {margin:.4f}, {'same as' if same else 'not'} greedy_ids", file=sys.stderr)
        if not same:
            out[folder.name] = ids
    print("{\n" + ",\n".join(f'  "{name}": {ids}' for name, ids in out.items()) + "\n}")


main()
