#!/usr/bin/env python3
"""Time from process start to the first token, and the memory that takes, of `vedette generate`.

    python3 start_up.py MODEL.gguf... [--vedette build/release/vedette] [--runs 5] [--ctx-size N] [-- EXTRA OPTIONS]

The file is read once beforehand, so it lies in the page cache. The time is the median over the runs, from the start of
the process to the first byte of its reply (`--max-tokens 1`). Memory is that of one more run, looked at every few
milliseconds through /proc: the most that was resident of the model's mapping, of anonymous memory, and of both at one
moment, beside what the program reports of itself (`--json`).
"tensors" = the most that was resident of the mapping plus the weights that the program holds in anonymous memory, as a
share of the file; "rest" = the peak of all resident memory less those weights: an upper bound, as it includes the K/V
blocks that a short prompt touches.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time

MIB = 1 << 20


def command(args, model):
    line = [args.vedette, "generate", "--model", model, "--prompt", args.prompt, "--max-tokens", "1", "--temperature", "0"]
    if args.ctx_size:
        line += ["--ctx-size", str(args.ctx_size)]
    return line + args.extra


def read_ahead(path):
    with open(path, "rb", buffering=0) as file:
        while file.read(16 * MIB):
            pass


def first_token_seconds(line):
    begin = time.perf_counter()
    process = subprocess.Popen(line, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    first = os.read(process.stdout.fileno(), 1)
    seconds = time.perf_counter() - begin
    process.stdout.read()
    if process.wait() != 0 or not first:
        sys.exit(f"failed: {' '.join(line)}")
    return seconds


def status_bytes(pid):
    """RssAnon, RssFile and VmHWM of a process; nothing once it has ended."""
    try:
        with open(f"/proc/{pid}/status") as file:
            fields = dict(row.split(":", 1) for row in file)
        return {key: int(fields[key].split()[0]) * 1024 for key in ("RssAnon", "RssFile", "VmHWM")}
    except (OSError, KeyError):
        return None


def mapped_bytes(pid, model):
    """Resident bytes of the model's own mapping."""
    total, inside = 0, False
    try:
        with open(f"/proc/{pid}/smaps") as file:
            for row in file:
                if "-" in row.split(" ", 1)[0]:
                    inside = row.rstrip().endswith(model)
                elif inside and row.startswith("Rss:"):
                    total += int(row.split()[1]) * 1024
    except OSError:
        return None
    return total


def watch_memory(line, model):
    """The largest of each kind of memory while the program runs, and its own JSON report."""
    peak = {"anon": 0, "mapping": 0, "both": 0, "rss": 0}
    model = os.path.realpath(model)
    with tempfile.TemporaryFile() as out:
        process = subprocess.Popen([*line, "--json"], stdout=out, stderr=subprocess.DEVNULL)
        while process.poll() is None:
            status, mapping = status_bytes(process.pid), mapped_bytes(process.pid, model)
            if status and mapping is not None:
                peak["anon"] = max(peak["anon"], status["RssAnon"])
                peak["mapping"] = max(peak["mapping"], mapping)
                peak["both"] = max(peak["both"], status["RssAnon"] + mapping)
                peak["rss"] = max(peak["rss"], status["VmHWM"])
            time.sleep(0.002)
        out.seek(0)
        return peak, json.loads(out.read())


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("models", nargs="+")
    parser.add_argument("--vedette", default="build/release/vedette")
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--ctx-size", type=int)
    parser.add_argument("--prompt", default="Hello")
    given = sys.argv[1:] + ["--"]
    split = given.index("--")
    args = parser.parse_args(given[:split])
    args.extra = given[split + 1 : -1]
    for model in args.models:
        read_ahead(model)
        line = command(args, model)
        seconds = [first_token_seconds(line) for _ in range(args.runs)]
        peak, reply = watch_memory(line, model)
        print(f"{model}: {os.path.getsize(model) / MIB:.0f} MiB")
        print(
            f"  first token after {statistics.median(seconds):.3f} s (median of {args.runs}, "
            f"{min(seconds):.3f} to {max(seconds):.3f}); load {reply['timings']['load_ms']:.0f} ms, "
            f"prefill {reply['timings']['prefill_ms']:.0f} ms of {reply['timings']['prompt_tokens']} tokens"
        )
        print("  peaks in MiB: " + ", ".join(f"{key} {value / MIB:.1f}" for key, value in peak.items()))
        memory = reply["memory"]
        tensors = (memory["weight_bytes"] + peak["mapping"]) / os.path.getsize(model)
        print(f"  tensors {tensors:.3f} of the file; rest {(peak['rss'] - memory['weight_bytes']) / MIB:.1f} MiB")
        print("  reported in MiB: " + ", ".join(f"{key} {value / MIB:.1f}" for key, value in memory.items()))


main()
