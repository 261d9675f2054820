#!/usr/bin/env python3
"""Prefill and decode speed of ours and llama.cpp on the same files, interleaved in one run.

    python3 compare.py --llama-bench PATH/llama-bench [--ours PATH/decode_bench] [--compute i8] [--threads N]
                       [--rounds 5] [-p 512] [-n 128] [--depth 0] MODEL.gguf ...

Each round runs ours and llama.cpp one after the other for prefill, then for decode; the table gives medians over the
rounds, the spread (largest less smallest, in per cent of the median) and the ratio ours / llama.cpp. Without --ours it
measures llama.cpp alone. Exit status 1 if a ratio is below --bar, or if llama.cpp leaves this machine's AMX unused
(its numbers do not count then).
"""

import argparse
import json
import os
import statistics
import subprocess
import sys

import llamacpp


def run_ours(program, model, args, prefill, decode):
    command = [program, "--model", model, "--compute", args.compute, "--threads", str(args.threads), "-p",
               str(prefill), "-n", str(decode), "--depth", str(args.depth)] + (["--isa", args.isa] if args.isa else [])
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    if run.returncode != 0:
        raise SystemExit(f"{' '.join(command)}: {run.stderr.strip()}")
    report = json.loads(run.stdout)
    return report["prefill_tok_s" if prefill else "decode_tok_s"][0], report


def measure(args, model):
    """{test: {'llama.cpp': [...], 'ours': [...]}} and our last report."""
    tests = {f"pp{args.p}": (args.p, 0), f"tg{args.n}": (0, args.n)}
    samples = {test: {"llama.cpp": [], "ours": []} for test in tests}
    report = None
    for _ in range(args.rounds):
        for test, (prefill, decode) in tests.items():
            if args.ours:
                speed, report = run_ours(args.ours, model, args, prefill, decode)
                samples[test]["ours"].append(speed)
            samples[test]["llama.cpp"].append(
                llamacpp.bench(args.llama_bench, model, args.threads, prefill, decode, args.depth))
    return samples, report


def cell(values):
    if not values:
        return "-"
    median = statistics.median(values)
    return f"{median:.1f} (spread {100 * (max(values) - min(values)) / median:.0f} %)"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("models", nargs="+")
    parser.add_argument("--llama-bench", required=True)
    parser.add_argument("--ours")
    parser.add_argument("--compute", default="i8")
    parser.add_argument("--isa", default="")
    parser.add_argument("--threads", type=int, default=llamacpp.physical_cores())
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("-p", type=int, default=512)
    parser.add_argument("-n", type=int, default=128)
    parser.add_argument("--depth", type=int, default=0)
    parser.add_argument("--bar", type=float, default=0)
    args = parser.parse_args()

    name, flags = llamacpp.cpu()
    print(f"CPU: {name}; {' '.join(flags)}; {args.threads} threads; load average at the start "
          f"{os.getloadavg()[0]:.1f}; {args.rounds} rounds, tok/s\n")
    failed, buffer_lines = False, []
    print("| model | test | ours | llama.cpp | ratio |\n|---|---|---|---|---|")
    for model in args.models:
        buffers = llamacpp.buffers(args.llama_bench, model)
        state = llamacpp.amx_state(flags, buffers)
        buffer_lines.append(f"llama.cpp buffers of {os.path.basename(model)}: {', '.join(buffers)}; AMX: {state}")
        failed |= state == "OFF"
        samples, report = measure(args, model)
        for test, sides in samples.items():
            ratio = "-"
            if sides["ours"]:
                value = statistics.median(sides["ours"]) / statistics.median(sides["llama.cpp"])
                failed |= value < args.bar
                ratio = f"{value:.2f}" + ("" if state != "OFF" else " (not counted)")
            print(f"| {os.path.basename(model)} | {test} | {cell(sides['ours'])} | {cell(sides['llama.cpp'])} "
                  f"| {ratio} |", flush=True)
        if report:
            buffer_lines.append(f"ours: compute {report['compute']}, {report['isa']}, {report['threads']} threads")
    print("\n" + "\n".join(buffer_lines))
    sys.exit(1 if failed else 0)


main()
