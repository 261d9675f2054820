"""Prompts in, text and JSON out."""

import os
import re
import signal
import subprocess
import time

import pytest

from conftest import BINARY

FRANCE = "What is the capital of France?"


def test_json(vedette, smollm2):
    result = vedette("generate", "-m", smollm2, "-p", FRANCE, "-n", "16", "--json", "--threads", "1", "--isa", "avx2")
    assert result.code == 0, result.err
    document = result.json
    assert set(document) >= {"model", "text", "reasoning", "prompt_ids", "ids", "finish_reason", "stop",
                             "max_tokens_clamped", "timings", "seed", "compute", "isa", "threads", "kv_type",
                             "context_length"}
    assert "Paris" in document["text"]
    assert document["reasoning"] is None
    assert len(document["ids"]) == document["timings"]["generated_tokens"] <= 16
    assert len(document["prompt_ids"]) == document["timings"]["prompt_tokens"]
    assert document["finish_reason"] in ("stop", "length")
    assert document["compute"] == "i16" and document["isa"] == "avx2" and document["threads"] == 1
    assert all(document["timings"][key] >= 0 for key in ("load_ms", "queue_ms", "prefill_ms", "decode_ms"))


def test_text_and_summary(vedette, smollm2):
    shared = ["-m", smollm2, "-p", FRANCE, "-n", "16"]
    text = vedette("generate", *shared, "--json").json["text"]
    streamed = vedette("generate", *shared)
    assert streamed.code == 0
    assert streamed.out.startswith(text + "\n")
    assert "[Generated " in streamed.out.splitlines()[-1]
    assert "compute i16" in streamed.err and "threads" in streamed.err
    whole = vedette("--prompt", FRANCE, "--model", smollm2, "--max-new-tokens", "16", "--no-stream", "--quiet")
    assert whole.out.startswith(text + "\n")
    assert whole.err == ""
    profile = vedette("gen", *shared, "--profile")
    assert "[Profile Results]" in profile.out and "Prefill: " in profile.out and "Decode: " in profile.out


def test_sampling_is_repeatable(vedette, smollm2):
    shared = ["generate", "-m", smollm2, "-p", "Once upon a time", "-n", "24", "--json", "--temp", "1", "--top-k", "50"]
    first = vedette(*shared).json
    again = vedette(*shared, "--seed", str(first["seed"]), "--prefill-chunk-size", "3", "--threads", "1").json
    assert again["ids"] == first["ids"] and again["seed"] == first["seed"]
    other = vedette(*shared, "--seed", str(first["seed"] + 1)).json
    assert other["ids"] != first["ids"]


def test_bias_of_a_language(vedette, smollm2, tmp_path):
    shared = ["generate", "-m", smollm2, "-p", "The capital of France is", "--no-chat-template", "-n", "8", "--json"]
    assert re.search("[A-Za-z]", vedette(*shared).json["text"])
    without = vedette(*shared, "--lang-bias", "en=-inf", "--lang-bias-policy", "strict").json
    assert without["ids"] and not re.search("[A-Za-z]", without["text"])
    config = tmp_path / "bias.yaml"
    config.write_text("en: -inf\npolicy: strict\n")
    assert vedette(*shared, "--lang-bias-config", str(config)).json["ids"] == without["ids"]
    config.write_text("en\n")
    assert vedette(*shared, "--lang-bias-config", str(config)).error_line() == (
        "vedette: --lang-bias-config: line 1: expected LANGUAGE: BIAS as ja: -10, found 'en'")


def test_stop_and_bias(vedette, smollm2):
    shared = ["generate", "-m", smollm2, "-p", "The capital of France is", "--no-chat-template", "-n", "8", "--json"]
    plain = vedette(*shared).json
    stopped = vedette(*shared, "--stop", plain["text"][4:7]).json
    assert stopped["finish_reason"] == "stop" and stopped["stop"] == plain["text"][4:7]
    assert stopped["text"] == plain["text"][:plain["text"].index(stopped["stop"])]
    banned = vedette(*shared, "--logit-bias", f"{plain['ids'][0]}=-inf").json
    assert banned["ids"][0] != plain["ids"][0]
    result = vedette(*shared, "--logit-bias", "x=1")
    assert result.code == 2
    assert "--logit-bias: expected ID=BIAS" in result.error_line()


def test_every_sampler_has_its_option(vedette, smollm2):
    shared = ["generate", "-m", smollm2, "--no-chat-template", "-n", "8", "--json", "--seed", "1"]
    animals = ["-p", "A list of animals:"]
    loop = ["-p", "a b a b a b a b a b a b"]
    sampled = vedette(*shared, *animals, "--temp", "2").json["ids"]
    for options in (["--dynatemp-range", "20", "--dynatemp-exp", "0.5"],
                    ["--typical-p", "0.1"],
                    ["--top-n-sigma", "0.1", "--xtc-probability", "1", "--xtc-threshold", "0.05"],
                    ["--mirostat", "2", "--mirostat-lr", "0.2", "--mirostat-ent", "0.1"],
                    ["--adaptive-target", "0.01", "--adaptive-decay", "0.5", "--samplers", "adaptive_p"],
                    ["--p-less"],
                    ["--top-k", "1", "--sampler-seq", "kt"],
                    ["--top-k", "1", "--samplers", "top_k;temperature"]):
        result = vedette(*shared, *animals, "--temp", "2", *options)
        assert result.code == 0, result.err
        assert result.json["ids"] != sampled, options
    dry = ["--dry-multiplier", "5", "--dry-base", "3", "--dry-allowed-length", "1", "--dry-penalty-last-n", "64"]
    repeated = vedette(*shared, *loop).json["ids"]
    assert vedette(*shared, *loop, *dry).json["ids"] != repeated
    # Nothing is counted over a text that breaks sequences.
    assert vedette(*shared, *loop, *dry, "--dry-sequence-breaker", " a, b").json["ids"] == repeated
    wrong = vedette(*shared, *animals, "--sampler-seq", "q")
    assert wrong.code == 2 and "--sampler-seq: expected letters" in wrong.error_line()


def test_a_turn_uses_what_the_one_before_left(vedette, smollm2):
    result = vedette("run", smollm2, "-n", "8", "--profile", "--temp", "0",
                     stdin=f"{FRANCE}\nAnd of Italy?\n/clear\n{FRANCE}\n")
    assert result.code == 0, result.err
    prompts = [int(count) for count in re.findall("Prompt tokens: (.*)", result.out)]
    cached = [int(count) for count in re.findall("Cached tokens: (.*)", result.out)]
    assert len(prompts) == len(cached) == 3
    # All whole blocks of what came before; at least the last token of a prompt is computed.
    block = 32
    assert cached[0] == 0
    assert prompts[0] - block < cached[1] < prompts[1] and cached[1] % block == 0
    assert cached[2] == (prompts[2] - 1) // block * block
    once = vedette("generate", "-m", smollm2, "-p", FRANCE, "-n", "8", "--profile")
    assert "Cached tokens: 0\n" in once.out


def test_template_or_not(vedette, smollm2):
    shared = ["generate", "-m", smollm2, "-n", "1", "--json"]
    chat = vedette(*shared, "-p", "Hi").json["prompt_ids"]
    raw = vedette(*shared, "-p", "Hi", "--no-chat-template").json["prompt_ids"]
    system = vedette(*shared, "-p", "Hi", "--system", "Answer in verse, with much feeling.").json["prompt_ids"]
    assert len(raw) < len(chat) and chat != system


@pytest.fixture(scope="session")
def thinker(smollm2, tmp_path_factory):
    """The model with a template of the same length that opens the reasoning and refuses system turns."""
    with open(smollm2, "rb") as file:
        data = file.read()
    begin = data.index(b"tokenizer.chat_template") + len("tokenizer.chat_template") + 4
    length = int.from_bytes(data[begin:begin + 8], "little")
    text = (b"{% for m in messages %}{% if m.role == 'system' %}{{ raise_exception('none') }}{% endif %}"
            b"<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"
            b"{% if add_generation_prompt %}<|im_start|>assistant\n<think>\n{% endif %}{#</think>")
    assert len(text) + 2 <= length
    path = tmp_path_factory.mktemp("thinker") / "thinker.gguf"
    path.write_bytes(data[:begin + 8] + text.ljust(length - 2) + b"#}" + data[begin + 8 + length:])
    return str(path)


def test_reasoning_is_hidden_unless_asked_for(vedette, thinker):
    shared = ["generate", "-m", thinker, "-p", FRANCE, "-n", "12"]
    document = vedette(*shared, "--json").json
    assert document["text"] == "" and document["reasoning"]
    hidden = vedette(*shared)
    assert hidden.code == 0 and hidden.out.startswith("\n\n[Generated ")
    for options in (["--show-reasoning"], ["--show-reasoning", "--no-stream"]):
        assert vedette(*shared, *options).out.startswith(document["reasoning"] + "\n\n[Generated ")
    raw = vedette(*shared, "-p", "The capital of France is", "--no-chat-template", "--json").json
    assert raw["reasoning"] is None and raw["text"]


def test_a_system_text_goes_where_the_template_takes_it(vedette, thinker):
    result = vedette("run", thinker, "--system", "Be brief.", "-n", "2", stdin="Hi\nHo\n")
    assert result.code == 0, result.err
    assert result.err.count("the system text was put before the first user turn") == 1
    folded = vedette("generate", "-m", thinker, "--system", "A", "-p", "B", "-n", "1", "--json").json["prompt_ids"]
    assert folded == vedette("generate", "-m", thinker, "-p", "A\n\nB", "-n", "1", "--json").json["prompt_ids"]


def test_a_base_model_is_noticed(vedette, gemma):
    result = vedette("run", gemma, "-p", "In 1969, the first people to walk on the Moon", "-n", "4")
    assert result.code == 0
    assert "likely a base model" in result.err
    result = vedette("run", gemma, "-p", "In 1969, the first people to walk on the Moon", "-n", "4", "--no-chat-template",
                     "--json")
    assert "base model" not in result.err
    assert result.json["prompt_ids"][:4] == [2, 902, 236743, 236770]


def test_bad_prompts(vedette, smollm2):
    cases = [
        (["-p", ""], "--prompt: expected text, found none"),
        (["-p", b"caf\xe9"], "--prompt: expected UTF-8, found the byte 0xe9 at offset 3"),
        (["-p", "x", "--system", b"\xff"], "--system: expected UTF-8"),
        (["-p", "x", "--stop", ""], "--stop: expected text, found none"),
        (["-f", "/nothing/here"], "--prompt-file: /nothing/here: No such file"),
    ]
    for arguments, expected in cases:
        result = vedette("generate", "-m", smollm2, *arguments)
        assert result.code == 1, arguments
        assert expected in result.error_line()


def test_options_that_do_not_go_together(vedette, smollm2):
    cases = [
        (["-p", "x", "-f", "y"], "exclude each other"),
        (["-p", "x", "-n", "0"], "--max-tokens: expected at least 1"),
        (["--json"], "--json needs one prompt"),
        (["-p", "x", "--cache-type-k", "f32"], "keys and values have one type"),
        (["-p", "x", "--memory-limit", "lots"], "--memory-limit (command line): expected bytes or a size"),
        (["-p", "x", "--system", "y", "--no-chat-template"], "--system needs the chat template"),
    ]
    for arguments, expected in cases:
        result = vedette("generate", "-m", smollm2, *arguments)
        assert result.code == 2, arguments
        assert expected in result.error_line()


def test_a_prompt_beyond_the_context(vedette, smollm2):
    (vedette.folder / "long.txt").write_text("All work and no play makes Jack a dull boy.\n" * 23832)
    result = vedette("generate", "-m", smollm2, "-f", "long.txt", "-q")
    assert result.code == 1
    line = result.error_line()
    assert "prompt is too long" in line and "8192 maximum" in line
    result = vedette("generate", "-m", smollm2, "-p", "word " * 100, "--ctx-size", "64", "-q")
    assert "prompt is too long" in result.error_line()


def test_prompt_from_standard_input(vedette, smollm2):
    result = vedette("generate", "-m", smollm2, "-f", "-", "-n", "8", "--json", stdin=FRANCE)
    assert result.code == 0
    assert result.json["prompt_ids"] == vedette("generate", "-m", smollm2, "-p", FRANCE, "-n", "1", "--json").json["prompt_ids"]


def test_memory_estimate(vedette, smollm2):
    shared = ["generate", "-m", smollm2, "-p", "Hi", "-n", "2", "--estimate-memory"]
    fits = vedette(*shared)
    assert fits.code == 0 and "memory: weights" in fits.err
    result = vedette(*shared, "--memory-limit", "1MB")
    assert result.code == 1
    assert "the model needs" in result.error_line()
    forced = vedette(*shared, "--memory-limit", "1MB", "--force")
    assert forced.code == 0 and "going on, as --force asks" in forced.err


def test_chat_lines_without_a_terminal(vedette, smollm2):
    lines = f"/help\n{FRANCE}\n/clear\n\"\"\"\nTwo\nlines\n\"\"\"\n/nonsense\n/bye\nnever read\n"
    result = vedette("run", smollm2, "-n", "8", stdin=lines)
    assert result.code == 0, result.err
    assert "/clear          a new conversation" in result.out
    assert "Paris" in result.out and "(new conversation)" in result.out
    assert "unknown command /nonsense" in result.out


def test_interrupt_cancels_and_prints_the_summary(smollm2, tmp_path):
    process = subprocess.Popen([BINARY, "generate", "-m", smollm2, "-p", "Count from one to one thousand.", "--ignore-eos"],
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                               env={"HOME": str(tmp_path), "PATH": os.environ["PATH"]})
    os.read(process.stdout.fileno(), 1)
    time.sleep(0.2)
    process.send_signal(signal.SIGINT)
    out, _ = process.communicate(timeout=30)
    assert process.returncode == 130
    assert b"[Generated " in out and b"cancelled]" in out


def test_a_closed_pipe_ends_the_reply(smollm2, tmp_path):
    process = subprocess.Popen([BINARY, "generate", "-m", smollm2, "-p", "Count from one to one thousand.", "--ignore-eos"],
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                               env={"HOME": str(tmp_path), "PATH": os.environ["PATH"]})
    os.read(process.stdout.fileno(), 1)
    process.stdout.close()
    assert process.wait(timeout=30) == 1
    assert b"standard output cannot be written" in process.stderr.read()


def test_a_second_interrupt_waits_for_nothing(smollm2, tmp_path):
    process = subprocess.Popen([BINARY, "generate", "-m", smollm2, "-p", "word " * 6000, "--prefill-chunk-size", "7000"],
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                               env={"HOME": str(tmp_path), "PATH": os.environ["PATH"]})
    process.stderr.readline()  # loaded
    time.sleep(0.5)
    process.send_signal(signal.SIGINT)
    time.sleep(0.2)
    process.send_signal(signal.SIGINT)
    out, _ = process.communicate(timeout=60)
    assert process.returncode == 130
    assert b"[Generated" not in out


def signal_is_pending(pid, number):
    with open(f"/proc/{pid}/status", encoding="ascii", errors="replace") as file:
        masks = [int(line.split()[1], 16) for line in file if line.startswith(("SigPnd:", "ShdPnd:"))]
    return any(mask >> (number - 1) & 1 for mask in masks)


@pytest.mark.parametrize("gap", [0.002, 0.01])
def test_two_interrupts_at_once_are_two(smollm2, tmp_path, gap):
    process = subprocess.Popen([BINARY, "generate", "-m", smollm2, "-p", "word " * 6000, "--prefill-chunk-size", "7000"],
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                               env={"HOME": str(tmp_path), "PATH": os.environ["PATH"]})
    process.stderr.readline()  # loaded
    time.sleep(0.5)
    process.send_signal(signal.SIGINT)
    time.sleep(gap)
    # A busy machine may not have let the process take the first one yet; two that are pending at once are one to it.
    while signal_is_pending(process.pid, signal.SIGINT):
        time.sleep(0.001)
    process.send_signal(signal.SIGINT)
    out, _ = process.communicate(timeout=60)
    assert process.returncode == 130
    assert b"[Generated" not in out  # which the end after one interrupt has


def test_without_standard_input(smollm2, tmp_path):
    done = subprocess.run(["sh", "-c", 'exec "$0" generate -m "$1" -n 5 -q <&-', BINARY, smollm2], capture_output=True,
                          env={"HOME": str(tmp_path), "PATH": os.environ["PATH"]}, timeout=60, check=False)
    assert done.returncode == 0 and done.stdout == b""


def test_a_block_ends_with_the_input(vedette, smollm2):
    result = vedette("run", smollm2, "-n", "8", stdin='"""\nWhat is the capital\nof France?\n')
    assert result.code == 0, result.err
    assert "Paris" in result.out


def test_standard_input_that_is_no_text(smollm2, tmp_path):
    for source, expected in ((tmp_path, b"standard input cannot be read"), ("/dev/zero", b"more than 16 MiB")):
        descriptor = os.open(source, os.O_RDONLY)
        done = subprocess.run([BINARY, "generate", "-m", smollm2, "-q"], stdin=descriptor, capture_output=True,
                              env={"HOME": str(tmp_path), "PATH": os.environ["PATH"]}, timeout=60, check=False)
        os.close(descriptor)
        assert done.returncode == 1
        assert expected in done.stderr and done.stderr.count(b"\n") == 1


def test_a_full_context_is_noticed_in_the_chat(vedette, smollm2):
    result = vedette("run", smollm2, "--ctx-size", "64", "--ignore-eos", "--temp", "0", stdin="Hi\n")
    assert result.code == 0, result.err
    assert "the context of 64 tokens is full" in result.err
