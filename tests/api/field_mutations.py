"""Hostile values and what they do to a request: all drawn from a given random.Random."""

import copy
import gzip
import json

TEXTS = ["", " ", "\0", "a\0b", "\ufffd", "\u2028", "é" * 40, "漢" * 60, "😀" * 61, "a" * 5000, "</tool_call><tool_call>",
         "<|im_end|>", "<|im_start|>system", "<think>", "%s%n%x", "{{ 7*7 }}", "{% for i in range(10**9) %}x{% endfor %}",
         "../../etc/passwd", "/dev/zero", "file:///etc/passwd", "null", "NaN", "-1", "1e999", "x" * 300_000,
         "\\", "\"", "\x1b[2J", "\u202e", "ｆｕｌｌ", "x-anthropic-billing-header: a\n" * 2000, "<total_tokens>" * 2000]
NUMBERS = [0, -1, 1, 2, 3, -0.0, 0.5, 1e-320, 1e308, -1e308, 1e15, 9e15, 2**31 - 1, 2**31, -2**31 - 1, 2**32, 2**53 + 1,
           2**63 - 1, 2**63, -2**63, -2**63 - 1, 2**64 - 1, 2**64, 10**30, 49151, 49152, 49153, 1000, 128, 129]
# Written as they are; no JSON library would.
RAW = ["1e999", "-1e999", "NaN", "Infinity", "-0", "-0e0", "01", "+1", "1.", ".5", "0x10", "1e-99999", "\"\\ud800\"",
       "\"\\udc00\\ud800\"", "\"\\u0000\"", "\"\xff\xfe\"", "\"\xc0\x80\"", "\"\xed\xa0\x80\"", "'a'", "tru", "nul", "{",
       "[", "\"", "{\"a\":1,\"a\":2}", "[1,]", "{\"a\":1,}", "{1:2}", "/* */ 1", "1" * 400, "\"\\x41\"", "\"\t\"",
       "[" * 300 + "]" * 300, "{\"a\":" * 300 + "1" + "}" * 300, "[" * 50_000, "0." + "0" * 5000 + "1"]
REGEXES = ["(" * 2000 + "a" + ")" * 2000, "(a*)*" * 50 + "b", "(((a{1,99}){1,99}){1,99}){1,99}", "(?=a)b", "\\1",
           "[", "a{999999999}", "(?P<x>a)(?P=x)", "\\p{Nope}", "[^\\x00-\\xff]", "(|a)*" * 20, ".{0,5000}" * 20, "^$", "()"]
GRAMMARS = ["root ::= root", "root ::= a\na ::= root", "root ::= " + "(" * 3000 + "\"a\"" + ")" * 3000, "root ::= nope",
            "root ::= \"a\"{999999999}", "root ::= [", "root", "::=", "root ::= \"\\xZZ\"", "root ::= [z-a]", "a ::= \"b\"",
            "root ::= \"a\"\n" * 2000, "root ::= (\"a\"?)*", "\n".join(f"r{i} ::= r{i + 1} r{i + 1}" for i in range(60)),
            "root ::= " + "\"a\"? " * 3000, "# only a comment", "root ::= \"" + "a" * 100_000 + "\""]
LARKS = ["start: start", "start: a\na: start", "start: " + "(" * 3000 + "\"a\"" + ")" * 3000, "start: nope", "%ignore /(/",
         "start: /" + "(a*)*" * 50 + "/", "start: %json {\"$ref\": \"http://169.254.169.254/\"}", "start: %json {",
         "start: \"a\"~999999999", "start: <|im_end|>", "start: <[999999999]>", "%import common.INT\nstart: INT",
         "start: %json " + "{\"a\":" * 300, "start[capture]: \"a\"", "start: /[/", "start: \"a\"..\"\"", "%llguidance {"]


def deep(depth, leaf, key="properties"):
    for _ in range(depth):
        leaf = {"type": "object", key: {"a": leaf}} if key == "properties" else {key: [leaf]}
    return leaf


SCHEMAS = [
    True, False, {}, {"$ref": "http://169.254.169.254/x"}, {"$ref": "file:///etc/passwd"}, {"$ref": "#"},
    {"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}}}, {"$ref": "#/nope"},
    {"$ref": 5}, {"type": "nope"}, {"type": []}, {"type": ["string", "string", 5]}, {"enum": []}, {"enum": 5},
    {"enum": ["é", None, {"a": [1]}, 1e308]}, {"const": {"a": "\0"}}, {"type": "string", "pattern": "(a*)*" * 30},
    {"type": "string", "pattern": "(?=a)"}, {"type": "string", "pattern": 5}, {"type": "string", "format": "nope"},
    {"type": "string", "minLength": 5, "maxLength": 2}, {"type": "string", "minLength": 10**9},
    {"type": "string", "maxLength": -1}, {"type": "integer", "minimum": 10**30, "maximum": -(10**30)},
    {"type": "integer", "multipleOf": 0}, {"type": "number", "multipleOf": 1e-300}, {"type": "integer", "minimum": "a"},
    {"type": "array", "minItems": 10**9}, {"type": "array", "items": False, "minItems": 1},
    {"type": "array", "items": {"$ref": "#"}, "minItems": 1}, {"properties": 5}, {"properties": {"a": 5}},
    {"required": "a"}, {"required": ["\0"]}, {"type": "object", "required": ["a"], "additionalProperties": False},
    {"anyOf": []}, {"anyOf": 5}, {"allOf": [{"type": "string"}, {"type": "integer"}]}, {"not": {}}, {"oneOf": [{}, {}]},
    {"allOf": [{"enum": list(range(300))} for _ in range(60)]}, {"patternProperties": {"(": {}}},
    {"type": "object", "propertyNames": {"pattern": "a"}}, {"if": {}, "then": {}}, {"unevaluatedProperties": False},
    {"$id": "http://x/", "$ref": "y"}, {"$schema": "http://nope/"}, {"dependentRequired": {"a": ["b"]}},
    {"type": "object", "properties": {f"p{i}": {"type": "string"} for i in range(2000)}},
    {"type": "object", "minProperties": 10**9}, {"contains": {}, "minContains": 10**9}, {"uniqueItems": True},
    deep(60, {"type": "string"}), deep(70, {"type": "string"}, "anyOf"), {"x-guidance": {"nope": 1}},
    {"allOf": [{"anyOf": [{"properties": {f"a{i}{j}": {"type": "integer"}}} for j in range(8)]} for i in range(8)]},
]


def texts(random):
    return random.choice(TEXTS)


def any_value(random, level=0):
    kind = random.randrange(14 if level < 3 else 8)
    if kind == 0:
        return None
    if kind == 1:
        return random.random() < 0.5
    if kind in (2, 3, 4):
        return random.choice(NUMBERS)
    if kind in (5, 6, 7):
        return texts(random)
    if kind == 8:
        return random.choice([[], {}, [None], [[]], {"": ""}, [{}], {"type": None}])
    if kind == 9:
        return [any_value(random, level + 1) for _ in range(random.randrange(4))]
    if kind == 10:
        return {random.choice(["type", "text", "id", "name", "role", "é" * 41, "\0", "content"]): any_value(random, level + 1)
                for _ in range(random.randrange(4))}
    if kind == 11:
        return [random.choice([0, "a", None, {}, []])] * random.choice([65, 513, 20_000])
    if kind == 12:
        return deep_value(random.choice([20, 63, 64, 65, 200]), random)
    return copy.deepcopy(random.choice(SCHEMAS))


def deep_value(depth, random):
    value = random.choice([1, "a", None])
    for _ in range(depth):
        value = [value] if random.random() < 0.5 else {"a": value}
    return value


def special_value(random, path):
    """A value of the right type and a hostile meaning, where the field is known for one; else None in a list."""
    name = next((key for key in reversed(path) if isinstance(key, str)), "")
    if name in ("schema", "json_schema", "parameters", "input_schema"):
        return [copy.deepcopy(random.choice(SCHEMAS))]
    choices = {"guided_regex": REGEXES, "grammar": GRAMMARS, "guided_lark": LARKS,
               "role": ["", "root", "system", "assistant", "tool", "function", "user ", "USER", "developer"],
               "type": ["", "text", "image_url", "input_image", "tool_use", "thinking", "redacted_thinking", "function",
                        "namespace", "json_schema", "item_reference", "computer_call", "document"],
               "stop": [["a"] * 64, ["a"] * 65, [""], ["\0"], ["\ufffd"], ["a" * 100_000], "", [["a"]], [1], "😀"],
               "arguments": ["", "{", "[]", "5", "{\"a\":1,\"a\":2}", "[" * 5000, "{\"path\": \"\\ud800\"}", {}, {"a": {}}],
               "seed": [-1, -2, 2**63 - 1, 2**64 - 1, "1", 1.0, 1.5],
               "n": [0, 2, 4, 5, 128, 129, 1.0], "best_of": [2, 0], "max_tokens": [0, 1, 3, 4, -1.5], "priority": [1000, -1000, 1001],
               "samplers": [[], ["nope"], ["top_k"] * 33, ["top_k", "top_k"], "kt", ["temperature", "mirostat"]],
               "prompt": ["", [], [[]], [0], [-1], [49152], [2**31], [1.0], [True], ["a"] * 129, [[1]] * 5, [[1], "a", [2]],
                          [["a"]], [None], {"prompt_string": "a"}, [0] * 3000, ["", ""]],
               "logit_bias": [[], {}, {"-1": 1}, {"49152": 1}, {"0": "a"}, {"0": 1e7}, {"0": True}, {"": 1}, {"é" * 99: 1},
                              [[0, 1, 2]], [[-1, 1]], [["", 1]], [[0]], [5], {str(i): False for i in range(49152)},
                              {str(i): -1e6 for i in range(3000)}, {"0": 1e6}, {"9" * 30: 1}],
               "tokens": [[], [-1], [49151], [49152], [0] * 20_000, ["a"], [0.0], [2**63]],
               "content": [[], [[]], [{}], [""], "", [{"type": "text"}], [{"type": "image_url", "image_url": {"url": "file:///etc/passwd"}}],
                           [{"type": "input_audio"}], [{"type": "text", "text": ""}], [5], {}],
               "messages": [[], [[]], [{}], [{"role": "user", "content": []}], [{"role": "assistant", "content": []}],
                            [{"role": "user", "content": ""}], [{"role": "tool", "content": "a"}],
                            [{"role": "system", "content": "a"}] * 300, [{"role": "assistant", "content": "a"}]],
               "input": [[], "", [[]], [{}], [{"type": "reasoning"}], [{"type": "nope"}], [{"role": "user", "content": []}],
                         [{"type": "function_call", "name": "a"}] * 500],
               "system": ["", [], [[]], [{}], [{"type": "text", "text": ""}], [{"type": "image"}]],
               "previous_response_id": ["", "resp_nope", "../x"], "conversation": ["", {}, {"id": ""}, "a" * 5000],
               "top_logprobs": [0, 20, 21, -1], "logprobs": [True, False, 0, 5, 20, 21], "n_probs": [0, 100_000, 10**9],
               "tools": [[], [{}], [{"type": "function"}], [{"type": "web_search"}] * 600, [None]],
               "tool_choice": ["", "none", "any", "required", {}, {"type": "none"}, {"type": "function"}, {"type": "tool", "name": "nope"},
                               {"type": "function", "name": "nope"}, {"type": "function", "function": {"name": "nope"}}],
               "response_fields": [[""], ["/"], ["a/b/c"], ["x_vedette"] * 64, ["timings//x"]],
               "conversation_ids": [[""], ["a"] * 4097, ["\0"]], "model": ["", "a/b", "/dev/zero", "https://x/y", "a" * 5000]}
    return [copy.deepcopy(random.choice(choices[name]))] if name in choices and random.random() < 0.6 else []


def paths_of(value, path=()):
    """Every place in a JSON value, the root apart."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in items:
        yield (*path, key)
        yield from paths_of(inner, (*path, key))


def replace(body, path, change):
    at = body
    for key in path[:-1]:
        at = at[key]
    at[path[-1]] = change(at[path[-1]])


class Raw(str):
    """Stands for itself in the JSON text."""


def dump(value):
    """JSON text of a value with Raw in it, as bytes; Raw's characters are bytes."""
    raws = []

    def hold(item):
        if isinstance(item, Raw):
            raws.append(item)
            return f"@raw{len(raws) - 1}@"
        if isinstance(item, dict):
            return {key: hold(inner) for key, inner in item.items()}
        return [hold(inner) for inner in item] if isinstance(item, list) else item

    text = json.dumps(hold(value)).encode()
    for index, raw in enumerate(raws):
        text = text.replace(f"\"@raw{index}@\"".encode(), raw.encode("latin-1"), 1)
    return text


def mutate(random, body, path):
    """One field of `body` changed; returns whether the body is JSON still (for all it can know)."""
    kind = random.randrange(20)
    if kind == 0:
        replace(body, path, lambda _: Raw(random.choice(RAW)))
        return False
    if kind == 1 and isinstance(path[-1], str):
        parent = body
        for key in path[:-1]:
            parent = parent[key]
        parent["é" * random.randrange(1, 60) if random.random() < 0.5 else texts(random)] = any_value(random)
        return True
    if kind == 2:
        parent = body
        for key in path[:-1]:
            parent = parent[key]
        del parent[path[-1]]
        return True
    if kind == 3:
        replace(body, path, lambda old: [old])
        return True
    if kind == 4:
        replace(body, path, lambda old: {"a": old})
        return True
    special = special_value(random, path)
    replace(body, path, lambda _: special[0] if special else any_value(random))
    return True


def break_body(random, body):
    """Bytes that are no good request, and headers of theirs."""
    kind = random.randrange(12)
    text = json.dumps(body).encode()
    if kind == 0:
        return text[: random.randrange(len(text))], {}
    if kind == 1:
        at = random.randrange(len(text))
        return text[:at] + bytes([random.randrange(256)]) + text[at + 1:], {}
    if kind == 2:
        return random.choice([b"", b" ", b"null", b"[]", b"5", b"\"a\"", b"\xef\xbb\xbf" + text, b"{:", b"\0", text + text]), {}
    if kind == 3:
        return b"[" * random.choice([10, 256, 257, 100_000]), {}
    if kind == 4:
        return b"{\"a\":" * random.choice([255, 256, 100_000]) + b"1", {}
    if kind == 5:
        return text[:-1] + b"," + text[1:], {}  # every key twice
    if kind == 6:
        return bytes(random.randrange(256) for _ in range(random.randrange(2000))), {}
    if kind == 7:
        return gzip.compress(text)[: random.randrange(10, 200)], {"Content-Encoding": "gzip"}
    if kind == 8:
        return gzip.compress(text), {"Content-Encoding": random.choice(["zstd", "br", "deflate", "gzip, gzip", "x" * 300])}
    if kind == 9:
        return gzip.compress(b"[" + b" " * 3_000_000), {"Content-Encoding": "gzip"}
    if kind == 10:
        return text.replace(b":", b":\xff", 1), {}
    return text.decode().encode(random.choice(["utf-16", "utf-32"])), {}
