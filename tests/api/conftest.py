"""The server under test. VEDETTE_TEST_SERVER and VEDETTE_TEST_MODELS say where things are (see ./test).

`start_server` starts a server of its own; `smollm2` and `tiny` are shared by the tests of a run. `tiny` has random
weights, SmolLM2's tokenizer and a template with tools and reasoning (make_tiny_model.py).
"""

import json
import os
import subprocess
import sys
import threading
import urllib.request

import pytest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
SERVER = os.environ.get("VEDETTE_TEST_SERVER", os.path.join(ROOT, "build/release/test_server"))
MODELS = os.environ.get("VEDETTE_TEST_MODELS", os.path.join(ROOT, "build/models"))
SMOLLM2 = os.path.join(MODELS, "SmolLM2-135M-Instruct.Q4_1.gguf")


class Server:
    """A running test_server; `url` has no trailing slash."""

    def __init__(self, model, script=None, **options):
        arguments = [SERVER, model]
        for name, value in options.items():
            arguments += ["--" + name.replace("_", "-"), str(value)]
        self.script_path = None
        if script is not None:
            self.script_path = script
            arguments += ["--script", script]
        self.process = subprocess.Popen(arguments, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.url = self.process.stdout.readline().decode().strip()
        assert self.url, f"{arguments}: the server did not start (exit code {self.process.wait()})"

    def stop(self):
        self.process.stdin.close()
        code = self.process.wait(timeout=60)
        assert code == 0, f"the server ended with exit code {code}"

    def request(self, path, body=None, method=None, headers=None, timeout=120):
        """(status, headers, parsed JSON or text) of one request."""
        data = None if body is None else body if isinstance(body, bytes) else json.dumps(body).encode()
        request = urllib.request.Request(self.url + path, data, {"Content-Type": "application/json", **(headers or {})},
                                         method=method)
        try:
            response = urllib.request.urlopen(request, timeout=timeout)
        except urllib.error.HTTPError as error:
            response = error
        with response:
            text = response.read().decode("utf-8")
            kind = response.headers.get("Content-Type", "")
            return response.status, response.headers, json.loads(text) if kind.startswith("application/json") else text

    def post(self, path, body, **more):
        return self.request(path, body, **more)

    def events(self, path, body, headers=None, timeout=120):
        """The server-sent events of one request: a list of (event name or "", parsed data or "[DONE]")."""
        status, _, text = self.request(path, body, headers=headers, timeout=timeout)
        assert status == 200, text
        return parse_events(text)


class ScriptedServer(Server):
    """A server whose replies the tests tell while it runs."""

    def __init__(self, model, path, **options):
        self.entries, self.path, self.lock = [], path, threading.Lock()
        self.write()
        super().__init__(model, live_script=path, **options)

    def write(self):
        with open(self.path + ".new", "w", encoding="utf-8") as file:
            json.dump(self.entries, file)
        os.replace(self.path + ".new", self.path)

    def say(self, reply):
        """A text for a prompt: a request is answered with `reply` where no later text of say() is in its prompt."""
        with self.lock:
            when = f"Question number {len(self.entries) + 1}?"
            self.entries.insert(0, {"when": when, "reply": reply, "always": True})
            self.write()
        return when


def parse_events(text):
    out = []
    for block in text.split("\n\n"):
        name, data = "", None
        for line in block.split("\n"):
            if line.startswith("event: "):
                name = line[7:]
            elif line.startswith("data: "):
                data = line[6:]
            else:
                assert line == "" or line.startswith(":"), f"no line of a server-sent event: {line!r}"
        if data is not None:
            out.append((name, data if data == "[DONE]" else json.loads(data)))
    return out


@pytest.fixture
def start_server(tmp_path):
    """start(model, script=[{"when", "reply"}, ...], **options): a server that ends with the test."""
    running = []

    def start(model, script=None, **options):
        path = None
        if script is not None:
            path = str(tmp_path / f"script{len(running)}.json")
            with open(path, "w", encoding="utf-8") as file:
                json.dump(script, file)
        running.append(Server(model, path, **options))
        return running[-1]

    yield start
    for server in running:
        server.stop()


@pytest.fixture(scope="session")
def smollm2_path():
    assert os.path.exists(SMOLLM2), f"{SMOLLM2} is missing; ./test fetches it"
    return SMOLLM2


@pytest.fixture(scope="session")
def tiny_path(smollm2_path, tmp_path_factory):
    path = str(tmp_path_factory.mktemp("tiny") / "tiny.gguf")
    subprocess.run([sys.executable, os.path.join(ROOT, "tests/api/make_tiny_model.py"), smollm2_path, path], check=True)
    return path


@pytest.fixture(scope="session")
def smollm2(smollm2_path):
    server = Server(smollm2_path, id="SmolLM2")
    yield server
    server.stop()


@pytest.fixture(scope="session")
def tiny(tiny_path):
    server = Server(tiny_path, id="tiny")
    yield server
    server.stop()


@pytest.fixture(scope="session")
def scripted(tiny_path, tmp_path_factory):
    """The tiny model, answering what the test says: see ScriptedServer.say."""
    server = ScriptedServer(tiny_path, str(tmp_path_factory.mktemp("scripted") / "script.json"), id="tiny")
    yield server
    server.stop()
