"""Model arguments: where models are found, what is no model, what list, arch and inspect print."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time

import pytest

from conftest import BINARY, ROOT


def test_no_model(vedette):
    result = vedette("generate", "-p", "hi")
    assert result.code == 1
    assert "no model named" in result.error_line()


def test_missing_models(vedette):
    result = vedette("generate", "-m", "nobody/nothing", "-p", "hi")
    line = result.error_line()
    assert result.code == 1
    assert "model nobody/nothing (revision main): not in ./models, the store " in line
    assert str(vedette.home / ".cache/vedette/models") in line
    assert str(vedette.home / ".cache/huggingface/hub") in line
    result = vedette("generate", "-m", "./nothing.gguf", "-p", "hi")
    assert "./nothing.gguf: no such file or folder" in result.error_line()
    result = vedette("run", "-p", "hi")
    assert "vedette/SmolLM2-135M-Instruct" in result.error_line()
    assert "tools/fetch_models.py" in result.error_line()


def test_a_pdf_named_gguf(vedette):
    (vedette.folder / "paper.gguf").write_bytes(b"%PDF-1.7\n%\xe2\xe3\xcf\xd3\n" + b"x" * 4096)
    for arguments in (["generate", "-p", "hi"], ["inspect"], ["eval", "--ids", "1", "--logits-out", "x"]):
        result = vedette(arguments[0], "-m", "paper.gguf", *arguments[1:])
        assert result.code == 1
        assert "paper.gguf" in result.error_line()


def test_empty_and_foreign_files(vedette):
    (vedette.folder / "empty.gguf").write_bytes(b"")
    (vedette.folder / "notes.txt").write_text("hello")
    (vedette.folder / "folder").mkdir()
    (vedette.folder / "bad").mkdir()
    (vedette.folder / "bad/config.json").write_text("{")
    for model in ("empty.gguf", "notes.txt", "folder", "bad"):
        result = vedette("inspect", "-m", model)
        assert result.code == 1
        assert model in result.error_line()


def test_the_store_is_used_and_listed(vedette, smollm2):
    folder = vedette.home / ".cache/vedette/models/vedette/SmolLM2-135M-Instruct"
    folder.mkdir(parents=True)
    os.symlink(smollm2, folder / "model.gguf")
    assert vedette("list", "-q").out == "vedette/SmolLM2-135M-Instruct\n"
    rows = vedette("list", "--json").json
    assert [row["repo_id"] for row in rows] == ["vedette/SmolLM2-135M-Instruct"]
    assert set(rows[0]) == {"repo_id", "size_bytes", "path", "modified"}
    assert rows[0]["size_bytes"] == os.path.getsize(smollm2)
    assert "SmolLM2-135M-Instruct" in vedette("ls", "-v").out
    result = vedette("run", "-p", "What is the capital of France?", "-n", "12")
    assert result.code == 0
    assert "Paris" in result.out


def test_an_empty_store(vedette):
    assert vedette("list", "--json").json == []
    assert vedette("list", "-q").out == ""
    assert vedette("list").out.startswith("no models in ")
    result = vedette("list", "--json", "-q")
    assert result.code == 2
    assert "exclude each other" in result.error_line()


def test_hugging_face_cache(vedette, llama):
    repo = vedette.home / ".cache/huggingface/hub/models--o--tiny"
    shutil.copytree(llama, repo / "snapshots/0123abc")
    (repo / "refs").mkdir()
    (repo / "refs/main").write_text("0123abc")
    assert vedette("inspect", "-m", "o/tiny", "--json").json["model"] == "o/tiny"
    result = vedette("inspect", "-m", "o/tiny", "--revision", "v2")
    assert "(revision v2)" in result.error_line()


def test_arch(vedette):
    text = vedette("arch")
    assert text.code == 0
    assert text.out.startswith("Supported Model Architectures:")
    document = vedette("supported", "--json").json
    assert document["vedette_version"]
    families = {family["id"]: family for family in document["families"]}
    assert "llama" in families and "llama" in families["llama"]["model_types"]
    for family in families.values():
        assert set(family) >= {"id", "display_name", "category", "model_types", "aliases", "runtimes", "modalities_in",
                               "output", "backends", "tensor_parallel", "pipeline_parallel", "drafters", "kv_modes"}
        assert family["display_name"] in text.out


def test_inspect(vedette, smollm2):
    document = vedette("inspect", "-m", smollm2, "--json", "-n", "1024").json
    assert set(document) >= {"vedette_version", "model", "model_type", "family", "inputs", "weights_bytes",
                             "weights_source", "kv_bytes_per_token", "kv_bytes_total", "kv_detail",
                             "per_slot_overhead_bytes", "activation_bytes", "program_bytes", "backend_inflight_bytes", "headroom_bytes",
                             "headroom_factor", "budget_bytes", "total_bytes", "fits"}
    assert document["family"] == "llama"
    # 30 layers, keys and values, 3 heads of 64, 2 bytes
    assert document["kv_bytes_per_token"] == 30 * 2 * 3 * 64 * 2
    assert document["kv_bytes_total"] == 1024 * document["kv_bytes_per_token"]
    assert document["per_slot_overhead_bytes"] is None
    assert document["fits"] is True
    double = vedette("inspect", "-m", smollm2, "--json", "-n", "1024", "--batch", "2", "--kv-cache-mode", "f32").json
    assert double["kv_bytes_total"] == 4 * document["kv_bytes_total"]
    assert double["inputs"]["cache_type_k"] == "f32"
    small = vedette("inspect", "-m", smollm2, "--json", "--memory-limit", "1MB").json
    assert small["budget_bytes"] == 1000000 and small["fits"] is False
    assert "Fits         yes" in vedette("inspect", smollm2).out


def test_inspect_of_sliding_windows(vedette, gemma):
    document = vedette("inspect", "-m", gemma, "--json", "-n", "32768").json
    assert "within a window of 512 tokens" in document["kv_detail"]
    assert document["kv_bytes_total"] < 32768 * document["kv_bytes_per_token"]


def test_inspect_of_an_unknown_family(vedette, llama):
    shutil.copytree(llama, vedette.folder / "odd")
    config = json.loads((vedette.folder / "odd/config.json").read_text())
    config["model_type"] = "never_seen"
    (vedette.folder / "odd/config.json").write_text(json.dumps(config))
    document = vedette("inspect", "-m", "odd", "--json").json
    assert document["model_type"] == "never_seen"
    assert document["family"] is None and document["kv_bytes_total"] is None and document["fits"] is None
    assert document["weights_bytes"] > 0
    assert "never_seen" in document["unsupported"]


def test_a_store_that_is_no_folder(vedette):
    (vedette.folder / "file").write_text("x")
    for place, found in (("file", "a file"), ("missing", "nothing")):
        result = vedette("list", "--models-dir", place)
        assert result.code == 1
        assert f"{place}: expected a folder, found {found}" in result.error_line()


def test_names_reach_the_terminal_without_control_characters(vedette, llama):
    result = vedette("inspect", "-m", "no\x1b[31m\x07/such")
    assert "\x1b" not in result.err and "no\\x1b[31m\\x07/such" in result.error_line()
    os.symlink(llama, vedette.folder / "red\x1b[31m")
    result = vedette("inspect", "-m", "./red\x1b[31m")
    assert result.code == 0 and "\x1b" not in result.out and "./red\\x1b[31m" in result.out


def test_an_overlong_name_is_shortened(vedette):
    for name in ["x" * 5000, "x/" + "\x01" * 2000]:
        result = vedette("inspect", "-m", name)
        assert result.code == 1
        line = result.error_line()
        assert len(line) < 1300 and " ... " in line and line.endswith("or a path")


def test_an_end_token_that_is_no_id(vedette, llama):
    shutil.copytree(llama, vedette.folder / "odd")
    path = vedette.folder / "odd/config.json"
    config = json.loads(path.read_text())
    config["eos_token_id"] = "x"
    path.write_text(json.dumps(config))
    result = vedette("eval", "-m", "odd", "--ids", "1", "--logits-out", "o", "-q")
    assert result.code == 1
    assert "odd/config.json: eos_token_id: expected a token id" in result.error_line()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_leaves_no_unfinished_folder(smollm2, tmp_path, number):
    process = subprocess.Popen([BINARY, "convert", "-m", smollm2, "--output", "out", "--dtype", "f32"], cwd=tmp_path,
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                               env={"HOME": str(tmp_path), "PATH": os.environ["PATH"]})
    while not list(tmp_path.glob("out.partial/*")):
        assert process.poll() is None
        time.sleep(0.005)
    process.send_signal(number)
    assert process.wait(timeout=10) == 128 + number
    assert not list(tmp_path.iterdir())


def test_an_output_that_is_a_link_to_nothing(vedette, llama):
    os.symlink("gone", vedette.folder / "link")
    result = vedette("convert", llama, "-o", "link")
    assert result.code == 2
    assert "link is a link to gone, which does not exist" in result.error_line()


def test_list_tells_of_the_working_folders_models(vedette, smollm2):
    plain = vedette("list").out
    assert plain.startswith("no models in ") and len(plain.splitlines()) == 1
    folder = vedette.folder / "models/me/mine"
    folder.mkdir(parents=True)
    os.symlink(smollm2, folder / "model.gguf")
    lines = vedette("list").out.splitlines()
    assert lines[0] == plain.strip() and lines[2] == "in ./models, which is looked at before the store:"
    assert lines[4].startswith("me/mine ") and len(lines) == 5
    # The store alone, for programs.
    assert vedette("list", "-q").out == "" and vedette("list", "--json").json == []


def test_fetch_models_has_a_help():
    script = os.path.join(ROOT, "tools/fetch_models.py")
    done = subprocess.run([sys.executable, script, "--help"], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0 and "fetch_models.py [smollm2] [gemma]" in done.stdout
