#!/usr/bin/env python3
"""Checks the shape of the source tree; exit status 1 and one line per finding if it is not as docs/architecture.md says.

    python3 tools/check_layers.py [ROOT]

- #include points to the own layer or one below it; ops/ knows base/ alone
- a source file has at most 800 lines, a kernel file (ops/cpu, ops/cuda) 1,200
- a heavy header is included by at most five .cpp files and no header
- the Decoder names no model family, and no family file sees the Decoder
"""

import os
import re
import sys

# What each layer may include besides itself.
LAYERS = {
    "base": set(),
    "ops": {"base"},
    "weights": {"base", "ops"},
    "hub": {"base", "weights"},
    "media": {"base"},
    "models": {"base", "ops", "weights"},
    "sampling": {"base"},
    "text": {"base", "weights", "sampling"},
    "cache": {"base", "ops", "models"},
    "draft": {"base", "ops", "weights", "models", "sampling", "text", "cache"},
    "engine": {"base", "ops", "weights", "hub", "models", "sampling", "text", "cache", "draft", "media"},
    "server": {"base", "ops", "weights", "hub", "models", "sampling", "text", "cache", "draft", "media", "engine"},
    "cli": {"base", "ops", "weights", "hub", "models", "sampling", "text", "cache", "draft", "media", "engine",
            "server"},
}
# types.h describes stored matrices, which weights/ hands to ops/; text/ reads the checkpoint's tokenizer the same way.
HEAVY = {
    "JSON": re.compile(r"^nlohmann/"),
    "CLI11": re.compile(r"^CLI/"),
    "Beast": re.compile(r"^boost/(beast|asio)"),
    "spdlog": re.compile(r"^spdlog/"),
}
MOST_HEAVY_FILES = 5
MOST_LINES = 800
MOST_KERNEL_LINES = 1200
INCLUDE = re.compile(r'^\s*#\s*include\s+[<"]([^">]+)[">]', re.MULTILINE)
SOURCE_SUFFIXES = (".h", ".cpp", ".cu", ".cuh", ".c", ".rs", ".py")


def files_below(root, folders):
    for folder in folders:
        for path, names, files in os.walk(os.path.join(root, folder)):
            names[:] = [name for name in names if name not in ("target", "build", "__pycache__", ".venv")]
            for name in sorted(files):
                if name.endswith(SOURCE_SUFFIXES):
                    yield os.path.relpath(os.path.join(path, name), root)


def read(root, path):
    with open(os.path.join(root, path), encoding="utf-8") as file:
        return file.read()


def check_includes(path, text, findings):
    """Layer rules of one file below src/."""
    layer = path.split(os.sep)[1]
    if layer not in LAYERS:
        findings.append(f"{path}: folder '{layer}' is no layer of the table in tools/check_layers.py")
        return
    for header in INCLUDE.findall(text):
        target = header.split("/")[0]
        if target in LAYERS and target != layer and target not in LAYERS[layer]:
            findings.append(f"{path}: layer {layer} includes {header}, which lies above it")


def check_length(path, text, findings):
    lines = text.count("\n")
    kernel = path.startswith((os.path.join("src", "ops", "cpu"), os.path.join("src", "ops", "cuda")))
    limit = MOST_KERNEL_LINES if kernel else MOST_LINES
    if lines > limit:
        findings.append(f"{path}: {lines} lines, the limit is {limit}")


def check_heavy(texts, findings):
    for name, pattern in HEAVY.items():
        users = [path for path, text in texts.items() if any(pattern.match(header) for header in INCLUDE.findall(text))]
        findings.extend(f"{path}: a header includes {name}; keep it inside a .cpp" for path in users if path.endswith(".h"))
        if len(users) > MOST_HEAVY_FILES:
            findings.append(f"{name}: included by {len(users)} files ({', '.join(users)}), the limit is {MOST_HEAVY_FILES}")


def family_names(texts):
    """Ids, model types and GGUF architectures of the registry's entries."""
    families = [path for path in texts if path.startswith(os.path.join("src", "models", "families", ""))
                and path.endswith(".cpp")]
    return {os.path.splitext(os.path.basename(path))[0] for path in families}, families


def check_families(texts, findings):
    names, families = family_names(texts)
    if not names:
        findings.append("src/models/families: no family file found")
    for path in families:
        for header in INCLUDE.findall(texts[path]):
            if header.endswith("models/decoder.h"):
                findings.append(f"{path}: a family is data; it must not include {header}")
    for path, text in texts.items():
        if not re.match(r"src/models/decoder[^/]*\.(cpp|h)$", path) or path.endswith("_test.cpp"):
            continue
        for literal in re.findall(r'"([^"\n]*)"', text):
            if literal.lower() in names:
                findings.append(f"{path}: the Decoder names the family '{literal}'")
        if re.search(r"\bfamily\s*(==|!=)|\.family\s*(==|!=)|(==|!=)\s*\w*\.?family\b", text):
            findings.append(f"{path}: the Decoder compares a family")


def main():
    root = sys.argv[1] if len(sys.argv) > 1 else os.path.join(os.path.dirname(os.path.abspath(__file__)), "..")
    findings = []
    texts = {path: read(root, path) for path in files_below(root, ["src"])}
    for path, text in texts.items():
        check_includes(path, text, findings)
    for path in files_below(root, ["src", "rust", "tests", "bench", "tools"]):
        check_length(path, texts.get(path) or read(root, path), findings)
    check_heavy(texts, findings)
    check_families(texts, findings)
    for finding in findings:
        print(finding)
    print(f"check_layers: {len(texts)} source files, {len(findings)} findings")
    sys.exit(1 if findings else 0)


main()
