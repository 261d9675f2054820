"""download, rm, and fetching by the way, against a hub of ours on loopback."""

import json
import os
import subprocess
import threading
import time

import pytest

from conftest import BINARY
from hub_double import HubDouble

UNREACHABLE = {"HF_ENDPOINT": "http://127.0.0.1:1"}


@pytest.fixture
def files(llama):
    out = {"README.md": b"# tiny\n", "pytorch_model.bin": b"pickle", "tokenizer_config.json": b"{}"}
    for name in os.listdir(llama):
        path = os.path.join(llama, name)
        if os.path.isfile(path) and name in ("config.json", "model.safetensors"):
            with open(path, "rb") as file:
                out[name] = file.read()
    return out


@pytest.fixture
def hub(files):
    double = HubDouble(files)
    yield double
    double.close()


@pytest.fixture
def fetch(vedette, hub):
    """download o/tiny from the double."""
    def run(*arguments, model="o/tiny", env=None):
        return vedette("download", model, *arguments, env={"HF_ENDPOINT": hub.endpoint, **(env or {})})
    run.folder = vedette.home / ".cache/vedette/models/o/tiny"
    return run


def weights(hub):
    return sorted(hub.large)[0]


def content(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir() if not path.name.startswith(".")}


def needed(files):
    return {name: data for name, data in files.items() if name not in ("README.md", "pytorch_model.bin")}


def test_a_model_is_fetched_whole_and_runs(vedette, fetch, hub, files):
    result = fetch()
    assert result.code == 0, result.err
    assert result.out == f"{fetch.folder}\n"
    assert content(fetch.folder) == needed(files)
    assert vedette("list", "-q").out == "o/tiny\n"
    assert vedette("inspect", "o/tiny", "--json", env=UNREACHABLE).json["family"] == "llama"
    assert not list((vedette.home / ".cache/vedette/models/.downloads").glob("*--*/*"))
    # A second time everything is there, and only the list is asked.
    before = len(hub.requests)
    again = fetch()
    assert again.code == 0 and "nothing was fetched" in again.err
    assert len(hub.requests) == before + 1


def test_force_fetches_again_and_repairs(fetch, hub, files):
    assert fetch().code == 0
    (fetch.folder / "config.json").write_bytes(b"{}")
    result = fetch()
    assert result.code == 0 and content(fetch.folder) == needed(files)
    assert len(hub.asked("config.json", "hub")) == 2 and len(hub.asked(weights(hub))) == 1
    assert fetch("--force").code == 0
    assert len(hub.asked(weights(hub))) == 2


def test_a_broken_transfer_is_resumed(fetch, hub, files):
    name = weights(hub)
    hub.cuts[name] = 1000
    result = fetch()
    assert result.code == 0, result.err
    assert [request.range for request in hub.asked(name)] == [None, "bytes=1000-"]
    assert content(fetch.folder) == needed(files)


def test_a_later_run_goes_on_where_one_stopped(vedette, fetch, hub, files):
    name = weights(hub)
    hub.cuts[name] = 700
    hub.failures[name] = 0
    # Every answer after the cut is an error, until the tries are used up.
    original = hub._file

    def failing(handler, asked):
        if asked == name and name not in hub.cuts:
            return hub._send(handler, 503, b"busy")
        return original(handler, asked)
    hub._file = failing
    result = fetch()
    assert result.code == 1
    assert "answered status 503" in result.err.splitlines()[-1]
    assert not fetch.folder.exists()
    assert vedette("list", "-q").out == ""
    hub._file = original
    hub.requests.clear()
    assert fetch().code == 0
    assert [request.range for request in hub.asked(name)] == ["bytes=700-"]
    assert content(fetch.folder) == needed(files)


def test_a_hub_without_ranges_begins_anew(fetch, hub, files):
    hub.ignore_ranges = True
    hub.cuts[weights(hub)] = 1000
    assert fetch().code == 0
    assert content(fetch.folder) == needed(files)


@pytest.mark.parametrize("kind", ["large", "small"])
def test_wrong_bytes_are_thrown_away(fetch, hub, files, kind):
    name = weights(hub) if kind == "large" else "config.json"
    good = files[name]
    hub.wrong[name] = good[:-1] + bytes([good[-1] ^ 1])
    result = fetch()
    assert result.code == 1
    assert f"{name} of o/tiny: what came differs" in result.err.splitlines()[-1]
    assert not fetch.folder.exists()
    hub.wrong.clear()
    assert fetch().code == 0
    assert content(fetch.folder) == needed(files)


def test_a_longer_file_than_told_is_refused(fetch, hub, files):
    hub.wrong["config.json"] = files["config.json"] + b"x"
    result = fetch()
    assert result.code == 1 and "more bytes came" in result.err.splitlines()[-1]


def test_the_token_goes_to_the_hub_alone(fetch, hub):
    hub.token = "hf_secret"
    assert fetch(env={"HF_TOKEN": "hf_secret"}).code == 0
    assert all(request.token == "Bearer hf_secret" for request in hub.requests if request.role == "hub")
    elsewhere = [request for request in hub.requests if request.role == "files"]
    assert elsewhere and all(request.token is None for request in elsewhere)


def test_tokens_wanted_and_refused(fetch, hub):
    hub.token = "hf_secret"
    result = fetch()
    assert result.code == 2
    assert "HF_TOKEN or --token" in result.error_line()
    result = fetch("--token", "hf_wrong")
    assert "does not accept the token" in result.error_line()
    assert "hf_wrong" not in result.err
    assert fetch("--hf-token", "hf_secret").code == 0


def test_the_older_name_of_the_token(fetch, hub):
    hub.token = "hf_secret"
    assert fetch(env={"HUGGING_FACE_HUB_TOKEN": "hf_secret"}).code == 0


def test_a_gated_model(fetch, hub):
    hub.gated = True
    result = fetch()
    assert "is gated" in result.err and "accept its terms" in result.err


def test_what_is_not_there(vedette, fetch, hub):
    assert "no model o/none (status 404)" in fetch(model="o/none").error_line()
    assert "no revision v9 of o/tiny" in fetch("--revision", "v9").error_line()
    assert "expected OWNER/NAME" in fetch(model="../x").error_line()
    assert "expected OWNER/NAME" in fetch(model="tiny").error_line()
    assert "no model named" in vedette("download").error_line()


def test_names_that_lead_out_of_the_folder(vedette, fetch, hub):
    for name in ("../../evil.json", "/tmp/evil.json", "a/../../evil.json"):
        hub.extra_siblings = [{"rfilename": name, "size": 1}]
        result = fetch()
        assert result.code == 1 and "leads out of the model's folder" in result.error_line()
    assert not fetch.folder.exists()
    assert not list(vedette.home.rglob("evil.json"))


def test_a_busy_hub_is_asked_again(fetch, hub):
    hub.listing_failures = 2
    hub.failures[weights(hub)] = 2
    assert fetch().code == 0
    hub.listing_failures = 99
    assert "answered status 503" in fetch().error_line()


def test_a_hub_that_cannot_be_reached(vedette):
    result = vedette("download", "o/tiny", env=UNREACHABLE)
    assert result.code == 1
    assert "http://127.0.0.1:1 cannot be reached" in result.error_line()
    result = vedette("download", "o/tiny", "--hf-endpoint", "no url")
    assert "expected a URL" in result.error_line()


def test_offline_refuses(vedette, fetch, hub):
    result = fetch("--offline")
    assert result.code == 2 and "nothing is downloaded" in result.error_line()
    result = vedette("inspect", "o/tiny", env={"HF_ENDPOINT": hub.endpoint, "VEDETTE_OFFLINE": "1"})
    assert "not in ./models" in result.error_line()
    assert not hub.requests


def test_a_model_that_is_nowhere_is_fetched_by_the_way(vedette, hub, files):
    env = {"HF_ENDPOINT": hub.endpoint}
    result = vedette("inspect", "o/tiny", "--json", env=env)
    assert result.code == 0, result.err
    assert result.json["model"] == "o/tiny"
    assert len(result.err.splitlines()) == 1 and "fetching o/tiny from" in result.err
    result = vedette("eval", "-m", "o/tiny", "--ids", "1,2", "--logits-out", "x", env=UNREACHABLE)
    assert result.code == 0, result.err
    result = vedette("eval", "-m", "o/other", "--ids", "1", "--logits-out", "x", env=env)
    line = result.error_line()
    assert "not in ./models" in line and "fetching it failed" in line and "no model o/other" in line


def test_a_revision_is_kept_in_mind(vedette, files):
    double = HubDouble(files, revision="exp/v2")
    try:
        env = {"HF_ENDPOINT": double.endpoint}
        result = vedette("inspect", "o/tiny", "--revision", "exp/v2", "--json", env=env)
        assert result.code == 0, result.err
        assert "exp%2Fv2" in double.requests[0].path
        for revision in ("exp/v2", double.commit):
            assert vedette("inspect", "o/tiny", "--revision", revision, "--json", env=UNREACHABLE).code == 0
        result = vedette("inspect", "o/tiny", "--revision", "v3", env=env)
        assert result.code == 2 and "another revision" in result.error_line()
    finally:
        double.close()


def test_what_a_newer_revision_lacks_goes(fetch, hub, files):
    hub.files["extra.json"] = b"{}"
    assert fetch().code == 0 and (fetch.folder / "extra.json").exists()
    (fetch.folder / "notes.txt").write_text("mine")
    del hub.files["extra.json"]
    hub.commit = "f" * 40
    assert fetch().code == 0
    assert not (fetch.folder / "extra.json").exists()
    assert (fetch.folder / "notes.txt").read_text() == "mine"


def test_a_folder_of_ones_own(vedette, fetch, hub, files):
    result = fetch("--local-dir", "here")
    assert result.code == 0, result.err
    assert {name: data for name, data in content(vedette.folder / "here").items()} == needed(files)
    assert os.listdir(vedette.home) == []


def test_patterns(fetch, hub, files):
    assert fetch("--include", "*.json", "--exclude", "tokenizer*").code == 0
    names = set(content(fetch.folder))
    assert names == {name for name in files if name.endswith(".json") and not name.startswith("tokenizer")}


def test_the_hugging_face_cache_is_used(vedette, fetch, hub, files):
    snapshot = vedette.home / ".cache/huggingface/hub/models--o--tiny/snapshots" / hub.commit
    snapshot.mkdir(parents=True)
    for name, data in needed(files).items():
        (snapshot / name).write_bytes(data)
    result = fetch()
    assert result.code == 0 and result.out == f"{snapshot}\n"
    assert "nothing was fetched" in result.err
    assert not fetch.folder.exists()


def test_two_at_once_fetch_once(vedette, fetch, hub, files):
    hub.slow = threading.Event()
    env = {"PATH": os.environ["PATH"], "HOME": str(vedette.home), "HF_ENDPOINT": hub.endpoint}
    both = [subprocess.Popen([BINARY, "download", "o/tiny"], cwd=vedette.folder, env=env, stdout=subprocess.PIPE,
                             stderr=subprocess.PIPE, text=True) for _ in range(2)]
    deadline = time.time() + 20
    while len([request for request in hub.requests if "/api/" in request.path]) < 2 and time.time() < deadline:
        time.sleep(0.02)
    time.sleep(0.5)
    hub.slow.set()
    outputs = [process.communicate(timeout=60) for process in both]
    assert [process.returncode for process in both] == [0, 0], outputs
    assert any("waiting for it" in err for _, err in outputs)
    assert len(hub.asked(weights(hub))) == 1
    assert content(fetch.folder) == needed(files)


def test_a_full_disk(vedette, fetch, hub):
    if not os.path.exists("/dev/full"):
        pytest.fail("no /dev/full here")
    # A limit on the size of files stands in for the disk: the message is the system's, the download stays resumable.
    command = f'ulimit -f 1; exec "{BINARY}" download o/tiny'
    done = subprocess.run(["bash", "-c", command], cwd=vedette.folder, capture_output=True, text=True, timeout=60,
                          env={"PATH": os.environ["PATH"], "HOME": str(vedette.home), "HF_ENDPOINT": hub.endpoint})
    assert done.returncode == 1
    assert "cannot be written" in done.stderr.splitlines()[-1]
    assert not fetch.folder.exists()
    assert fetch().code == 0


def test_rm(vedette, fetch):
    assert fetch().code == 0
    result = vedette("rm", "o/tiny")
    assert result.code == 2 and "--yes" in result.error_line()
    assert fetch.folder.exists()
    result = vedette("rm", "o/tiny", "-y")
    assert result.code == 0 and "removed o/tiny" in result.err
    assert not fetch.folder.exists() and not fetch.folder.parent.exists()
    result = vedette("rm", "o/tiny", "-y")
    assert result.code == 1 and "is not in the store" in result.error_line()


def test_rm_leaves_alone_what_is_not_the_stores(vedette):
    store = vedette.home / "models"
    outside = vedette.home / "outside/model"
    outside.mkdir(parents=True)
    (outside / "model.safetensors").write_bytes(b"x")
    (store / "o").mkdir(parents=True)
    os.symlink(outside, store / "o/link")
    os.symlink(outside.parent, store / "away")
    for name in ("o/link", "away/model"):
        result = vedette("rm", name, "--yes", "--models-dir", str(store))
        assert result.code == 1 and "a link" in result.error_line()
    for name in ("../outside", "..", "o", "o/..", "/etc/passwd", "o/link/x"):
        assert vedette("rm", name, "--yes", "--models-dir", str(store)).code in (1, 2)
    assert (outside / "model.safetensors").exists()
    # Links inside a model go, what they lead to stays.
    (store / "o/linked").mkdir()
    os.symlink(outside / "model.safetensors", store / "o/linked/model.safetensors")
    assert vedette("rm", "o/linked", "--yes", "--models-dir", str(store)).code == 0
    assert (outside / "model.safetensors").exists()


def test_rm_of_a_cached_model(vedette):
    snapshot = vedette.home / ".cache/huggingface/hub/models--o--tiny/snapshots/abc"
    snapshot.mkdir(parents=True)
    (snapshot.parent.parent / "refs").mkdir()
    (snapshot.parent.parent / "refs/main").write_text("abc")
    result = vedette("rm", "o/tiny", "--yes")
    assert result.code == 1 and "Hugging Face cache has it" in result.error_line()
    assert snapshot.exists()


def test_models_and_doctor_show_it(vedette, fetch):
    assert fetch().code == 0
    rows = vedette("models", "--json").json
    assert [(row["id"], row["family"], row["fits"], row["source"]) for row in rows] == [
        ("o/tiny", "llama", True, "store")]
    assert rows[0]["need_bytes"] > rows[0]["weight_bytes"] > 0
    assert "o/tiny" in vedette("models").out
    report = json.loads(vedette("doctor", "--json", "--port", "0").out)
    assert [row["id"] for row in report["models"]] == ["o/tiny"]
