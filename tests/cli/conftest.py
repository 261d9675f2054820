"""Runs the built program. VEDETTE_BIN, VEDETTE_FIXTURES and VEDETTE_TEST_MODELS say where things are (see ./test)."""

import json
import os
import subprocess

import pytest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BINARY = os.environ.get("VEDETTE_BIN", os.path.join(ROOT, "build/release/vedette"))
FIXTURES = os.environ.get("VEDETTE_FIXTURES", os.path.join(ROOT, "build/fixtures"))
MODELS = os.environ.get("VEDETTE_TEST_MODELS", os.path.join(ROOT, "build/models"))


class Result:
    def __init__(self, code, out, err):
        self.code, self.out, self.err = code, out, err

    @property
    def json(self):
        return json.loads(self.out)

    def error_line(self):
        """The single line of an error that was reported as it should be."""
        lines = self.err.splitlines()
        assert len(lines) == 1, self.err
        assert lines[0].startswith("vedette: ")
        assert self.out == ""
        return lines[0]


@pytest.fixture
def home(tmp_path):
    """A home folder with nothing in it."""
    return tmp_path / "home"


@pytest.fixture
def vedette(home, tmp_path):
    """run(*arguments, stdin=..., env=...) in an empty folder with an empty home."""
    home.mkdir()
    folder = tmp_path / "work"
    folder.mkdir()

    def run(*arguments, stdin="", env=None, timeout=120):
        # No test asks the real hub.
        variables = {"PATH": os.environ["PATH"], "HOME": str(home), "LC_ALL": "C.UTF-8",
                     "HF_ENDPOINT": "http://127.0.0.1:1"}
        variables.update(env or {})
        done = subprocess.run([BINARY, *map(os.fsencode, arguments)], input=os.fsencode(stdin), capture_output=True,
                              cwd=folder, env=variables, timeout=timeout, check=False)
        return Result(done.returncode, done.stdout.decode(), done.stderr.decode())

    run.folder = folder
    run.home = home
    return run


@pytest.fixture(scope="session")
def smollm2():
    path = os.path.join(MODELS, "SmolLM2-135M-Instruct.Q4_1.gguf")
    assert os.path.exists(path), f"{path} is missing; ./test fetches it"
    return path


@pytest.fixture(scope="session")
def gemma():
    path = os.path.join(MODELS, "gemma-3-270m.Q4_K_M.gguf")
    assert os.path.exists(path), f"{path} is missing; ./test fetches it"
    return path


@pytest.fixture(scope="session")
def llama():
    path = os.path.join(FIXTURES, "llama")
    assert os.path.exists(path), f"{path} is missing; ./test unpacks it"
    return path
