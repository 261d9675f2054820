#!/usr/bin/env python3
"""Divergence of our arithmetics from float32 on both real models, against fixed bars.

    python3 kl_bars.py VEDETTE          (models: in the folder $VEDETTE_TEST_MODELS)

`vedette eval --kl-against f32` on kl_text.txt, windows of 512 tokens. i16: a mean that is little more than the f16
K/V costs, and every differing top token a near-tie in float32. i8: at most 1.05 times llama.cpp's own divergence on
the same windows (bench/results/kl_llamacpp.md; bench/kl_compare.py measures both afresh). Exit status 1 on a miss.
"""

import json
import os
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
SCORED_TOKENS = 15 * 255
# model: (bar of i16, llama.cpp's mean)
MODELS = {
    "SmolLM2-135M-Instruct.Q4_1.gguf": (3e-6, 2.672e-3),
    "gemma-3-270m.Q4_K_M.gguf": (5e-6, 4.550e-3),
}
I8_FACTOR = 1.05
MARGIN = 0.02


def evaluate(vedette, model, compute):
    command = [vedette, "eval", "-m", os.path.join(os.environ["VEDETTE_TEST_MODELS"], model), "--perplexity",
               os.path.join(HERE, "kl_text.txt"), "--kl-against", "f32", "--compute", compute, "--window", "512",
               "--json", "--quiet"]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    if result.returncode != 0:
        sys.exit(f"{' '.join(command)}: exit status {result.returncode}: {result.stderr.strip()}")
    return json.loads(result.stdout)


def main():
    if "VEDETTE_TEST_MODELS" not in os.environ:
        sys.exit("VEDETTE_TEST_MODELS is not set: the folder of both models expected")
    failures = []
    for model, (i16_bar, peer) in MODELS.items():
        for compute, bar in (("i16", i16_bar), ("i8", I8_FACTOR * peer)):
            report = evaluate(sys.argv[1], model, compute)
            print(f"{model} {compute}: mean KL {report['mean_kl']:.3g} (bar {bar:.3g}), {report['differing_tops']} top "
                  f"tokens differ, largest margin {report['largest_margin']:.4f}", flush=True)
            # Written so that a NaN fails too.
            if not 0 < report["mean_kl"] <= bar:
                failures.append(f"{model} {compute}: mean KL {report['mean_kl']}, bar {bar}")
            if compute == "i16" and not report["largest_margin"] <= MARGIN:
                failures.append(f"{model} {compute}: margin {report['largest_margin']}, bar {MARGIN}")
            if report["scored_tokens"] != SCORED_TOKENS:
                failures.append(f"{model}: {report['scored_tokens']} scored tokens, {SCORED_TOKENS} expected")
    print("\n".join(failures))
    sys.exit(1 if failures else 0)


main()
