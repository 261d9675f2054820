#!/usr/bin/env python3
"""Every bar on speed, measured on this machine side by side with llama.cpp: a table that says met or missed.

    python3 bars.py --peer DIR [--models DIR ...] [--ours build/release] [--isa avx2] [--threads N]
                    [--peer-threads N[,N...]] [--rounds 5] [--quick] [--samples FILE] [--only PATTERN ...] [--list]
                    [--file MODEL.gguf ...]

--peer: the folder of llama-bench and llama-batched-bench (get_llamacpp builds them; for --isa avx2 give that of
`get_llamacpp FOLDER avx2`); the best of --peer-threads counts. --models: folders with the files that
make_random_gguf.py names and the real models; a point whose file is in none is skipped, with a line that says so.
--ours: the build folder with vedette and kernel_bench. --file: files to measure without bars.

A round runs each process of the chosen points once, ours and llama.cpp's by turns; figures are medians over the rounds
with their spread (largest less smallest, in per cent of the median). Each process of ours measures the memory's read
bandwidth before it loads the model; "share" is what its decoding reads of that. --only takes names or patterns
('decode-*'; --list prints them) so that a call can be short: with --samples FILE rounds of earlier calls with that file
count too (same machine, same programs, same options); --rounds 0 prints the table of what is there. --quick: two
rounds, fewer tokens, no prompts of 4096, no table of threads.
Exit status 1 if a bar was missed, or llama.cpp left this machine's AMX unused.

Time to the first token and peak memory have a program of their own: start_up.py.
"""

import argparse
import fnmatch
import json
import os
import statistics
import sys
import time

import llamacpp
from points import FILES, SCHEMES, Value, all_points
from speed import Programs, Run


class Samples:
    """{run: [figures of each round]}, kept in a file between calls if one is named."""

    def __init__(self, path):
        self.path, self.runs = path, {}
        if path and os.path.exists(path):
            with open(path, encoding="utf-8") as file:
                self.runs = json.load(file)

    def add(self, run, figures):
        self.runs.setdefault(str(run), []).append(figures)
        if self.path:
            with open(self.path, "w", encoding="utf-8") as file:
                json.dump(self.runs, file, indent=1)

    def of(self, run, name):
        return [figures[name] for figures in self.runs.get(str(run), []) if figures.get(name) is not None]


class Table:
    """What the samples say of each point."""

    def __init__(self, args, samples):
        self.args, self.samples = args, samples
        runs = [key for key in samples.runs if key.startswith("ours") and key.endswith(f" t{args.threads}")]
        self.readings = [figures["read_gb_per_sec"] for key in runs for figures in samples.runs[key]
                         if figures["read_gb_per_sec"]]

    def values(self, value):
        """Samples of a figure; of llama.cpp those of its best thread count."""
        found = [self.samples.of(run, value.figure) for run in resolve(self.args, value.run)]
        return max((one for one in found if one), key=statistics.median, default=[])

    def median(self, value):
        values = self.values(value)
        if not values:
            return None
        result = statistics.median(values)
        if not value.over:
            return result
        base = self.median(value.over)
        return result / base if base else None

    def share(self, point):
        test = point.ours.run.test
        if not test.startswith("tg") or point.ours.over or point.ours.run.busy:
            return None
        return self.median(Value(point.ours.run, f"{test} share"))

    def floor(self, point):
        """1.25 x max(one row, operations / measured multiply rate), over one row."""
        run = point.ours.run
        rows = int(point.ours.figure.removeprefix("rows"))
        rate = self.median(Value(Run("kernel", SCHEMES[run.file], "GOP/s", run.compute), "GOP/s"))
        one, parameters = self.median(Value(run, "rows1 ms")), self.median(Value(run, "parameters"))
        return 1.25 * max(1, 2 * parameters * rows / (rate * self.args.threads * 1e9) / (one * 1e-3))

    def cell(self, value):
        if value is None or not self.values(value):
            return "-"
        values, median = self.values(value), self.median(value)
        spread = 100 * (max(values) - min(values)) / statistics.median(values)
        digits = 2 if value.over or value.figure.startswith("rows") else 1
        return f"{median:.{digits}f} ({spread:.0f} %)"

    def row(self, point, counted):
        """(the row's text, whether its bars hold)."""
        mine, peer = self.median(point.ours), self.median(point.peer) if point.peer else None
        measured = {"ratio": mine / peer if peer else None, "share": self.share(point), "least": mine, "most": mine,
                    "floor": mine}
        bars = [bar._replace(limit=self.floor(point)) if bar.kind == "floor" else bar for bar in point.bars]
        misses = [bar for bar in bars if not holds(bar, measured[bar.kind], counted)]
        met = len(misses) < max(len(bars), 1) if point.any_of else not misses
        verdict = "" if not bars else "met" if met else "**missed**" if len(misses) == len(bars) else \
            f"**missed**: {', '.join(map(str, misses))}"
        ratio = "-" if measured["ratio"] is None else f"{measured['ratio']:.2f}" + ("" if counted else " (not counted)")
        share = "-" if measured["share"] is None else f"{100 * measured['share']:.0f} %"
        text = (" or " if point.any_of else " and ").join(map(str, bars)) or "-"
        return f"| {point.name} | {self.cell(point.ours)} | {self.cell(point.peer)} | {ratio} | {share} | {text} " \
               f"| {verdict} |", met


def holds(bar, value, counted):
    if value is None or (bar.kind == "ratio" and not counted):
        return False
    return value <= bar.limit if bar.kind in ("most", "floor") else value >= bar.limit


def resolve(args, run):
    """The run with the thread counts of this call."""
    if run.side == "peer":
        return [run._replace(threads=count) for count in args.peer_threads]
    return [run._replace(threads=1 if run.side == "kernel" else run.threads or args.threads)]


def runs_of(args, points):
    """Every process that the points need, once."""
    found = {}
    for point in points:
        for value in (point.ours, point.peer):
            while value:
                found.update(dict.fromkeys(resolve(args, value.run)))
                value = value.over
        if any(bar.kind == "floor" for bar in point.bars):
            run = point.ours.run
            found.update(dict.fromkeys(resolve(args, Run("kernel", SCHEMES[run.file], "GOP/s", run.compute))))
    return list(found)


def find_models(args):
    models = {os.path.basename(path): path for path in args.file}
    for name, path in FILES.items():
        places = [os.path.join(folder, path) for folder in args.models]
        models.update({name: place for place in places if os.path.exists(place)})
    return models


def choose_points(args, models, machine):
    points = all_points(machine, 32 if args.quick else 128, llamacpp.physical_cores(),
                        [os.path.basename(path) for path in args.file])
    if args.quick:
        points = [point for point in points if "4096" not in point.name and not point.name.startswith("threads")]
    chosen = [point for point in points if not args.only or any(fnmatch.fnmatch(point.name, one) for one in args.only)]
    if args.list:
        print("\n".join(point.name for point in chosen))
        sys.exit(0)
    for point in chosen:
        if point.ours.run.file not in models:
            print(f"skipped: {point.name}: no {FILES[point.ours.run.file]} in {', '.join(args.models) or '--models'}")
    return [point for point in chosen if point.ours.run.file in models]


def read_arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--peer")
    parser.add_argument("--models", nargs="+", default=[])
    parser.add_argument("--file", nargs="+", default=[])
    parser.add_argument("--ours", default="build/release")
    parser.add_argument("--isa", default="")
    parser.add_argument("--threads", type=int, default=llamacpp.physical_cores())
    parser.add_argument("--peer-threads", type=lambda text: [int(count) for count in text.split(",")])
    parser.add_argument("--rounds", type=int)
    parser.add_argument("--only", nargs="+", default=[])
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--samples")
    parser.add_argument("--list", action="store_true")
    args = parser.parse_args()
    args.rounds = (2 if args.quick else 5) if args.rounds is None else args.rounds
    args.peer_threads = args.peer_threads or [args.threads]
    if not args.peer and not args.list:
        parser.error("--peer DIR expected: the folder of llama-bench and llama-batched-bench")
    return args


def main():
    args = read_arguments()
    name, flags = llamacpp.cpu()
    machine, args.kernels = llamacpp.machine_kind(flags, args.isa)
    models = find_models(args)
    points = choose_points(args, models, machine)
    programs, samples, begin = Programs(args, models), Samples(args.samples), time.monotonic()
    runs = runs_of(args, points)
    print(f"\nCPU: {name}; {' '.join(flags)}; bars of {machine}; {args.threads} threads (llama.cpp: best of "
          f"{', '.join(map(str, args.peer_threads))}); load average at the start {os.getloadavg()[0]:.1f}", flush=True)
    unused = {file for file in {run.file for run in runs if run.side == "peer"} if machine == "amx" and
              llamacpp.amx_state(flags, llamacpp.buffers(programs.peer_program("llama-bench"), models[file])) == "OFF"}
    for number in range(args.rounds):
        for run in runs:
            figures = programs.execute(run)
            samples.add(run, figures)
            shown = [f"{key} {figures[key]:.4g}" for key in (run.test, "rows1 ms", "rows8 ms") if key in figures]
            print(f"{time.monotonic() - begin:4.0f} s  round {number + 1}/{args.rounds}  {run}: {', '.join(shown)}",
                  file=sys.stderr)

    table = Table(args, samples)
    rows = [table.row(point, point.ours.run.file not in unused) for point in points if table.values(point.ours)]
    isas = {figures["isa"] for rounds in samples.runs.values() for figures in rounds if "isa" in figures}
    rounds = sorted({len(samples.runs.get(str(run), [])) for run in runs})
    print(f"ours: {', '.join(isas)}, i8 unless the point says i16; rounds: {' or '.join(map(str, rounds))}")
    if table.readings:
        print(f"memory: reads {statistics.median(table.readings):.1f} GB/s ({min(table.readings):.1f} to "
              f"{max(table.readings):.1f})")
    for file in sorted(unused):
        print(f"llama.cpp leaves AMX unused for {file}: its figures do not count")
    print("\n| point | ours | llama.cpp | ratio | share of bandwidth | bar | verdict |\n|---|---|---|---|---|---|---|")
    print("\n".join(text for text, _ in rows))
    missed = sum(not met for _, met in rows)
    print(f"\n{len(rows) - missed} of {len(rows)} points without a miss; decode, prefill: tok/s; verify: over one row")
    sys.exit(1 if missed or unused else 0)


main()
