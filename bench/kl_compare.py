#!/usr/bin/env python3
"""What quantized arithmetic costs in quality: divergence from float32 on the same weights, llama.cpp's and ours.

    python3 kl_compare.py --llama-perplexity PATH [--vedette PATH] [--work DIR] [--window 512]
                          [--text ../tests/golden/kl_text.txt] [--compute i8,i16] MODEL.gguf ...

llama.cpp: base logits come from a float32 copy of the file (dequantize_gguf.py; K/V in float32, no flash attention),
then `--kl-divergence` scores the quantized file with llama.cpp's defaults. Ours: `vedette eval --kl-against f32`.
Both cut the text into the same windows, put BOS in place of each window's first token where the model has one, and
score the second half of each window but its last row: positions window/2 .. window-2. Without --vedette it measures
llama.cpp alone. Needs gguf and numpy for the copy. Exit status 1 if i8 diverges more than --bar times llama.cpp.
"""

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))


def run(command):
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    if result.returncode != 0:
        sys.exit(f"{' '.join(command)}: exit status {result.returncode}: {result.stderr.strip()[-500:]}")
    return result.stdout + result.stderr


def llamacpp_row(args, model, work):
    """(mean divergence, its standard error, same top token in per cent, scored rows, largest margin) of llama.cpp."""
    name = os.path.join(work, os.path.basename(model))
    dense, base = name + ".f32.gguf", name + ".logits"
    common = ["-c", str(args.window), "-b", str(args.window), "-t", str(args.threads), "--kl-divergence-base", base]
    run([sys.executable, os.path.join(HERE, "dequantize_gguf.py"), model, dense])
    run([args.llama_perplexity, "-m", dense, "-f", args.text, "-ctk", "f32", "-ctv", "f32", "-fa", "off"] + common)
    os.remove(dense)
    output = run([args.llama_perplexity, "-m", model, "--kl-divergence"] + common)
    os.remove(base)
    mean, error = re.search(r"Mean\s+KLD:\s+([-\d.]+) ±\s+([\d.]+)", output).groups()
    top = re.search(r"Same top p:\s+([\d.]+)", output).group(1)
    windows = int(re.search(r"computing over (\d+) chunks", output).group(1))
    return float(mean), float(error), float(top), windows * (args.window - 1 - args.window // 2), None


def our_row(args, model, compute):
    report = json.loads(subprocess.run(
        [args.vedette, "eval", "-m", model, "--perplexity", args.text, "--kl-against", "f32", "--compute", compute,
         "--window", str(args.window), "--threads", str(args.threads), "--json"],
        stdout=subprocess.PIPE, text=True, check=True).stdout)
    return (report["mean_kl"], report["kl_standard_error"], 100 * report["same_top"], report["scored_tokens"],
            report["largest_margin"])


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("models", nargs="+")
    parser.add_argument("--llama-perplexity", required=True)
    parser.add_argument("--vedette")
    parser.add_argument("--work", help="folder for the float32 copy and the base logits (gigabytes)")
    parser.add_argument("--text", default=os.path.join(HERE, "../tests/golden/kl_text.txt"))
    parser.add_argument("--window", type=int, default=512)
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--compute", default="i8,i16")
    parser.add_argument("--bar", type=float, default=1.05)
    args = parser.parse_args()

    failed = False
    print("| model | arithmetic | mean KL | same top token | largest margin of a differing one | scored tokens |\n"
          "|---|---|---|---|---|---|")

    def line(model, arithmetic, row):
        margin = "-" if row[4] is None else f"{row[4]:.4f}"
        print(f"| {os.path.basename(model)} | {arithmetic} | {row[0]:.3g} ± {row[1]:.2g} | {row[2]:.2f} % | {margin} "
              f"| {row[3]} |", flush=True)

    for model in args.models:
        with tempfile.TemporaryDirectory(dir=args.work) as work:
            peer = llamacpp_row(args, model, work)
        line(model, "llama.cpp", peer)
        for compute in args.compute.split(",") if args.vedette else []:
            row = our_row(args, model, compute)
            line(model, compute, row)
            if row[3] != peer[3]:
                sys.exit(f"{model}: {row[3]} scored tokens, llama.cpp scored {peer[3]}: not the same windows")
            failed |= compute == "i8" and row[0] > args.bar * peer[0]
    sys.exit(1 if failed else 0)


main()
