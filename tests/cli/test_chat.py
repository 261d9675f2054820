"""The interactive chat on a terminal."""

import os
import pty
import re
import select
import subprocess
import time

import pytest

from conftest import BINARY

CTRL_C, CTRL_D, UP = b"\x03", b"\x04", b"\x1b[A"


class Terminal:
    def __init__(self, arguments, home):
        self.master, slave = pty.openpty()
        environment = {"HOME": str(home), "PATH": os.environ["PATH"], "TERM": "xterm", "LC_ALL": "C.UTF-8"}
        self.process = subprocess.Popen([BINARY, *arguments], stdin=slave, stdout=slave, stderr=slave, env=environment,
                                        start_new_session=True, preexec_fn=lambda: self.control(slave))
        os.close(slave)
        self.text = ""

    @staticmethod
    def control(slave):
        """Makes the terminal the process's own, so that Ctrl-C becomes SIGINT."""
        import fcntl
        import termios
        fcntl.ioctl(slave, termios.TIOCSCTTY, 0)

    def send(self, data):
        os.write(self.master, data)

    def wait(self, pattern, seconds=30):
        """Everything up to and with the pattern."""
        end = time.monotonic() + seconds
        while not (found := re.search(pattern, self.text)):
            ready, _, _ = select.select([self.master], [], [], max(0, end - time.monotonic()))
            assert ready, f"no {pattern!r} within {seconds} s in {self.text!r}"
            try:
                self.text += os.read(self.master, 4096).decode(errors="replace")
            except OSError:
                assert False, f"ended before {pattern!r}: {self.text!r}"
        head, self.text = self.text[:found.end()], self.text[found.end():]
        return head

    def exit_code(self, seconds=30):
        end = time.monotonic() + seconds
        while select.select([self.master], [], [], max(0, end - time.monotonic()))[0]:
            try:
                if not os.read(self.master, 4096):
                    break
            except OSError:
                break
        return self.process.wait(timeout=max(1, end - time.monotonic()))


@pytest.fixture
def chat(smollm2, tmp_path):
    terminals = []

    def start(*arguments):
        terminals.append(Terminal(["run", smollm2, *arguments], tmp_path))
        terminals[-1].wait("/bye leaves")
        terminals[-1].wait(">>> ")
        return terminals[-1]

    yield start
    for terminal in terminals:
        terminal.process.kill()
        os.close(terminal.master)


def test_a_conversation(chat):
    terminal = chat("-n", "24")
    terminal.send(b"What is the capital of France?\r")
    assert "Paris" in terminal.wait(">>> ")
    terminal.send("\"\"\"Zwei\rZeilen \u00e9\u6f22\"\"\"\r".encode())
    terminal.wait(r"\.\.\. ")
    terminal.wait(">>> ")
    terminal.send(b"/nonsense\r")
    assert "unknown command /nonsense" in terminal.wait(">>> ")
    terminal.send(b"/clear\r")
    assert "(new conversation)" in terminal.wait(">>> ")
    terminal.send(b"/bye\r")
    assert terminal.exit_code() == 0


def test_ctrl_c_drops_the_line_and_ctrl_d_leaves(chat):
    terminal = chat()
    terminal.send(b"never sent")
    terminal.wait("never sent")
    terminal.send(CTRL_C)
    terminal.wait(">>> ")
    terminal.send(b"/help\r")
    assert "never sent" not in terminal.wait("/clear ")
    terminal.wait(">>> ")
    terminal.send(CTRL_D)
    assert terminal.exit_code() == 0


def test_ctrl_d_typed_before_the_prompt_leaves(smollm2, tmp_path):
    """The terminal still reads whole lines then and turns the key into a NUL."""
    terminal = Terminal(["run", smollm2], tmp_path)
    terminal.send(CTRL_D)
    assert terminal.exit_code() == 0


def test_ctrl_c_cancels_the_reply(chat):
    terminal = chat("--ignore-eos")
    terminal.send(b"Count to one thousand.\r")
    terminal.wait(r"\w+( \w+){5}")  # longer than the prompt, so the reply
    terminal.send(CTRL_C)
    terminal.wait(r"\(cancelled\)")
    terminal.wait(">>> ")
    terminal.send(b"/bye\r")
    assert terminal.exit_code() == 0


@pytest.mark.parametrize("kind", ["pipe", "endless", "folder"])
def test_a_history_that_is_no_file_is_not_used(chat, tmp_path, kind):
    history = tmp_path / ".cache" / "vedette" / "history"
    history.parent.mkdir(parents=True)
    if kind == "pipe":
        os.mkfifo(history)
    elif kind == "endless":
        history.symlink_to("/dev/zero")
    else:
        history.mkdir()
    terminal = chat()
    terminal.send(b"/bye\r")
    assert terminal.exit_code() == 0


def test_history_is_kept(chat):
    terminal = chat()
    terminal.send(b"/help\r")
    terminal.wait(">>> ")
    terminal.send(b"/bye\r")
    assert terminal.exit_code() == 0
    terminal = chat()
    terminal.send(UP + UP)
    terminal.wait("help")  # the slash is on the screen already
    terminal.send(CTRL_C)
    terminal.wait(">>> ")
    terminal.send(CTRL_D)
    assert terminal.exit_code() == 0
