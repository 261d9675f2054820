"""Runs that bars.py measures: one process of ours or of llama.cpp, and the figures that it gives.

A figure is named as `vedette benchmark` names its points: pp512, tg128, "tg32 @4096", "tg64 x8", rows8.
"""

import json
import os
import re
import subprocess
import sys
from contextlib import contextmanager
from typing import NamedTuple

import llamacpp

ROWS = (2, 4, 8, 16)


class Run(NamedTuple):
    side: str  # "ours", "peer", "kernel"
    file: str  # for "kernel", the scheme
    test: str  # a figure; "rows" gives those of all ROWS
    compute: str = "i8"
    busy: bool = False  # beside a process that spins
    threads: int = 0  # 0: those of the command line

    def __str__(self):
        return " ".join([self.side, self.file, self.test, self.compute, f"t{self.threads}"] + ["busy"] * self.busy)


def parse(test):
    """(prompt, decoded tokens, depth, sequences) of a figure's name."""
    kind, tokens, sequences, depth = re.fullmatch(r"(pp|tg)(\d+)(?: x(\d+))?(?: @(\d+))?", test).groups()
    prompt, decode = (int(tokens), 0) if kind == "pp" else (0, int(tokens))
    return prompt, decode, int(depth or 0), int(sequences or 1)


@contextmanager
def spinning(wanted):
    """One process that never sleeps, on one processor of those allowed here."""
    process = subprocess.Popen([sys.executable, "-c", "while True: pass"]) if wanted else None
    if process:
        os.sched_setaffinity(process.pid, {max(os.sched_getaffinity(0))})
    try:
        yield
    finally:
        if process:
            process.kill()
            process.wait()


def output(command):
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    if run.returncode != 0:
        sys.exit(f"{' '.join(command)}: exit status {run.returncode}: {run.stderr.strip()[-500:]}")
    return run.stdout


class Programs:
    """The programs of both sides, called with this invocation's choices."""

    def __init__(self, args, models):
        self.args, self.models = args, models

    def execute(self, run):
        """{figure: value} of one process."""
        with spinning(run.busy):
            return {"ours": self.ours, "peer": self.peer, "kernel": self.kernel}[run.side](run)

    def ours(self, run):
        command = [os.path.join(self.args.ours, "vedette"), "benchmark", self.models[run.file], "--json", "--compute",
                   run.compute, "--threads", str(run.threads), "--seed", "1"]
        command += ["--isa", self.args.isa] if self.args.isa else []
        if run.test == "rows":
            command += ["--prefill", "0", "--decode", "0", "--rows", ",".join(map(str, ROWS))]
        else:
            prompt, decode, depth, sequences = parse(run.test)
            command += ["--prefill", str(prompt), "--decode", str(decode), "--depth", str(depth), "--sequences",
                        str(sequences), "--repetitions", "1"]
        report = json.loads(output(command))
        figures = {key: report[key] for key in ("read_gb_per_sec", "parameters", "isa")}
        for result in report["runs"]:
            rows = result["kind"] == "rows"
            figures[result["run"]] = result["cost_over_one_row"] if rows else result["tok_s"]
            figures[result["run"] + " ms"] = result["ms_per_step"]
            if result["gb_per_sec"]:
                figures[result["run"] + " GB/s"] = result["gb_per_sec"]
                figures[result["run"] + " share"] = result["bandwidth_share"]
        return figures

    def peer_program(self, name):
        return os.path.join(self.args.peer, name)

    def peer(self, run):
        """Long prompts through llama-batched-bench, which has no warm-up of the same length; what is decoded after one
        comes from the same process."""
        prompt, decode, depth, sequences = parse(run.test)
        model = self.models[run.file]
        if depth or sequences > 1:
            prefill, speed = llamacpp.batched(self.peer_program("llama-batched-bench"), model, run.threads, depth or 1,
                                              decode, sequences)
            return {run.test: speed, f"pp{depth}": prefill}
        return {run.test: llamacpp.bench(self.peer_program("llama-bench"), model, run.threads, prompt, decode)}

    def kernel(self, run):
        """Billions of operations a second of one thread, at many rows."""
        variant = self.args.kernels
        command = [os.path.join(self.args.ours, "kernel_bench"), "--rows", "512", "--only", run.file,
                   "--compute", run.compute, "--kernels", variant]
        found = re.search(r"([\d.]+) GOP/s", output(command))
        if not found:
            sys.exit(f"{' '.join(command)}: no figure for {run.file} with the kernels {variant}")
        return {run.test: float(found.group(1))}
