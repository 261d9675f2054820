"""llama.cpp's tools, as the comparisons here use them, and facts about this machine.

bench/get_llamacpp builds them.
"""

import json
import os
import re
import subprocess

FLAGS = ("avx2", "avx512f", "avx512_vnni", "avx_vnni", "avx512_bf16", "avx512_fp16", "amx_tile", "amx_int8")


def cpu():
    """(model name, the flags that matter to the kernels)."""
    name, flags = "unknown", []
    with open("/proc/cpuinfo", encoding="utf-8") as file:
        for line in file:
            if line.startswith("model name"):
                name = line.split(":", 1)[1].strip()
            if line.startswith("flags"):
                flags = line.split(":", 1)[1].split()
                break
    return name, [flag for flag in FLAGS if flag in flags]


def machine_kind(flags, isa):
    """(avx2, vnni or amx: whose bars hold, the name of our kernels there) with --isa ('': the best)."""
    wide = isa not in ("avx2", "portable") and "avx512f" in flags
    if wide and "amx_int8" in flags and isa != "avx512":
        return "amx", "amx"
    if wide:
        return ("vnni", "avx512+vnni") if "avx512_vnni" in flags else ("avx2", "avx512")
    return "avx2", isa or "avx2"


def physical_cores():
    """Distinct cores among the processors this process may use."""
    lines = subprocess.run(["lscpu", "-p=cpu,core,socket"], capture_output=True, text=True, check=True).stdout
    rows = [line.split(",") for line in lines.splitlines() if not line.startswith("#")]
    allowed = os.sched_getaffinity(0)
    return len({(core, socket) for number, core, socket in rows if int(number) in allowed})


def buffers(llama_bench, model):
    """Names and sizes of the buffers that llama.cpp puts a model's weights into, e.g. 'CPU 30.20 MiB'."""
    # One thread: by default it starts one for each processor of the machine, also where it may use only a few.
    run = subprocess.run([llama_bench, "-m", model, "-t", "1", "-p", "1", "-n", "0", "-r", "1", "-v"],
                         capture_output=True, text=True, check=True)
    found = re.findall(r"(\S+) model buffer size\s*=\s*([\d.]+ \w+)", run.stderr)
    return [f"{name} {size}" for name, size in found]


def amx_state(flags, buffer_list):
    """'none' (this machine has no AMX), 'on', or 'OFF' (the machine has it and llama.cpp did not use it)."""
    if "amx_int8" not in flags:
        return "none"
    return "on" if any("AMX" in buffer for buffer in buffer_list) else "OFF"


def bench(llama_bench, model, threads, prefill, decode):
    """tok/s of one repetition of one test (either prefill or decode is 0)."""
    run = subprocess.run([llama_bench, "-m", model, "-t", str(threads), "-p", str(prefill), "-n", str(decode), "-r",
                          "1", "-o", "json"], capture_output=True, text=True, check=True)
    (result,) = json.loads(run.stdout)
    return result["samples_ts"][0]


def batched(batched_bench, model, threads, prompt, decode, sequences):
    """(tok/s of the prompts, tok/s of decoding all `sequences` together after them)."""
    context = sequences * (prompt + decode + 256)
    run = subprocess.run([batched_bench, "-m", model, "-t", str(threads), "-c", str(context), "-npp", str(prompt),
                          "-ntg", str(decode), "-npl", str(sequences), "--output-format", "jsonl"],
                         capture_output=True, text=True, check=True)
    (result,) = [json.loads(line) for line in run.stdout.splitlines() if line.startswith("{")]
    return result["speed_pp"], result["speed_tg"]
