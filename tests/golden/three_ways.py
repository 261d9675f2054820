#!/usr/bin/env python3
"""One model three ways: the GGUF file, its lossless MLX 4-bit conversion, and its dense float32 conversion.

    python3 three_ways.py VEDETTE [SmolLM2-135M-Instruct.Q4_1.gguf]    (default: the one in $VEDETTE_TEST_MODELS)

Runs `vedette convert` twice and `vedette generate --compute f32` on all three; the greedy ids of five prompts x 32
tokens must be equal, because every format holds the same float32 weights. Exit status 1 if they are not.
"""

import json
import os
import subprocess
import sys
import tempfile

MODEL = "SmolLM2-135M-Instruct.Q4_1.gguf"
TOKENS = 32
PROMPTS = [
    "The three primary colours are",
    "To make a simple vegetable soup, begin by",
    "Once upon a time, in a village between two rivers, there lived",
    "1, 2, 4, 8, 16, 32,",
    "Bees find their way back to the hive by",
]


def run(command):
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    if result.returncode != 0:
        sys.exit(f"{' '.join(command)}: exit status {result.returncode}: {result.stderr.strip()}")
    return result.stdout


def generate(vedette, model, prompt):
    """(prompt ids, greedy ids) in float32."""
    report = json.loads(run([vedette, "generate", "-m", model, "-p", prompt, "-n", str(TOKENS), "--compute", "f32",
                             "--temp", "0", "--no-chat-template", "--ignore-eos", "--json"]))
    if len(report["ids"]) != TOKENS:
        sys.exit(f"{model}: {TOKENS} ids expected, {len(report['ids'])} found for {prompt!r}")
    return report["prompt_ids"], report["ids"]


def check_layout(folder, quantized):
    """The conversion is what its name says: quantized groups of 32 in 4 bits, or no quantization at all."""
    with open(os.path.join(folder, "config.json"), encoding="utf-8") as file:
        found = json.load(file).get("quantization")
    if not quantized:
        if found is not None:
            sys.exit(f"{folder}/config.json: no quantization expected, found {found}")
    elif found is None or (found.get("bits"), found.get("group_size")) != (4, 32):
        sys.exit(f"{folder}/config.json: quantization of 4 bits in groups of 32 expected, found {found}")


def main():
    vedette = sys.argv[1]
    if len(sys.argv) < 3 and "VEDETTE_TEST_MODELS" not in os.environ:
        sys.exit(f"VEDETTE_TEST_MODELS is not set: the folder of {MODEL} expected")
    model = sys.argv[2] if len(sys.argv) > 2 else os.path.join(os.environ["VEDETTE_TEST_MODELS"], MODEL)
    with tempfile.TemporaryDirectory() as folder:
        ways = {"gguf": model, "mlx 4-bit": os.path.join(folder, "mlx"), "float32": os.path.join(folder, "dense")}
        run([vedette, "convert", "-m", model, "-o", ways["mlx 4-bit"]])
        run([vedette, "convert", "-m", model, "-o", ways["float32"], "--dtype", "f32"])
        check_layout(ways["mlx 4-bit"], quantized=True)
        check_layout(ways["float32"], quantized=False)
        failures = 0
        for prompt in PROMPTS:
            found = {way: generate(vedette, path, prompt) for way, path in ways.items()}
            for way, result in found.items():
                if result != found["gguf"]:
                    failures += 1
                    print(f"{prompt!r}: {way} gives {result}, gguf {found['gguf']}")
        print(f"{len(PROMPTS)} prompts x {TOKENS} tokens, {len(ways)} formats: "
              f"{'equal' if failures == 0 else f'{failures} differences'}")
        sys.exit(1 if failures else 0)


main()
