"""Real agents against the server: Claude Code, Codex and opencode, with replies by script on a tiny model.

Each agent has an empty home folder and a clean environment. What they send passes a recorder that keeps sizes and
usage, never texts. Skipped, with the reason, only where npm does not answer.
"""

import importlib.util
import json
import os
import shutil
import subprocess

import pytest
from recorder import Recorder

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
AGENTS = os.environ.get("VEDETTE_TEST_AGENTS", os.path.join(ROOT, "build/agents"))
NPM_DOES_NOT_ANSWER = 3  # exit code of tools/get_agents

# The harness of the server's tests.
_spec = importlib.util.spec_from_file_location("api_harness", os.path.join(ROOT, "tests/api/conftest.py"))
_harness = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(_harness)
smollm2_path, tiny_path, start_server = _harness.smollm2_path, _harness.tiny_path, _harness.start_server

KEY = "key-of-this-test"
TASK = "In the file notes.txt, replace the word apple by the word quince."
NEXT_TASK = "Say once more what you changed."
ANSWER = "The word apple in notes.txt is now quince."
NEXT_ANSWER = "As said: one word of notes.txt."
BEFORE = "pears and plums\napple and cherry\n"
AFTER = "pears and plums\nquince and cherry\n"


def call(name, **arguments):
    return "<tool_call>\n" + json.dumps({"name": name, "arguments": arguments}) + "\n</tool_call>"


def thought(*replies):
    """The replies with reasoning before each."""
    return [f"<think>\nStep {i} of my plan, which I take with care.\n</think>\n\n{reply}"
            for i, reply in enumerate(replies)]


def script(*replies):
    """The task's replies in order, the next task's answer, and a title for whatever else the agent asks."""
    return ([{"when": NEXT_TASK, "reply": NEXT_ANSWER}] + [{"when": "<tools>", "reply": reply} for reply in replies] +
            [{"when": "", "reply": "A change of notes", "always": True}])


@pytest.fixture(scope="session")
def agents():
    """The folder of the installed agents' packages."""
    done = subprocess.run([os.path.join(ROOT, "tools/get_agents"), AGENTS], stderr=subprocess.PIPE, text=True)
    if done.returncode == NPM_DOES_NOT_ANSWER:
        pytest.skip(done.stderr.strip())
    assert done.returncode == 0, done.stderr
    return os.path.join(AGENTS, "node_modules")


class Workplace:
    """A home folder and a folder with notes.txt; programs run there see nothing else of this environment."""

    def __init__(self, folder):
        self.home, self.folder = str(folder / "home"), str(folder / "work")
        os.makedirs(self.home)
        os.makedirs(self.folder)
        self.notes, self.errors = os.path.join(self.folder, "notes.txt"), ""
        with open(self.notes, "w", encoding="utf-8") as file:
            file.write(BEFORE)

    def write_home(self, name, text):
        path = os.path.join(self.home, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)

    def run(self, command, environment, timeout=240):
        """What the program printed on standard output; its exit code must be 0. `errors` has its standard error."""
        clean = {"HOME": self.home, "PATH": "/usr/local/bin:/usr/bin:/bin", "LANG": "C.UTF-8", **environment}
        done = subprocess.run(command, cwd=self.folder, env=clean, stdin=subprocess.DEVNULL, capture_output=True,
                              text=True, timeout=timeout)
        assert done.returncode == 0, f"exit code {done.returncode}\n{done.stdout}\n{done.stderr}"
        self.errors = done.stderr
        return done.stdout

    def read_notes(self):
        with open(self.notes, encoding="utf-8") as file:
            return file.read()


@pytest.fixture
def workplace(tmp_path):
    workplace = Workplace(tmp_path)
    yield workplace
    shutil.rmtree(workplace.home)  # the agents leave their prompts there


@pytest.fixture
def recorded(agents, tiny_path, start_server):
    """recorded(*replies, change_billing=False, **options of the server): a recorder before a server of its own."""
    recorders = []

    def start(*replies, change_billing=False, **options):
        server = start_server(tiny_path, script(*replies), id="tiny", key=KEY, **options)
        recorders.append(Recorder(server.url, change_billing))
        return recorders[-1]

    yield start
    for recorder in recorders:
        recorder.stop()
        print(*recorder.exchanges, sep="\n")
