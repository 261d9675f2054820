"""claude, doctor, and what a server tells of itself, its machine and its requests."""

import http.client
import json
import os
import shlex
import shutil
import socket
import stat
import subprocess
import sys
import threading
import time
import urllib.parse

import pytest

from conftest import BINARY, ROOT
from hub_double import HubDouble
from serving import serve


@pytest.fixture(scope="session")
def tiny(smollm2, tmp_path_factory):
    """A small model with a tokenizer, as the server's own tests have it."""
    path = str(tmp_path_factory.mktemp("tiny") / "tiny.gguf")
    subprocess.run([sys.executable, os.path.join(ROOT, "tests/api/make_tiny_model.py"), smollm2, path], check=True)
    return path


@pytest.fixture(scope="module")
def server(tmp_path_factory, tiny):
    home = tmp_path_factory.mktemp("serving")
    store = home / ".cache/vedette/models/o"
    store.mkdir(parents=True)
    (store / "tiny").mkdir()
    os.symlink(tiny, store / "tiny/tiny.gguf")
    with serve(home, "o/tiny", "--alias", "tiny", "--no-warmup", "--parallel", "2") as running:
        running.home = home
        yield running


def complete(server, **fields):
    status, body = server.get("/v1/completions", data={"model": "tiny", "prompt": "once upon a time", "max_tokens": 4,
                                                       "ignore_eos": True, **fields})
    assert status == 200, body
    return body


def exported(text):
    """What a shell has after reading the lines, of the variables that matter here."""
    script = "export ANTHROPIC_API_KEY=old CLAUDE_CODE_USE_BEDROCK=1\n" + text + "\nenv -0"
    done = subprocess.run(["sh", "-c", script], capture_output=True, env={"PATH": os.environ["PATH"]}, timeout=30)
    assert done.returncode == 0, done.stderr
    pairs = (entry.split("=", 1) for entry in done.stdout.decode().split("\0") if entry)
    return {name: value for name, value in pairs if name.startswith(("ANTHROPIC", "CLAUDE"))}


def test_claude_prints_its_environment(vedette, server):
    result = vedette("claude", "--url", server.url + "/", "--print-env")
    assert result.code == 0, result.err
    variables = exported(result.out)
    tiers = {f"ANTHROPIC_DEFAULT_{tier}_MODEL" for tier in ("OPUS", "SONNET", "HAIKU", "FABLE")}
    assert set(variables) == {"ANTHROPIC_BASE_URL", "ANTHROPIC_AUTH_TOKEN", "ANTHROPIC_MODEL",
                              "ANTHROPIC_SMALL_FAST_MODEL", "CLAUDE_CODE_MAX_OUTPUT_TOKENS",
                              "CLAUDE_CODE_AUTO_COMPACT_WINDOW", "CLAUDE_CODE_MAX_CONTEXT_TOKENS", *tiers,
                              *(name + "_NAME" for name in tiers), *(name + "_DESCRIPTION" for name in tiers)}
    assert variables["ANTHROPIC_BASE_URL"] == server.url
    assert variables["ANTHROPIC_AUTH_TOKEN"] == "vedette"
    assert {variables[name] for name in tiers} == {"tiny"} == {variables["ANTHROPIC_MODEL"]}
    _, health = server.get("/health")
    assert variables["CLAUDE_CODE_MAX_OUTPUT_TOKENS"] == str(health["max_output_tokens"])
    assert health["context_window"] == 131072 and variables["CLAUDE_CODE_AUTO_COMPACT_WINDOW"] == "104857"
    assert variables["CLAUDE_CODE_MAX_CONTEXT_TOKENS"] == "131072"
    settings = vedette("claude", "--url", server.url, "--print-settings", "--key", "it's a key").json
    assert settings["env"] == {**variables, "ANTHROPIC_AUTH_TOKEN": "it's a key"}
    assert exported(vedette("claude", "--url", server.url, "--print-env", "--api-key", "it's a key").out)[
        "ANTHROPIC_AUTH_TOKEN"] == "it's a key"


def test_claude_is_started_in_place(vedette, server, tmp_path):
    fake = tmp_path / "bin/claude"
    fake.parent.mkdir()
    fake.write_text('#!/bin/sh\necho "$ANTHROPIC_BASE_URL|$ANTHROPIC_API_KEY|$$"\nfor word; do echo "[$word]"; done\n')
    fake.chmod(fake.stat().st_mode | stat.S_IXUSR)
    environment = {"PATH": f"{fake.parent}:{os.environ['PATH']}", "HOME": str(vedette.home), "ANTHROPIC_API_KEY": "old"}
    process = subprocess.Popen([BINARY, "claude", "--url", server.url, "--", "--continue", "-p", "a b", "--url", "--"],
                               env=environment, stdout=subprocess.PIPE, text=True)
    out, _ = process.communicate(timeout=30)
    assert out.splitlines() == [f"{server.url}||{process.pid}", "[--continue]", "[-p]", "[a b]", "[--url]", "[--]"]


def test_claude_says_what_is_missing(vedette, server, home):
    result = vedette("claude", "--url", server.url, env={"PATH": "/nowhere"})
    assert result.code == 1 and "npm install -g @anthropic-ai/claude-code" in result.error_line()
    result = vedette("claude", "--url", "http://127.0.0.1:1")
    assert result.code == 1 and "no Vedette server answers at http://127.0.0.1:1" in result.error_line()
    assert "expected a URL" in vedette("claude", "--url", "ftp://x").error_line()
    assert "exclude each other" in vedette("claude", "--print-env", "--print-settings").error_line()
    with serve(home, "--no-model", ready=False) as empty:
        result = vedette("claude", "--url", empty.url, "--print-env")
        assert result.code == 1 and "has no model" in result.error_line()


def test_claude_against_something_else(vedette):
    with socket.create_server(("127.0.0.1", 0)) as listener:
        process = subprocess.Popen([BINARY, "claude", "--url", f"http://127.0.0.1:{listener.getsockname()[1]}"],
                                   stderr=subprocess.PIPE, text=True, env={"PATH": "/bin", "HOME": str(vedette.home)})
        listener.settimeout(20)
        connection, _ = listener.accept()
        connection.recv(4096)
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello")
        _, err = process.communicate(timeout=30)
        connection.close()
    assert process.returncode == 1 and "no Vedette server answers" in err


def test_doctor_finds_nothing_wrong_or_says_what(vedette):
    result = vedette("doctor", "--json", "--port", "0")
    report = result.json
    assert result.code == (0 if report["ok"] else 1)
    assert report["ok"] == (report["problems"] == [])
    environment = report["environment"]
    assert environment["platform"] == "linux" and environment["isas"][0] == "portable"
    assert environment["memory"]["total_bytes"] > environment["memory"]["available_bytes"] > 0
    assert environment["processors"] >= 1 and environment["port"]["free"] is True
    assert [folder["kind"] for folder in environment["model_dirs"]] == ["./models", "store", "Hugging Face cache"]
    text = vedette("doctor", "--port", "0", "--models")
    assert environment["version"] in text.out and environment["store"]["path"] in text.out


def test_doctor_reports_problems_with_remedies(vedette, server):
    port = urllib.parse.urlsplit(server.url).port
    (vedette.home / "file").write_text("x")
    broken = vedette.home / "store/o/broken"
    broken.mkdir(parents=True)
    (broken / "config.json").write_text("{")
    result = vedette("doctor", "--json", "--port", str(port), "--models-dir", str(vedette.home / "store"))
    assert result.code == 1 and result.json["ok"] is False
    problems = {problem["code"]: problem for problem in result.json["problems"]}
    assert {"port_in_use", "broken_model"} <= set(problems)
    assert all(problem["message"] and problem["remedy"] for problem in problems.values())
    assert "o/broken" in problems["broken_model"]["message"]
    result = vedette("doctor", "--json", "--port", "0", "--models-dir", str(vedette.home / "file"))
    assert "store_not_writable" in {problem["code"] for problem in result.json["problems"]}


def test_the_server_knows_the_same(server):
    status, report = server.get("/doctor")
    assert status == 200 and set(report) == {"ok", "problems", "environment", "models"}
    assert [row["id"] for row in report["models"]] == ["o/tiny"]
    assert "port" not in report["environment"]
    status, machine = server.get("/machine")
    assert status == 200 and machine["bandwidth_gb_per_sec"] is None
    assert machine["served"]["model"] == "tiny" and machine["served"]["weight_bytes_per_token"] > 0
    status, models = server.get("/admin/models")
    assert status == 200 and models["loaded"] == "tiny"
    assert [(row["id"], row["family"], row["ready"]) for row in models["models"]] == [("o/tiny", "llama", True)]
    assert models["disk"]["free_bytes"] > 0


def test_integrations_carry_the_requests_host(server):
    port = urllib.parse.urlsplit(server.url).port
    status, body = server.get("/admin/integrations", headers={"Host": f"localhost:{port}"})
    assert status == 200 and body["base_url"] == f"http://localhost:{port}"
    entries = {entry["id"]: entry for entry in body["integrations"]}
    assert list(entries) == ["claude-code", "codex", "opencode", "openai"]
    claude = json.loads(entries["claude-code"]["files"][0]["content"])
    assert claude["env"]["ANTHROPIC_BASE_URL"] == body["base_url"] and claude["env"]["ANTHROPIC_MODEL"] == "tiny"
    try:
        import tomllib
        codex = tomllib.loads(entries["codex"]["files"][0]["content"])
        assert codex["model_providers"]["vedette"]["base_url"] == body["base_url"] + "/v1"
        assert codex["model_providers"]["vedette"]["wire_api"] == "responses" and codex["model"] == "tiny"
    except ModuleNotFoundError:
        assert 'wire_api = "responses"' in entries["codex"]["files"][0]["content"]
    opencode = json.loads(entries["opencode"]["files"][0]["content"])
    assert opencode["provider"]["vedette"]["options"]["baseURL"] == body["base_url"] + "/v1"
    assert "tiny" in opencode["provider"]["vedette"]["models"]
    compile(entries["openai"]["files"][0]["content"], "hello.py", "exec")
    assert shlex.split(entries["claude-code"]["command"])[-1] == body["base_url"]


def test_rounds_tell_of_finished_requests(server):
    before = server.get("/rounds?limit=512")[1]
    complete(server, n=2, temperature=1, seed=3)
    after = server.get("/rounds?limit=2")[1]
    first, second = after["rounds"]
    assert (first["i"], second["i"]) == (0, 1) and first["req"] == second["req"]
    for round_ in (first, second):
        assert round_["mode"] == round_["source"] == "plain" and round_["dialect"] == "completions"
        assert round_["completion_tokens"] == 4 and round_["finish_reason"] == "length"
        assert round_["prompt_tokens"] > 0 and round_["ms"] >= 0 and "text" not in round_
    assert after["stats"]["rounds"] == before["stats"]["rounds"] + 2
    assert after["stats"]["requests"] == before["stats"]["requests"] + 1
    status, error = server.get("/rounds?limit=x")
    assert status == 400 and "limit" in error["error"]["message"]


class Events:
    """Reads server-sent events of a connection."""

    def __init__(self, url):
        parts = urllib.parse.urlsplit(url)
        self.connection = http.client.HTTPConnection(parts.hostname, parts.port, timeout=30)
        self.connection.request("GET", "/events")
        self.answer = self.connection.getresponse()
        assert self.answer.getheader("Content-Type") == "text/event-stream"

    def next(self):
        name = None
        while True:
            line = self.answer.readline().decode().rstrip("\n")
            if line.startswith("event: "):
                name = line[7:]
            elif line.startswith("data: "):
                return name, json.loads(line[6:])
            elif not line and self.answer.isclosed():
                raise EOFError

    def close(self):
        self.connection.close()


def test_events_replay_and_follow(server):
    complete(server)
    events = Events(server.url)
    name, event = events.next()
    replayed = 0
    while name == "round":
        replayed += 1
        name, event = events.next()
    assert 1 <= replayed <= 32
    assert name == "stats" and event["requests"] >= 1
    complete(server, prompt="a watcher sees this " * 8, cache_prompt=False)
    seen = []
    while not seen or seen[-1][0] != "round":
        seen.append(events.next())
    prefills = [event for name, event in seen if name == "prefill"]
    assert prefills and prefills[-1].get("done") is True
    assert prefills[-1]["processed"] == prefills[-1]["total"] == seen[-1][1]["prompt_tokens"]
    assert seen[-1][1]["req"] == prefills[-1]["req"]
    events.close()


def test_small_windows_and_watchers_at_the_end(vedette, home, tiny):
    with serve(home, tiny, "--no-warmup", "--ctx-size", "4096", "--max-tokens-cap", "1000") as running:
        variables = exported(vedette("claude", "--url", running.url, "--print-env").out)
        assert "CLAUDE_CODE_AUTO_COMPACT_WINDOW" not in variables
        assert variables["CLAUDE_CODE_MAX_OUTPUT_TOKENS"] == "1000"
        assert variables["CLAUDE_CODE_MAX_CONTEXT_TOKENS"] == "4096"
        # Someone who watches does not hold up the end.
        events = Events(running.url)
        running.process.terminate()
        assert running.process.wait(timeout=8) == 0
        events.close()


def test_the_memory_of_a_served_model_is_checked_before_it_is_loaded(vedette, smollm2):
    """Each model is checked as it is opened, the one named at the start like those of /admin/load."""
    for arguments, message in ((["--estimate-memory", "--memory-limit", "120MB"], "the model needs "),
                               (["--memory-limit", "10MB"], "the weights take ")):
        result = vedette("serve", smollm2, "--port", "0", "-q", *arguments)
        assert result.code == 1 and result.error_line().startswith("vedette: " + message)


class SlowLoad:
    """POST /admin/load of the double's model, standing still in the middle of its file."""

    sent = 1000

    def __init__(self, running, hub):
        self.running, self.event, self.answer = running, threading.Event(), None
        hub.stalls["tiny.gguf"] = (self.sent, self.event)
        self.thread = threading.Thread(target=self._load)
        self.thread.start()
        deadline = time.monotonic() + 60
        while True:
            self.status = running.get("/admin/status")[1]
            if self.status["download"] and self.status["download"]["bytes_done"] >= self.sent:
                break
            assert time.monotonic() < deadline and self.answer is None, (self.status, self.answer)
            time.sleep(0.02)
        hub.stalls.clear()

    def _load(self):
        try:
            self.answer = self.running.get("/admin/load", data={"model": "o/tiny"})
        except OSError as error:
            self.answer = (0, str(error))

    def finish(self):
        self.event.set()
        self.thread.join(60)
        return self.answer


def test_a_download_for_a_load_shows_its_progress_and_is_cancelled(home, tiny):
    home.mkdir()
    with open(tiny, "rb") as file:
        hub = HubDouble({"tiny.gguf": file.read()})
    parts = home / ".cache/vedette/models/.downloads/o--tiny"
    with serve(home, "--no-model", "--no-warmup", ready=False, hub=hub.endpoint) as running:
        def cancel(**fields):
            return running.get("/admin/load/cancel", data=fields)

        assert cancel() == (200, {"success": False, "message": "nothing is being downloaded"})
        load = SlowLoad(running, hub)
        assert load.status["loading"] and not load.status["ready"]
        total = len(hub.files["tiny.gguf"])
        assert load.status["download"] == {"repo": "o/tiny", "bytes_done": load.sent, "bytes_total": total}
        status, body = running.get("/health")
        assert status == 503 and body["status"] == "loading" and body["download"]["bytes_total"] == total
        status, body = running.get("/admin/load", data={"model": "o/other"})
        assert status == 503 and "/admin/load/cancel" in body["error"]["message"]
        assert running.get("/admin/load/cancel", data={"cleanup": 1})[0] == 400

        # What has come is kept, unless it is to be cleaned up.
        assert cancel() == (200, {"success": True})
        status, body = running.get("/admin/status")
        assert not body["loading"] and body["download"] is None
        status, body = load.finish()
        assert status == 499 and "cancelled" in body["error"]["message"]
        assert [path.stat().st_size for path in parts.iterdir()] == [load.sent]
        load = SlowLoad(running, hub)
        assert cancel(cleanup=True) == (200, {"success": True})
        assert load.finish()[0] == 499 and not parts.exists()
        assert [request.range for request in hub.asked("tiny.gguf")] == [None, f"bytes={load.sent}-"]

        load = SlowLoad(running, hub)
        status, body = load.finish()
        assert status == 200 and body["ready"] and body["model"] == "tiny" and body["download"] is None
        assert complete(running)
    hub.close()


def test_a_download_does_not_hold_up_the_end(home, tiny):
    home.mkdir()
    with open(tiny, "rb") as file:
        hub = HubDouble({"tiny.gguf": file.read()})
    with serve(home, "--no-model", ready=False, hub=hub.endpoint) as running:
        load = SlowLoad(running, hub)
        running.process.terminate()
        assert running.process.wait(timeout=9) == 0
        load.finish()
    hub.close()


def test_a_load_that_could_not_be_took_the_model_away(home, tiny):
    home.mkdir()
    (home / "broken.gguf").write_bytes(b"GGUF")
    with serve(home, tiny, "--alias", "tiny", "--no-warmup") as running:
        for fields, field in (({"model": tiny, "context_window": 10 ** 9}, "context_window"),
                              ({"model": tiny, "context_window": 1}, "context_window"),
                              ({"model": str(home / "broken.gguf")}, "model")):
            status, body = running.get("/admin/load", data=fields)
            assert status == 400 and body["error"]["param"] == field, body
            assert running.get("/admin/status")[1]["ready"]
            complete(running)
        assert running.get("/admin/load", data={"model": tiny, "context_window": 700})[0] == 200
        complete(running)


def test_a_sleeping_model_could_not_be_unloaded(home, tiny):
    home.mkdir()
    with serve(home, tiny, "--alias", "tiny", "--no-warmup", "--sleep-idle-seconds", "0") as running:
        complete(running)
        deadline = time.monotonic() + 60
        while running.get("/health")[1]["status"] != "sleeping":
            assert time.monotonic() < deadline
            time.sleep(0.05)
        assert running.get("/admin/unload", data={}) == (200, {"success": True})
        status, body = running.get("/v1/completions", data={"prompt": "a"})
        assert status == 503 and "no model is loaded" in body["error"]["message"]
        assert running.get("/admin/unload", data={}) == (200, {"success": False})


def test_what_is_remembered_of_models_follows_the_files(home, tiny):
    store = os.path.join(home, ".cache/vedette/models/o")
    os.makedirs(os.path.join(store, "tiny"))
    os.symlink(tiny, os.path.join(store, "tiny/tiny.gguf"))
    other = os.path.join(store, "other")
    os.makedirs(other)
    with open(tiny, "rb") as whole, open(os.path.join(other, "other.gguf"), "wb") as cut:
        cut.write(whole.read()[:-100])

    def models():
        status, body = running.get("/admin/models")
        assert status == 200, body
        return {row["id"]: row for row in body["models"]}

    with serve(home, "o/tiny", "--alias", "tiny", "--no-warmup") as running:
        first = models()
        assert first["o/other"]["problem"] and first["o/tiny"]["family"] == "llama"
        assert models() == first
        shutil.copy(tiny, os.path.join(other, "other.gguf"))
        mended = models()["o/other"]
        assert mended["problem"] is None and mended["parameters"] == first["o/tiny"]["parameters"]
        assert mended["fits"] is True
        shutil.rmtree(other)
        assert set(models()) == {"o/tiny"}
