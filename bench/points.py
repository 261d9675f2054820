"""The points that bars.py measures: what of ours is compared with what, and the bar it has to reach."""

from typing import NamedTuple

from speed import ROWS, Run

# Where each model lies inside a folder of --models.
FILES = {"Q4_0": "q06-Q4_0.gguf", "Q4_1": "q06-Q4_1.gguf", "Q4_K_M": "q06-Q4_K_M.gguf", "Q8_0": "q06-Q8_0.gguf",
         "BF16": "q06-BF16.gguf", "mlx4": "mlx4", "mlx8": "mlx8", "8B": "8b-Q4_0.gguf",
         "SmolLM2": "SmolLM2-135M-Instruct.Q4_1.gguf", "Gemma": "gemma-3-270m.Q4_K_M.gguf"}
# The scheme of most weights, where products bound a step of many rows.
SCHEMES = {"Q4_0": "Q4_0", "Q4_K_M": "Q4_K"}


class Value(NamedTuple):
    """A figure of a run, or its quotient by another."""
    run: Run
    figure: str
    over: "Value" = None


class Bar(NamedTuple):
    kind: str  # at least: "ratio", "share", "least" (of our value); at most: "most", "floor" (see floor() in bars.py)
    limit: float = 0

    def __str__(self):
        return {"ratio": f">= {self.limit:g}x", "share": f">= {100 * self.limit:.0f} % of the bandwidth",
                "least": f">= {self.limit:g}", "most": f"<= {self.limit:g}", "floor": f"<= {self.limit:.2f} (floor)"
                }[self.kind]


class Point(NamedTuple):
    name: str
    ours: Value
    peer: Value = None
    bars: tuple = ()
    any_of: bool = False  # one bar met is enough


def ours(file, test, figure=None, over=None, **more):
    return Value(Run("ours", file, test, **more), figure or test, over)


def both(name, file, test, *bars, any_of=False, **more):
    """A point that both sides measure in the same way."""
    return Point(name, ours(file, test, **more), Value(Run("peer", file, test, **more), test), bars, any_of)


def decode_points(tg):
    points = [both(f"decode-{file}", file, tg, Bar("ratio", ratio), Bar("share", 0.8))
              for file, ratio in (("Q4_0", 1.3), ("Q4_1", 1.6), ("Q4_K_M", 1.6))]
    points += [both(f"decode-{file}", file, tg, Bar("ratio", 1.3), Bar("share", 0.85), any_of=True)
               for file in ("Q8_0", "BF16", "SmolLM2", "Gemma")]
    points += [Point(f"decode-{file}", ours(file, tg), None, (Bar("share", share),))
               for file, share in (("mlx4", 0.8), ("mlx8", 0.85))]
    rate = f"{tg} GB/s"
    return points + [
        Point("bytes-mlx4/Q4_0", ours("mlx4", tg, rate, ours("Q4_0", tg, rate)), None, (Bar("least", 1.0),)),
        both("decode-8B", "8B", tg, Bar("ratio", 1.3))]


def prefill_points(amx):
    points = [both(f"prefill512-{file}", file, "pp512", Bar("ratio", 2.5 if amx else 2.0))
              for file in ("Q4_0", "Q4_1", "Q4_K_M", "Q8_0", "SmolLM2")]
    points += [both(f"prefill512-{file}", file, "pp512", Bar("ratio", 2.0)) for file in ("Gemma", "8B")]
    # The peer's figure comes from the process that decodes after such a prompt.
    deep = Value(Run("peer", "Q4_0", "tg32 @4096"), "pp4096")
    return points + [Point("prefill4096-Q4_0", ours("Q4_0", "pp4096"), deep, (Bar("ratio", 4.0 if amx else 2.5),))]


def verify_points(vnni):
    limits = (1.1, 1.2, 1.6, 2.6) if vnni else (1.1, 1.3, 1.8, 3.4)
    return [Point(f"verify{rows}-{file}", ours(file, "rows", f"rows{rows}"), None, (Bar("most", limit), Bar("floor")))
            for file in SCHEMES for rows, limit in zip(ROWS, limits)]


def busy_points(tg):
    kept = [Value(Run(side, "Q4_0", tg, busy=True), tg, Value(Run(side, "Q4_0", tg), tg)) for side in ("ours", "peer")]
    return [both("busy-decode", "Q4_0", tg, Bar("ratio", 2.0), busy=True),
            Point("busy-kept", *kept, (Bar("least", 0.58),))]


def i16_points(tg, vnni):
    points = [Point(f"i16/i8-{name}", ours("Q4_0", test, None, ours("Q4_0", test), compute="i16"), None,
                    (Bar("least", limit),))
              for name, test, limit in (("decode", tg, 0.93), ("prefill512", "pp512", 0.7 if vnni else 0.55))]
    return points + [Point("i16-verify8", ours("Q4_0", "rows", "rows8", compute="i16"), None,
                           (Bar("most", 1.6 if vnni else 2.4),))]


def thread_points(tg, cores):
    counts = [count for count in (1, 2, 4, 8, 16, 32, 64) if count < cores] + [cores]
    return [Point(f"threads{count}-{name}-{file}", ours(file, test, threads=count))
            for file in ("Q4_0", "8B") for name, test in (("decode", tg), ("prefill512", "pp512")) for count in counts]


def all_points(machine, tokens, cores, extra=()):
    """machine: avx2, vnni (without AMX) or amx; tokens: decoded in a run; extra: files without bars."""
    tg = f"tg{tokens}"
    points = decode_points(tg) + prefill_points(machine == "amx") + verify_points(machine != "avx2")
    points += [both("depth4096-Q4_0", "Q4_0", "tg32 @4096", Bar("ratio", 2.5)),
               both("sequences8-Q4_0", "Q4_0", f"tg{tokens // 2} x8", Bar("ratio", 1.7))]
    points += busy_points(tg) + i16_points(tg, machine != "avx2") + thread_points(tg, cores)
    for file in extra:
        points += [both(f"decode-{file}", file, tg), both(f"prefill512-{file}", file, "pp512")]
    return points
