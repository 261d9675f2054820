"""Wrong usage: exit code 2, one line that names the option and what to do."""

import pytest

USAGE = [
    (["generate", "--max-tokes", "5"], "unknown option '--max-tokes', did you mean --max-tokens?"),
    (["--max-tokes", "5"], "did you mean --max-tokens?"),
    (["generate", "--top-p", "1.5"], "--top-p (command line): expected a value from 0 to 1, found 1.5"),
    (["generate", "--temp", "hot"], "--temperature (command line): expected a number, found 'hot'"),
    (["generate", "-n", "-2"], "--max-tokens (command line): expected a value from -1"),
    (["generate", "-n"], "--max-tokens (command line): expected a value, found none"),
    (["generate", "--compute", "i4"], "--compute (command line): expected one of auto, i8, i16, f32, found 'i4'"),
    (["generate", "--image", "cat.png"], "--image (command line): image input: this build has no vision models yet"),
    (["generate", "--cache-type-k", "int8"], "int8 is not available: K/V rows are not quantized in this build"),
    (["generate", "--kv-cache-mode", "turbo4"], "turbo4 is not available"),
    (["generate", "--draft-model", "x"], "speculative drafters are not available yet"),
    (["generate", "--mode", "dspark"], "dspark is not available: speculative drafters are not available yet"),
    (["generate", "--surgery", "x.yaml"], "model surgery is not available"),
    (["generate", "--tp-size", "2"], "a model runs in one place in this build"),
    (["list", "--temp", "1"], "--temp does not belong to `vedette list`"),
    (["generate", "word"], "unexpected word 'word'"),
    (["run", "a/b", "c/d"], "unexpected word 'c/d'"),
    (["genrate"], "unknown subcommand 'genrate', did you mean generate?"),
    (["serve", "--no-model", "x"], "--no-model and a model exclude each other"),
    (["rm"], "rm: no model named"),
    (["embed"], "embed: this build runs text generation models alone"),
    (["help", "run", "y"], "unexpected word 'y': `vedette help` takes one [SUBCOMMAND] and has 'run' already"),
    (["help", "bogus"], "there is no subcommand 'bogus'"),
    (["run", "a/b", "--", "-p"], "unexpected word '-p'"),
    (["generate", "--repetition-penalty", "0.001"], "expected a value from 0.01 to 100"),
    (["generate", "--kv-cache-mode", "f32", "--cache-type-v", "f16"], "--cache-type-k f32 with --cache-type-v f16"),
    (["generate", "--cache-type-k", "f32", "--cache-type-v", "bf16"], "--cache-type-k f32 with --cache-type-v bf16"),
    (["convert", "-m", "x"], "no output named"),
    (["convert", "-m", "x", "-o", "y", "--q-bits", "7"], "--q-bits: expected 2, 3, 4, 5, 6 or 8"),
    ([], "no subcommand given"),
]


@pytest.mark.parametrize("arguments,expected", USAGE, ids=[" ".join(arguments) or "nothing" for arguments, _ in USAGE])
def test_usage_error(vedette, arguments, expected):
    result = vedette(*arguments)
    assert expected in result.error_line()
    assert result.code == 2


def test_environment_is_checked_like_the_command_line(vedette):
    result = vedette("generate", "-p", "x", env={"VEDETTE_CPU_ISA": "mmx"})
    assert "--isa (VEDETTE_CPU_ISA): expected one of portable, avx2, avx512, amx, neon, found 'mmx'" in result.error_line()
    assert result.code == 2
    result = vedette("generate", "-p", "x", env={"VEDETTE_MEMORY_LIMIT": "lots"})
    assert "--memory-limit (VEDETTE_MEMORY_LIMIT): expected bytes" in result.error_line()
    assert result.code == 2
    result = vedette("generate", "-p", "x", env={"VEDETTE_SURGERY": "x.yaml"})
    assert "--surgery (VEDETTE_SURGERY): model surgery is not available" in result.error_line()
    assert result.code == 2


def test_refused_options_may_ask_for_what_happens_anyway(vedette, smollm2):
    result = vedette("generate", "-m", smollm2, "-p", "Hi", "-n", "1", "--tp-size", "1", "--dry-multiplier", "0.0", "-q")
    assert result.code == 0, result.err


def test_inert_options_are_reported(vedette, smollm2):
    result = vedette("generate", "-m", smollm2, "-p", "Hi", "-n", "1", "--cpu-split", "0.5")
    assert result.code == 0, result.err
    assert "vedette: --cpu-split (command line): tunes Apple hardware; it means nothing here" in result.err.splitlines()


@pytest.mark.parametrize("arguments", [["help"], ["--help"], ["help", "generate"], ["generate", "-h"], ["run", "--help"]])
def test_help(vedette, arguments):
    result = vedette(*arguments)
    assert result.code == 0 and result.err == ""
    assert result.out.startswith("usage: vedette ")


def test_version(vedette):
    for spelling in ("version", "--version"):
        result = vedette(spelling)
        assert result.code == 0
        assert result.out.startswith("vedette 0.")


def test_output_that_cannot_be_written_is_an_error(vedette):
    import os
    import subprocess
    from conftest import BINARY
    with open("/dev/full", "wb") as full:
        done = subprocess.run([BINARY, "arch"], stdout=full, stderr=subprocess.PIPE, env={"HOME": os.devnull}, check=False)
    assert done.returncode == 1
    assert b"standard output cannot be written" in done.stderr
