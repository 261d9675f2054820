#!/usr/bin/env python3
"""Makes kl_text.txt: the first chapters of Jane Austen's "Persuasion" (1818; public domain).

The text comes from the Debian package r-cran-janeaustenr 1.0.0-1 (the Project Gutenberg transcription, without
its licence header, as an R data file):

    apt-get download r-cran-janeaustenr && dpkg-deb -x r-cran-janeaustenr_*.deb unpacked
    python3 make_kl_text.py unpacked/usr/lib/R/site-library/janeaustenr/data/Rdata.rdb > kl_text.txt

An .rdb file is a run of records: four bytes of length (big endian, of the unpacked object), then a zlib stream that
holds a serialized R object. A string in it is a word of flags whose low byte is 9, a length and the bytes.
"""

import struct
import sys
import zlib

FIRST_LINE = "Persuasion"
LIMIT = 36_000  # characters; the text ends with the paragraph that crosses it


def records(data):
    """The unpacked objects of an .rdb file."""
    offset = 0
    while offset < len(data):
        size = struct.unpack_from(">I", data, offset)[0]
        stream = zlib.decompressobj()
        record = stream.decompress(data[offset + 4:])
        if len(record) != size:
            raise SystemExit(f"record at {offset}: {size} bytes expected, {len(record)} found")
        yield record
        offset = len(data) - len(stream.unused_data)


def strings(record):
    """The elements of a serialized character vector (XDR format, one vector)."""
    start = record.find(b"\x00\x00\x00\x10")  # STRSXP without attributes
    if start < 0:
        return []
    count = struct.unpack_from(">I", record, start + 4)[0]
    offset, lines = start + 8, []
    for _ in range(count):
        if offset + 8 > len(record) or record[offset + 3] != 9:
            return []
        size = struct.unpack_from(">i", record, offset + 4)[0]
        lines.append(record[offset + 8:offset + 8 + max(size, 0)].decode("utf-8"))
        offset += 8 + max(size, 0)
    return lines


def main():
    with open(sys.argv[1], "rb") as file:
        data = file.read()
    for record in records(data):
        lines = strings(record)
        if not lines or lines[0].strip() != FIRST_LINE:
            continue
        paragraphs = " ".join(line.strip() or "\n" for line in lines).split("\n")
        text = ""
        for paragraph in (p.strip() for p in paragraphs):
            if not paragraph:
                continue
            text += paragraph + "\n\n"
            if len(text) > LIMIT:
                break
        sys.stdout.write(text.rstrip("\n") + "\n")
        return
    raise SystemExit(f"{sys.argv[1]}: no character vector that begins with {FIRST_LINE!r}")


main()
