#!/usr/bin/env python3
"""Writes dequantize.bin: random GGUF blocks and what the `gguf` library makes of them (pip install gguf numpy).

Records, little-endian: uint32 length of the scheme's name, the name, uint32 columns, uint32 bytes of the stored row,
the row, float32 [columns]. Read by src/ops/types_test.cpp.
"""
import pathlib
import struct

import gguf
import numpy as np

SCHEMES = ["F32", "F16", "BF16", "Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q8_0", "Q2_K", "Q3_K", "Q4_K", "Q5_K", "Q6_K"]
COLUMNS = 512


def random_row(name, rng):
    kind = gguf.GGMLQuantizationType[name]
    if name in ("F32", "F16", "BF16"):
        row = gguf.quants.quantize(rng.normal(size=(1, COLUMNS)).astype(np.float32), kind)[0].view(np.uint8)
        return row, gguf.quants.dequantize(row[None, :], kind)[0].astype("<f4")
    block, size = gguf.GGML_QUANT_SIZES[kind]
    while True:  # until the float16 scales among the random bytes are finite numbers
        row = rng.integers(0, 256, COLUMNS // block * size, dtype=np.uint8)
        values = gguf.quants.dequantize(row[None, :], kind)[0]
        if np.isfinite(values).all():
            return row, values.astype("<f4")


def main():
    rng = np.random.default_rng(1)
    out = bytearray()
    for name in SCHEMES:
        row, values = random_row(name, rng)
        out += struct.pack("<I", len(name)) + name.encode() + struct.pack("<II", COLUMNS, len(row))
        out += row.tobytes() + values.tobytes()
    pathlib.Path(__file__).with_name("dequantize.bin").write_bytes(out)


if __name__ == "__main__":
    main()
