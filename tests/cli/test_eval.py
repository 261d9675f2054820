"""eval: logits of given ids, perplexity, divergence."""

import json
import os
import shutil
import signal
import struct
import subprocess
import time

import pytest

from conftest import BINARY, FIXTURES

TEXT = "It was the best of times, it was the worst of times, it was the age of wisdom, it was the age of foolishness. " * 12


def read_safetensors(path):
    """{name: (shape, flat floats or ints)} of F32, I32 and I64 tensors."""
    with open(path, "rb") as file:
        data = file.read()
    size = struct.unpack("<Q", data[:8])[0]
    out = {}
    for name, entry in json.loads(data[8:8 + size]).items():
        if name == "__metadata__":
            continue
        begin, end = entry["data_offsets"]
        code = {"F32": "f", "I32": "i", "I64": "q"}[entry["dtype"]]
        block = data[8 + size + begin:8 + size + end]
        out[name] = (entry["shape"], struct.unpack(f"<{len(block) // struct.calcsize(code)}{code}", block))
    return out


@pytest.mark.parametrize("family", ["llama", "qwen3", "gemma3"])
def test_logits_of_a_fixture(vedette, family):
    folder = os.path.join(FIXTURES, family)
    reference = read_safetensors(os.path.join(folder, "reference.safetensors"))
    ids = ",".join(map(str, reference["input_ids"][1]))
    result = vedette("eval", "-m", folder, "--ids", ids, "--logits-out", "out.safetensors", "--compute", "f32", "--json")
    assert result.code == 0, result.err
    assert result.json["tokens"] == 48 and result.json["vocab"] == 320
    found = read_safetensors(vedette.folder / "out.safetensors")["logits"]
    expected = reference["logits"]
    assert found[0] == [48, 320]
    assert max(abs(a - b) for a, b in zip(found[1], expected[1])) < 2e-3
    # The same bits in chunks of 5, on one thread.
    result = vedette("eval", "-m", folder, "--ids", ids, "--logits-out", "chunks.safetensors", "--compute", "f32",
                     "--prefill-chunk-size", "5", "--threads", "1")
    assert result.code == 0, result.err
    assert read_safetensors(vedette.folder / "chunks.safetensors")["logits"] == found


def test_perplexity_and_divergence(vedette, smollm2):
    (vedette.folder / "text.txt").write_text(TEXT)
    shared = ["eval", "-m", smollm2, "--perplexity", "text.txt", "--window", "32", "--max-windows", "2", "--json"]
    plain = vedette(*shared)
    assert plain.code == 0, plain.err
    assert plain.json["windows"] == 2 and plain.json["scored_tokens"] == 2 * 15
    assert 1 < plain.json["perplexity"] < 1000
    against = vedette(*shared, "--kl-against", "f32").json
    assert against["perplexity"] == plain.json["perplexity"]
    assert 0 <= against["mean_kl"] < 1e-4 and against["max_kl"] >= against["mean_kl"]
    assert against["same_top"] > 0.9
    assert against["against"]["compute"] == "f32"
    itself = vedette(*shared, "--kl-against", smollm2, "--against-compute", "i16").json
    assert abs(itself["mean_kl"]) < 1e-12 and itself["same_top"] == 1
    assert "Mean KL" in vedette(*shared[:-1], "--kl-against", "f32").out


def test_bad_requests(vedette, smollm2, llama):
    (vedette.folder / "short.txt").write_text("too short")
    cases = [
        (2, ["-m", smollm2], "either --perplexity FILE or --ids LIST"),
        (2, ["-m", smollm2, "--ids", "1"], "--ids and --logits-out go together"),
        (2, ["-m", smollm2, "--ids", "1,x", "--logits-out", "o"], "found 'x' at place 2"),
        (1, ["-m", smollm2, "--perplexity", "short.txt"], "the text has"),
        (1, ["-m", smollm2, "--perplexity", "/"], "--perplexity: /: "),
        (1, ["-m", smollm2, "--perplexity", "short.txt", "--window", "1048576"], "lower --window"),
        (2, ["-m", smollm2, "--perplexity", "short.txt", "--kl-against", ""], "--kl-against: expected a model"),
        (2, ["-m", smollm2, "--perplexity", "short.txt", "--ids", "1", "--logits-out", "o"], "choose one"),
        (2, ["-m", smollm2, "--ids", "1", "--logits-out", "o", "--window", "8"], "belong to --perplexity"),
        (1, ["-m", smollm2, "--perplexity", "none.txt"], "none.txt"),
        (1, ["-m", llama, "--ids", "1,320", "--logits-out", "o", "-q"], "320"),
        (1, ["-m", llama, "--ids", "1,2", "--logits-out", "/nothing/o", "-q"], "/nothing/o: cannot be written"),
    ]
    for code, arguments, expected in cases:
        result = vedette("eval", *arguments)
        assert result.code == code, arguments
        assert expected in result.error_line()
    assert not (vedette.folder / "o").exists()


def test_a_failed_run_leaves_the_old_file(vedette, llama):
    kept = vedette.folder / "kept.safetensors"
    kept.write_text("precious")
    result = vedette("eval", "-m", llama, "--ids", "1,2,1000", "--logits-out", kept.name, "-q")
    assert result.code == 1
    assert "--ids: token id 1000 at place 3" in result.error_line()
    assert kept.read_text() == "precious"
    assert vedette("eval", "-m", llama, "--ids", "1,2", "--logits-out", kept.name, "-q").code == 0
    assert read_safetensors(kept)["logits"][0] == [2, 320]
    assert os.listdir(vedette.folder) == [kept.name]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_leaves_no_unfinished_file(smollm2, tmp_path, number):
    ids = ",".join(str(i % 40000) for i in range(4000))
    (tmp_path / "l.st").write_text("old")
    process = subprocess.Popen([BINARY, "eval", "-m", smollm2, "--ids", ids, "--logits-out", "l.st"], cwd=tmp_path,
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                               env={"HOME": str(tmp_path), "PATH": os.environ["PATH"]})
    while not list(tmp_path.glob("*.partial")):
        assert process.poll() is None
        time.sleep(0.01)
    process.send_signal(number)
    out, _ = process.communicate(timeout=5)
    assert process.returncode == 128 + number and out == b""
    assert [path.name for path in tmp_path.iterdir()] == ["l.st"] and (tmp_path / "l.st").read_text() == "old"


@pytest.mark.parametrize("command", ["eval -m {} --ids " + ",".join(["5"] * 500) + " --logits-out out -q",
                                     "convert -m {} --output out -q"])
def test_a_limit_on_file_sizes_is_an_error(vedette, llama, command):
    words = command.format(llama)
    done = subprocess.run(["sh", "-c", f"ulimit -f 100; exec {BINARY} {words}"], cwd=vedette.folder,
                          capture_output=True, text=True, timeout=60, check=False,
                          env={"HOME": str(vedette.home), "PATH": os.environ["PATH"]})
    assert done.returncode == 1 and "File too large" in done.stderr and done.stderr.count("\n") == 1
    assert os.listdir(vedette.folder) == []


def test_a_file_cut_while_it_is_read_gives_no_number(smollm2, tmp_path):
    model = tmp_path / "cut.gguf"
    shutil.copy(smollm2, model)
    (tmp_path / "text.txt").write_text(TEXT * 100)
    process = subprocess.Popen([BINARY, "eval", "-m", model, "--perplexity", tmp_path / "text.txt", "--repack", "off",
                                "--window", "64"], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                               env={"HOME": str(tmp_path), "PATH": os.environ["PATH"]})
    process.stderr.readline()  # loaded
    os.truncate(model, 1 << 20)
    out, err = process.communicate(timeout=120)
    assert process.returncode == 1 and out == b""
    assert b"was truncated after it was opened" in err
