#!/usr/bin/env python3
"""Makes chat_cases.json: chat templates rendered by transformers (jinja2) over a set of conversations.

    python3 make_chat.py MODEL_DIR

Templates: chat/*.jinja, which exercise what templates of real models use, and the one inside the SmolLM2 file of
MODEL_DIR (named by the key only; its text stays in the model). Needs transformers 5.17, jinja2, gguf. The clock of
strftime_now stands at NOW, midday UTC, so that any usual time zone gives the same day.
"""

import datetime
import json
import os
import sys

import transformers.utils.chat_template_utils as chat
from gguf import GGUFReader

HERE = os.path.dirname(os.path.abspath(__file__))
NOW = 1739620800  # 2025-02-15 12:00 UTC
SMOLLM2 = "SmolLM2-135M-Instruct.Q4_1.gguf"


class FixedClock(datetime.datetime):
    @classmethod
    def now(cls, tz=None):
        return datetime.datetime.fromtimestamp(NOW, datetime.timezone.utc)


def user(content):
    return {"role": "user", "content": content}


def assistant(content, **more):
    return {"role": "assistant", "content": content, **more}


def call(name, arguments):
    return {"id": "call_1", "type": "function", "function": {"name": name, "arguments": arguments}}


TOOLS = [
    {"type": "function", "function": {"name": "get_weather", "description": "Weather <now> & \"later\", é 日本\nsecond line", "parameters": {
        "type": "object", "required": ["city"], "properties": {
            "city": {"type": "string", "description": "a city"}, "unit": {"type": "string", "enum": ["°C", "°F"]},
            "days": {"type": "integer", "default": 3}, "at": {"type": ["number", "null"]}, "tags": {"type": "array", "items": {"type": "string"}}}}}},
    {"type": "function", "function": {"name": "noop", "description": "", "parameters": {"type": "object", "properties": {}}}},
]

INPUTS = {
    "one": {"messages": [user("Hello, how are you!")]},
    "system": {"messages": [{"role": "system", "content": " Be brief. "}, user(" Hello there\n"), assistant(" Hi! "), user("Bye\tnow")]},
    "no generation prompt": {"messages": [user("a"), assistant("b")], "add_generation_prompt": False},
    "thoughts": {"messages": [user("a"), assistant("<think>\nhm\n</think>\n\nb"), user("c"), assistant("<think>x</think>d"), assistant("e", reasoning_content="f")], "extra": {"enable_thinking": False}},
    "call": {"messages": [user("Weather?"), assistant("", tool_calls=[call("get_weather", {"city": "Oslo", "days": 2, "x": 2.50, "big": 1e22, "small": 1e-7, "n": None, "ok": True, "s": "q\"\\\n\u0001\u007fé"}), call("noop", "{\"a\": 1}")]), {"role": "tool", "name": "get_weather", "content": "{\"t\": 3}"}, assistant("It is 3.")], "tools": TOOLS},
    "parts": {"messages": [user([{"type": "text", "text": "one"}, {"type": "image"}, {"type": "text", "text": "two"}])]},
    "empty list of tools": {"messages": [user("x")], "tools": []},
    "unicode": {"messages": [user("Straße ΑΣ ǆ é 👍🏽 İ ß\u2028line")], "tools": TOOLS},
    "wrong order": {"messages": [assistant("first"), user("second")]},
    "tool first": {"messages": [{"role": "tool", "content": "x"}]},
    "boom": {"messages": [{"role": "boom", "content": "x"}]},
    "deep": {"messages": [{"role": "deep", "content": "x"}]},
    "date": {"messages": [user("x")], "extra": {"date_string": "1 Jan", "knowledge": "1970"}},
}


def main():
    chat.datetime = FixedClock
    templates = {}
    for name in sorted(os.listdir(os.path.join(HERE, "chat"))):
        with open(os.path.join(HERE, "chat", name), encoding="utf-8") as file:
            templates[name.removesuffix(".jinja")] = file.read()
    templates["SmolLM2"] = GGUFReader(os.path.join(sys.argv[1], SMOLLM2)).fields["tokenizer.chat_template"].contents()
    cases = []
    for template, source in templates.items():
        compiled = chat._compile_jinja_template(source)
        for name, given in INPUTS.items():
            case = {"template": template, "name": name, "input": name}
            try:
                case["text"] = compiled.render(
                    messages=given["messages"], tools=given.get("tools"), documents=None, add_generation_prompt=given.get("add_generation_prompt", True),
                    bos_token="<s>", eos_token="</s>", **given.get("extra", {}))
            except Exception as error:
                case["raised"] = str(error) if type(error).__name__ == "TemplateError" else None
            cases.append(case)
    with open(os.path.join(HERE, "chat_cases.json"), "w", encoding="utf-8") as file:
        json.dump({"now": NOW, "inputs": INPUTS, "cases": cases}, file, ensure_ascii=False, indent=0)
        file.write("\n")
    print(len(cases), "cases,", sum("text" in case for case in cases), "texts")


if __name__ == "__main__":
    main()
