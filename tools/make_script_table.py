#!/usr/bin/env python3
"""Writes src/text/script_table.h: the script of every code point, as ranges, from the Unicode data of the `regex` module.

    pip install regex && python3 tools/make_script_table.py && clang-format-19 -i src/text/script_table.h

A letter that several scripts share counts to the first of those it is used with (SHARED); numbers, and punctuation and
symbols, are classes of their own whatever their script; spaces, marks of every script and what is unassigned are none.
"""

import os
import sys

import regex

SCRIPTS = """Latin Cyrillic Greek Armenian Georgian Hebrew Arabic Syriac Thaana Devanagari Bengali Gurmukhi Gujarati
Oriya Tamil Telugu Kannada Malayalam Sinhala Thai Lao Tibetan Myanmar Khmer Ethiopic Cherokee Mongolian Han Hiragana
Katakana Bopomofo Hangul""".split()
SHARED = ("Katakana", "Hiragana", "Han", "Hangul", "Bopomofo", "Devanagari", "Arabic", "Latin")
CLASSES = SCRIPTS + ["OtherScript", "Number", "Punctuation"]
OUT = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "src/text/script_table.h")


def matcher(form, names):
    return [(name, regex.compile(rf"\p{{{form}={name}}}")) for name in names]


SCRIPT = matcher("Script", SCRIPTS)
EXTENSION = matcher("Script_Extensions", SHARED)
COMMON = regex.compile(r"[\p{Script=Common}\p{Script=Inherited}]")
KINDS = {kind: regex.compile(rf"\p{{{kind}}}") for kind in "LMNPS"}


def class_of(code):
    """None: neutral; "": unassigned, so that a range may go over it."""
    character = chr(code)
    if KINDS["N"].match(character):
        return "Number"
    if KINDS["P"].match(character) or KINDS["S"].match(character):
        return "Punctuation"
    if not KINDS["L"].match(character) and not KINDS["M"].match(character):
        return "" if regex.match(r"\p{Cn}", character) else None
    if COMMON.match(character):
        found = [name for name, pattern in EXTENSION if pattern.match(character)]
        return found[0] if found and KINDS["L"].match(character) else None
    return next((name for name, pattern in SCRIPT if pattern.match(character)), "OtherScript")


def ranges():
    out = []
    for code in range(sys.maxunicode + 1):
        if 0xD800 <= code <= 0xDFFF:
            continue
        kind = class_of(code)
        if kind is None:
            if out and out[-1][1] >= 0:
                out.append([code, -1, None])  # no range goes over it
        elif kind and out and out[-1][2] == kind:
            out[-1][1] = code
        elif kind:
            out.append([code, code, kind])
    return [entry for entry in out if entry[2]]


def main():
    lines = ["// Written by tools/make_script_table.py. Scripts of "
             "code points: first, last, class; in order.",
             "#pragma once", "", "#include <cstdint>", "", "namespace vedette::text {", "",
             "enum class Script : uint8_t {"]
    lines += [f"  k{name}," for name in CLASSES] + ["};", "",
              "struct ScriptRange {", "  char32_t first, last;", "  Script script;", "};", "",
              "// clang-format off", "inline constexpr ScriptRange kScriptRanges[] = {"]
    line = "   "
    for first, last, kind in ranges():
        entry = f" {{0x{first:X}, 0x{last:X}, Script::k{kind}}},"
        if len(line) + len(entry) > 120:
            lines.append(line)
            line = "   "
        line += entry
    lines += [line, "};", "// clang-format on", "", "}  // namespace vedette::text", ""]
    with open(OUT, "w", encoding="utf-8") as file:
        file.write("\n".join(lines))


if __name__ == "__main__":
    main()
