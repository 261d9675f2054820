#!/usr/bin/env python3
"""Makes strings.bin: 2,000 byte strings that try tokenizers (fixed seed, no input but Unicode itself).

    python3 make_strings.py

Format: for each string its length as an unsigned LEB128 number, then its bytes. The list is made of whole categories,
so a change of one does not move the others: each category has a seed of its own.
"""

import os
import random
import unicodedata

HERE = os.path.dirname(os.path.abspath(__file__))

SENTENCES = [
    "The quick brown fox jumps over the lazy dog.", "Portez ce vieux whisky au juge blond qui fume.",
    "Zwölf Boxkämpfer jagen Viktor quer über den großen Sylter Deich.", "El pingüino Wenceslao hizo kilómetros bajo exhaustiva lluvia.",
    "Příliš žluťoučký kůň úpěl ďábelské ódy.", "Pchnąć w tę łódź jeża lub ośm skrzyń fig.",
    "Съешь ещё этих мягких французских булок, да выпей чаю.", "Ξεσκεπάζω την ψυχοφθόρα βδελυγμία.",
    "דג סקרן שט בים מאוכזב ולפתע מצא חברה.", "نص حكيم له سر قاطع وذو شأن عظيم.", "ऋषियों को सताने वाले दुष्ट राक्षसों के राजा।",
    "আমার সোনার বাংলা, আমি তোমায় ভালোবাসি।", "யாமறிந்த மொழிகளிலே தமிழ்மொழி போல் இனிதாவது எங்கும் காணோம்.",
    "เป็นมนุษย์สุดประเสริฐเลิศคุณค่า", "다람쥐 헌 쳇바퀴에 타고파.", "いろはにほへと ちりぬるを わかよたれそ つねならむ", "色は匂へど散りぬるを我が世誰ぞ常ならむ",
    "視野無限廣，窗外有藍天。", "天地玄黄，宇宙洪荒。日月盈昃，辰宿列张。", "Sự học như bơi thuyền ngược nước, không tiến ắt phải lùi.",
    "ქართული ენა მდიდარია.", "Բարեւ աշխարհ, ինչպե՞ս ես։", "ሰላም ለዓለም ይሁን።", "သီဟိုဠ်မှ ဉာဏ်ကြီးရှင်သည်", "ភាសាខ្មែរ ជាភាសាផ្លូវការ។",
    "བོད་སྐད་ནི་སྐད་ཡིག་རྙིང་པ་ཞིག་ཡིན།", "ගැටළු විසඳීම අපගේ කාර්යයයි.", "Pijamalı hasta yağız şoföre çabucak güvendi.", "İstanbul'da IĞDIR'dan ılık rüzgâr",
]

RANGES = {
    "latin": (0x61, 0x7A), "latin1": (0xC0, 0xFF), "latin_ext": (0x100, 0x24F), "ipa": (0x250, 0x2AF), "greek": (0x370, 0x3FF),
    "cyrillic": (0x400, 0x4FF), "armenian": (0x531, 0x587), "hebrew": (0x5D0, 0x5EA), "arabic": (0x620, 0x6D3),
    "syriac": (0x710, 0x74A), "thaana": (0x780, 0x7B1), "nko": (0x7C0, 0x7FA), "devanagari": (0x900, 0x97F), "bengali": (0x980, 0x9FE),
    "gurmukhi": (0xA01, 0xA76), "gujarati": (0xA81, 0xAFF), "tamil": (0xB82, 0xBFA), "telugu": (0xC00, 0xC7F), "kannada": (0xC80, 0xCF2),
    "malayalam": (0xD00, 0xD7F), "sinhala": (0xD81, 0xDF4), "thai": (0xE01, 0xE5B), "lao": (0xE81, 0xEDF), "tibetan": (0xF00, 0xFDA),
    "myanmar": (0x1000, 0x109F), "georgian": (0x10A0, 0x10FF), "jamo": (0x1100, 0x11FF), "ethiopic": (0x1200, 0x137C),
    "cherokee": (0x13A0, 0x13FD), "canadian": (0x1400, 0x167F), "ogham": (0x1680, 0x169C), "runic": (0x16A0, 0x16F8),
    "khmer": (0x1780, 0x17F9), "mongolian": (0x1800, 0x18AA), "vedic": (0x1CD0, 0x1CFA), "phonetic": (0x1D00, 0x1DBF),
    "greek_ext": (0x1F00, 0x1FFE), "superscripts": (0x2070, 0x209C), "letterlike": (0x2100, 0x214F), "number_forms": (0x2150, 0x218B),
    "arrows": (0x2190, 0x21FF), "math": (0x2200, 0x22FF), "boxes": (0x2500, 0x257F), "dingbats": (0x2700, 0x27BF), "braille": (0x2800, 0x28FF),
    "glagolitic": (0x2C00, 0x2C5F), "coptic": (0x2C80, 0x2CFF), "cjk_punct": (0x3000, 0x303F), "hiragana": (0x3041, 0x309F),
    "katakana": (0x30A0, 0x30FF), "bopomofo": (0x3105, 0x312F), "han": (0x4E00, 0x9FFF), "han_a": (0x3400, 0x4DBF), "yi": (0xA000, 0xA48C),
    "hangul": (0xAC00, 0xD7A3), "presentation": (0xFB00, 0xFDFF), "fullwidth": (0xFF01, 0xFFEE), "gothic": (0x10330, 0x1034A),
    "linear_b": (0x10000, 0x1005D), "cuneiform": (0x12000, 0x12399), "hieroglyphs": (0x13000, 0x1342E), "han_b": (0x20000, 0x2A6DF),
    "math_alnum": (0x1D400, 0x1D7FF), "mahjong": (0x1F000, 0x1F0F5), "emoji": (0x1F300, 0x1F64F), "symbols": (0x1F680, 0x1FAFF),
    "tags": (0xE0020, 0xE007F), "private": (0xE000, 0xF8FF),
}

EMOJI = ["😀", "👍🏽", "👩‍👩‍👧‍👦", "🏳️‍🌈", "🇨🇿", "🇯🇵🇺🇸", "1️⃣", "#️⃣", "❤️", "❤", "👨🏿‍🚀", "🧑‍🤝‍🧑", "☠︎", "🏴󠁧󠁢󠁳󠁣󠁴󠁿", "🫠", "🥲", "✈️", "©️", "‼️", "🤷🏻‍♀️"]

SPACES = [" ", "  ", "   ", "\t", "\t\t", "\n", "\n\n", "\r\n", "\r", "\x0b", "\x0c", "\u0085", "\u00a0", "\u1680", "\u2003", "\u2009",
          "\u200b", "\u2028", "\u2029", "\u202f", "\u205f", "\u3000", "\ufeff", "    ", "        ", "\n    ", "\n\t", " \n", "\t ", " \t"]

SPECIAL = ["<|endoftext|>", "<|im_start|>", "<|im_end|>", "<repo_name>", "<file_sep>", "<empty_output>", "<bos>", "<eos>", "<pad>", "<unk>",
           "<mask>", "<start_of_turn>", "<end_of_turn>", "<unused0>", "<unused12>", "<unused98>", "[multimodal]", "<table>", "</td>", "<h1>",
           "<0x0A>", "<0xFF>", "<s>", "</s>", "<|im_start|", "|im_end|>", "<|im_start|>user\n", "<start_of_turn>model\n", "▁", "▁▁", "Ġ", "Ċ",
           "<unused", "<|im_|>", "[INST]", "<strong>", "</code>"]

CODE = [
    "def f(x: int) -> str:\n    return f\"{x!r:>10}\"\n", "for (int i = 0; i < n; ++i) {\n\t\ta[i] += b[i] * c;\n}\n",
    "<div class=\"x\">\n  <p>Hi &amp; bye</p>\n</div>\n", "{\"a\": [1, 2.5e-3, null], \"b\": {\"c\": \"\\u00e9\"}}",
    "SELECT * FROM t WHERE a >= 10 AND b LIKE '%x%';", "x = [i**2 for i in range(10) if i % 2 == 0]", "#include <stdio.h>\nint main(void){puts(\"hi\");}",
    "fn main() {\n    let v: Vec<u8> = vec![0; 16];\n    println!(\"{:?}\", v);\n}", "git commit -m 'fix: a, b' && git push --force-with-lease",
    "https://example.org/a/b?c=d&e=%20f#g", "user.name+tag@mail.example.com", "if a==b:\n\tpass\nelse:\n        raise ValueError('x')", "$x->{y}[0] =~ s/a+/b/g;",
    "\\documentclass{article}\n\\begin{equation}\n  E = mc^2\n\\end{equation}", "a&&b||!c^d|e&f<<2>>1", "CamelCaseAndsnake_case_AND_UPPER kebab-case", "0x1F 0b1010 1_000_000 1e-9 3.14159f",
]

CONTRACTIONS = ["I'm", "you're", "he'd", "we'll", "they've", "it's", "don't", "I'M", "YOU'RE", "HE'D", "WE'LL", "THEY'VE", "IT'S", "DON'T", "O'Neil", "rock'n'roll",
                "'s", "'S", "'t", "''ll", "it’s", "‘quoted’", "“double”", "l'été", "'ſ", "'ve'", "y'all'd've"]

DIGITS = ["0", "7", "42", "123", "1234", "12345", "1234567890", "1,234,567.89", "-1", "3.14", "1e10", "٠١٢٣٤٥٦٧٨٩", "०१२३", "１２３", "½", "²³", "Ⅷ", "ⅻ", "①②", "〇", "𝟘𝟙𝟚", "1st", "2nd",
          "10:30", "2024-02-29", "1/2", "50%", "$5.00", "€1.000,00", "+1 (555) 010-9999", "0xdeadbeef", "192.168.0.1", "1234abc", "abc1234", "൧൨൩", "১২৩৪", "৴", "፩፪"]

INVALID = [b"\x80", b"\xff", b"\xc0\xaf", b"\xe2\x82", b"\xf0\x9f\x98", b"\xed\xa0\x80", b"\xf4\x90\x80\x80", b"\xf8\x88\x80\x80\x80", b"\xc3", b"\xe1\x80\xe2", b"\xf1\x80\x80\xc3",
           b"\xfe\xfe\xff\xff", b"\xbf\xbf", b"\xc2\x41", b"\xe0\x80\x80", b"\xf0\x80\x80\x80"]


def assigned(rng, low, high):
    while True:
        c = chr(rng.randint(low, high))
        if unicodedata.category(c) not in ("Cn", "Cs"):
            return c


def word(rng, name, low=1, high=9):
    return "".join(assigned(rng, *RANGES[name]) for _ in range(rng.randint(low, high)))


def glue(rng, parts, spaces=(" ",)):
    out = ""
    for part in parts:
        out += part + rng.choice(spaces)
    return out if rng.random() < 0.3 else out.strip(" ")


def any_text(rng):
    kind = rng.randrange(8)
    if kind == 0:
        return rng.choice(SENTENCES)
    if kind == 1:
        return word(rng, rng.choice(list(RANGES)))
    if kind == 2:
        return rng.choice(EMOJI)
    if kind == 3:
        return rng.choice(CODE)
    if kind == 4:
        return rng.choice(CONTRACTIONS)
    if kind == 5:
        return rng.choice(DIGITS)
    if kind == 6:
        return rng.choice(SPECIAL)
    return "".join(rng.choice(SPACES) for _ in range(rng.randint(1, 6)))


def category(name, count, make):
    rng = random.Random("tokenizer strings: " + name)
    out = []
    for index in range(count):
        text = make(rng, index)
        out.append(text if isinstance(text, bytes) else text.encode("utf-8", "surrogatepass"))
    return out


def scripts(rng, index):
    name = list(RANGES)[index % len(RANGES)]
    return glue(rng, [word(rng, name) for _ in range(rng.randint(1, 6))], (" ", "", ", ", ". "))


def sentences(rng, index):
    text = SENTENCES[index % len(SENTENCES)]
    kind = rng.randrange(6)
    if kind == 0:
        return text.upper()
    if kind == 1:
        return text.replace(" ", rng.choice(SPACES))
    if kind == 2:
        return unicodedata.normalize("NFD", text)
    if kind == 3:
        return " " + text + " " + rng.choice(SENTENCES)
    if kind == 4:
        return "".join(rng.choice((c.upper(), c.lower())) for c in text)
    return text


def emoji(rng, index):
    return "".join(rng.choice(EMOJI) + rng.choice(("", "", " ", "\u200d", "\ufe0f", "a")) for _ in range(rng.randint(1, 6)))


def combining(rng, index):
    return "".join(assigned(rng, 0x61, 0x7A) + "".join(chr(rng.randint(0x300, 0x36F)) for _ in range(rng.randint(0, 4))) for _ in range(rng.randint(1, 10)))


def code(rng, index):
    text = rng.choice(CODE)
    return "\n".join(" " * rng.choice((0, 1, 2, 3, 4, 8, 16, 31, 32, 40)) + line for line in text.split("\n")) if index % 2 else text + rng.choice(CODE)


def spaces(rng, index):
    if index % 4 == 0:
        return rng.choice((" ", "\n", "\t", "\r\n", "\u00a0", "\u3000")) * rng.randint(1, 70)
    return "".join(rng.choice(SPACES) + rng.choice(("", "", "a", "1", ".", "é", "中")) for _ in range(rng.randint(1, 10)))


def digits(rng, index):
    if index % 3 == 0:
        return "".join(rng.choice("0123456789") for _ in range(rng.randint(1, 40)))
    return glue(rng, [rng.choice(DIGITS) for _ in range(rng.randint(1, 5))], (" ", "", ",", "-"))


def special(rng, index):
    return "".join(rng.choice(SPECIAL) + rng.choice(("", " ", "\n", "text", " text ", "é")) for _ in range(rng.randint(1, 6)))


def contractions(rng, index):
    return glue(rng, [rng.choice(CONTRACTIONS) for _ in range(rng.randint(1, 6))], (" ", "", ", "))


def invalid(rng, index):
    if index % 3 == 0:
        return bytes(rng.randrange(256) for _ in range(rng.randint(1, 24)))
    return b"".join(rng.choice((any_text(rng).encode("utf-8"), rng.choice(INVALID))) for _ in range(rng.randint(1, 6)))


def code_points(rng, index):
    out = ""
    while len(out) < 1 + index % 12:
        c = rng.randrange(0x110000)
        if not 0xD800 <= c < 0xE000:
            out += chr(c)
    return out


def ascii_text(rng, index):
    return "".join(chr(rng.randrange(128)) for _ in range(rng.randint(1, 30)))


def mixed(rng, index):
    return "".join(any_text(rng) for _ in range(rng.randint(2, 7)))


def repeated(rng, index):
    return rng.choice(("a", "ab", "é", "中", "😀", "-", "=", "\"", "haha", "0", "▁", ".", "!?", "the ", "<", "\u0301", "ß")) * rng.randint(2, 90)


def main():
    strings = [b""] + [bytes([b]) for b in range(256)]
    strings += category("scripts", 280, scripts)
    strings += category("sentences", 170, sentences)
    strings += category("emoji", 110, emoji)
    strings += category("combining", 60, combining)
    strings += category("code", 120, code)
    strings += category("spaces", 180, spaces)
    strings += category("digits", 110, digits)
    strings += category("special", 150, special)
    strings += category("contractions", 80, contractions)
    strings += category("invalid", 140, invalid)
    strings += category("code points", 90, code_points)
    strings += category("ascii", 100, ascii_text)
    strings += category("mixed", 90, mixed)
    strings += category("repeated", 63, repeated)
    assert len(strings) == 2000, len(strings)
    with open(os.path.join(HERE, "strings.bin"), "wb") as file:
        for text in strings:
            file.write(leb128(len(text)) + text)


def leb128(value):
    out = bytearray()
    while True:
        byte = value & 0x7F
        value >>= 7
        out.append(byte | (0x80 if value else 0))
        if not value:
            return bytes(out)


if __name__ == "__main__":
    main()
