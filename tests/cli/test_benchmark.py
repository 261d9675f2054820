"""benchmark: its points, its report as text, JSON and pictures, and what it refuses. Never how fast anything is."""

import json
import statistics
import struct
import xml.dom.minidom

import pytest

QUICK = ["--prefill", "40", "--decode", "6", "--repetitions", "3"]


def near(a, b):
    return abs(a - b) <= 1e-6 * max(abs(a), abs(b))


def check_run(report, run):
    seconds = run["seconds"]
    assert len(seconds) == report["repetitions"] and all(one > 0 for one in seconds)
    count = run["rows"] if run["kind"] == "rows" else run["tokens"]
    tokens = count * run.get("sequences", 1)
    assert near(run["tok_s"], statistics.median(tokens / one for one in seconds))
    assert run["tok_s_min"] <= run["tok_s"] <= run["tok_s_max"]
    assert near(run["spread"], (run["tok_s_max"] - run["tok_s_min"]) / run["tok_s"])
    assert near(run["ms_per_step"], 1000 * statistics.median(seconds) / run["steps"])
    assert run["kv_bytes"] == report["kv_bytes_per_token"] * (run["depth"] + count) * run.get("sequences", 1)
    if run["kind"] == "prefill":
        assert run["gb_per_sec"] is None and run["bandwidth_share"] is None
        return
    # At least the weights are read, at most all K/V of the run's end beside them.
    rate = 1e-6 / run["ms_per_step"]
    weights = report["weight_bytes_per_step"]
    assert weights * rate * 0.999 < run["gb_per_sec"] < (weights + run["kv_bytes"]) * rate * 1.001
    if report["read_gb_per_sec"] is not None:
        assert near(run["bandwidth_share"], run["gb_per_sec"] / report["read_gb_per_sec"])


def test_json_holds_every_point(vedette, llama):
    result = vedette("benchmark", llama, "--prefill", "16,40", "--decode", "6", "--depth", "0,70", "--sequences", "1,3",
                     "--rows", "2,8", "--repetitions", "3", "--seed", "7", "--threads", "1", "--compute", "i8",
                     "--prefill-chunk-size", "32", "--json", "--output", "report.json", "-q")
    assert result.code == 0 and result.err == ""
    report = result.json
    assert [run["run"] for run in report["runs"]] == [
        "pp16", "pp40", "tg6", "tg6 x3", "tg6 @70", "tg6 x3 @70", "rows1", "rows2", "rows8", "rows1 @70", "rows2 @70",
        "rows8 @70"]
    assert report["target"] == llama and report["family"] == "llama" and report["mode"] == "baseline"
    assert report["compute"] == "i8" and report["threads"] == 1 and report["kv_type"] == "f16"
    assert report["seed"] == 7 and report["prefill_chunk"] == 32 and report["repetitions"] == 3
    assert report["isa"] and report["version"] and report["load_ms"] > 0 and report["parameters"] > 0
    assert len(report["date"]) == len("2026-01-31T12:00:00Z") and report["date"].endswith("Z")
    assert 0 < report["weight_bytes_per_step"] <= report["weight_bytes"]
    assert report["kv_bytes_per_token"] > 0
    for run in report["runs"]:
        check_run(report, run)
    steps = {run["run"]: run["steps"] for run in report["runs"]}
    assert steps["pp16"] == 1 and steps["pp40"] == 2 and steps["tg6 x3"] == 6 and steps["rows8"] == 1
    for depth in ("", " @70"):
        ms = {run["run"]: run["ms_per_step"] for run in report["runs"]}
        cost = {run["run"]: run.get("cost_over_one_row") for run in report["runs"]}
        assert cost["rows1" + depth] == 1 and near(cost["rows8" + depth], ms["rows8" + depth] / ms["rows1" + depth])
    assert json.loads((vedette.folder / "report.json").read_text()) == report


def test_a_prompt_may_fill_the_context(vedette, llama):
    result = vedette("benchmark", llama, "--prefill", "512", "--decode", "0", "--trials", "1", "--json")
    assert result.code == 0, result.err
    result = vedette("benchmark", llama, "--prefill", "513", "--decode", "0", "--trials", "1", "-q")
    assert result.code == 1 and "has 512; lower --prefill" in result.error_line()


def test_text_is_one_line_per_point(vedette, llama):
    result = vedette("benchmark", "-m", llama, *QUICK)
    assert result.code == 0, result.err
    head, table = result.out.split("\n\n")
    assert [line.split()[0] for line in table.splitlines()] == ["TEST", "pp40", "tg6"]
    for word in ("Model", "Machine", "Precision", "Memory", "medians of 3"):
        assert word in head


def test_the_words_of_other_programs(vedette, llama):
    result = vedette("benchmark", "--target", llama, "--n-prompt", "0", "--max-new-tokens", "5", "--trials", "1",
                     "--modes", "baseline", "--no-small-m", "--no-lookup-drafts", "--json")
    assert result.code == 0, result.err
    assert [run["run"] for run in result.json["runs"]] == ["tg5"]
    result = vedette("benchmark", "-m", llama, "--json", "results.json")
    assert result.code == 2 and "--output results.json writes that file" in result.error_line()


def test_pictures(vedette, llama):
    for name in ("plot.svg", "plot.png"):
        result = vedette("benchmark", "-m", llama, *QUICK, "--rows", "4", "--plot", name, "--json")
        assert result.code == 0, result.err
    document = xml.dom.minidom.parse(str(vedette.folder / "plot.svg"))
    words = [node.firstChild.data for node in document.getElementsByTagName("text")]
    for label in ("pp40", "tg6", "rows1", "rows4", "Prefill, tokens per second"):
        assert label in words
    data = (vedette.folder / "plot.png").read_bytes()
    width, height = struct.unpack(">II", data[16:24])
    root = document.documentElement
    assert data.startswith(b"\x89PNG\r\n\x1a\n")
    assert (width, height) == (2 * int(root.getAttribute("width")), 2 * int(root.getAttribute("height")))


def test_a_model_without_a_tokenizer_is_measured(vedette, llama):
    import os
    bare = vedette.folder / "bare"
    bare.mkdir()
    for name in os.listdir(llama):
        if name == "config.json" or name == "model.safetensors":
            os.symlink(os.path.join(llama, name), bare / name)
    result = vedette("benchmark", bare, *QUICK, "--json")
    assert result.code == 0, result.err
    assert len(result.json["runs"]) == 2


@pytest.mark.parametrize("code,arguments,expected", [
    (2, ["--prefill", "12,x"], "--prefill (command line): expected numbers from 0 to 100000000 separated by commas, found 'x'"),
    (2, ["--decode", "-1"], "--decode (command line): expected numbers from 0"),
    (2, ["--depth", "1.5"], "found '1.5'"),
    (2, ["--sequences", "0"], "--sequences (command line): expected numbers from 1 to 256"),
    (2, ["--rows", "99999999999999999999"], "--rows (command line): expected numbers from 1 to 1024"),
    (2, ["--rows", ","], "--rows (command line): expected 1 to 64 numbers separated by commas, found 0"),
    (2, ["--repetitions", "0"], "--repetitions (command line): expected a value from 1 to 1000, found 0"),
    (2, ["--max-tokens", "-1"], "--max-tokens (command line): expected a value from 0"),
    (2, ["--max-tokens", "5", "--decode", "5"], "--decode and --max-tokens exclude each other"),
    (2, ["--prefill", "0", "--decode", "0"], "nothing to measure"),
    (2, ["--plot", "x.gif"], "--plot (command line): expected a file that ends in .svg or .png, found 'x.gif'"),
    (2, ["--modes", "dspark,lookup"], "--modes (command line): speculative drafters are not available yet"),
    (2, ["--caps", "2,auto"], "--caps (command line): speculative drafters are not available yet"),
    (2, ["--drafter", "x"], "speculative drafters are not available yet"),
    (2, ["--ctx-size", "9"], "--ctx-size does not belong to `vedette benchmark`"),
    (1, ["--output", "/nothing/x.json"], "--output: /nothing/x.json: cannot be written: No such file or directory"),
    (1, ["--plot", "folder.svg"], "--plot: folder.svg: cannot be written: Is a directory"),
    (1, ["--prefill", "100000"], "the point pp100000 needs a context of 100000 tokens"),
    (1, ["--decode", "8", "--depth", "90000"], "lower --depth or --decode"),
    (1, ["--max-tokens", "90000"], "lower --max-tokens"),
])
def test_refusals(vedette, llama, code, arguments, expected):
    (vedette.folder / "folder.svg").mkdir()
    result = vedette("benchmark", "-m", llama, "-q", *arguments)
    assert expected in result.error_line()
    assert result.code == code


def test_models_that_are_not_there(vedette, llama):
    assert "none.gguf" in vedette("benchmark", "./none.gguf").error_line()
    result = vedette("benchmark", llama, "-m", llama)
    assert result.code == 2 and "[MODEL] was given twice" in result.error_line()
