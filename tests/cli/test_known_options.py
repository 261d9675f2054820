"""Every option that users of other servers know is known here: it works, or is refused or ignored with a reason."""

import os
import re
import subprocess

import pytest

from conftest import BINARY, ROOT

with open(os.path.join(ROOT, "tests/cli/seed_flags.txt"), encoding="utf-8") as _file:
    KNOWN = [tuple(line.split()) for line in _file if not line.startswith("#")]


def table(text):
    """{spelling: subcommands} of the tables of `help --markdown`."""
    found = {}
    for line in text.splitlines():
        if not line.startswith("| `-"):
            continue
        cells = [cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]]
        # Active rows: spellings, variable, values, default, subcommands, meaning; others: spellings, default, subcommands, note.
        subcommands = set(cells[4 if len(cells) == 6 else 2].split(", "))
        for spelling in re.findall(r"`(-[^ `]+)", cells[0]):
            found[spelling] = subcommands
    return found


def test_every_option_is_known(vedette):
    known = table(vedette("help", "--markdown").out)
    assert len(KNOWN) > 400 and len(known) > 300
    missing = [f"{subcommand} {spelling}" for subcommand, spelling in KNOWN if subcommand not in known.get(spelling, ())]
    assert missing == []


def test_the_test_can_fail(vedette):
    assert "--never-heard-of" not in table(vedette("help", "--markdown").out)
    assert "unknown option" in vedette("serve", "--never-heard-of").error_line()


@pytest.mark.parametrize("option, word", [("--node-role", "router"), ("--lora-scaled", "a:1"), ("--tools", "all"),
                                          ("--image-model", "x/y"), ("--hf-file", "x.gguf"), ("--tp-size", "2")])
def test_refusals_name_option_and_reason(vedette, option, word):
    result = vedette("serve", option, word)
    assert result.code == 2
    assert result.error_line().startswith(f"vedette: {option} (command line): ")


def test_neutral_values_of_refused_options_pass(vedette):
    result = vedette("serve", "--tp-size", "1", "--cache-list")
    assert result.code == 0 and result.out == "number of models in cache: 0\n"


def test_short_names_of_several_letters(vedette):
    assert "expected a value from 1 to 1024" in vedette("serve", "-np", "0").error_line()
    assert "-np" in vedette("help", "--markdown").out
    assert "ubatch" in vedette("serve", "-ub", "7", "--cache-list").err


def test_samplers_by_letter(vedette):
    assert "letters of" in vedette("serve", "--sampler-seq", "kz", "--cache-list").error_line()
    assert vedette("serve", "--sampler-seq", "edskypmxt", "--cache-list").code == 0


def test_completion_is_a_script_that_completes(vedette):
    script = vedette("serve", "--completion-bash").out
    assert script == vedette("help", "--completion-bash").out
    ask = script + 'COMP_WORDS=(vedette serve --por); COMP_CWORD=2; _vedette; echo "${COMPREPLY[@]}"\n'
    done = subprocess.run(["bash", "-c", ask], capture_output=True, text=True, timeout=30)
    assert (done.returncode, done.stdout, done.stderr) == (0, "--port\n", "")


def test_the_other_name_serves(vedette):
    other = os.path.join(os.path.dirname(BINARY), "vedette-server")

    def run(*arguments):
        return subprocess.run([other, *arguments], cwd=vedette.folder, capture_output=True, text=True, timeout=60,
                              env={"PATH": os.environ["PATH"], "HOME": str(vedette.home)})
    assert run("--cache-list").stdout == "number of models in cache: 0\n"
    assert run("--help").stdout == vedette("help", "serve").out
    assert run("--version").stdout == vedette("version").out
    assert run("download", "--help").stdout == vedette("help", "download").out
