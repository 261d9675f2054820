"""For each dialect, tool syntax and reasoning form: the stream says what the body says, and both what the model wrote.

The replies are those that the parser's own tests cut at every byte (src/text/tools/golden_replies.json); here they pass
token by token through the engine and the server.
"""

import copy
import json
import os
from concurrent.futures import ThreadPoolExecutor

import pytest
import stream_states
from conftest import ROOT, ScriptedServer

with open(os.path.join(ROOT, "src/text/tools/golden_replies.json"), encoding="utf-8") as _file:
    GOLDENS = json.load(_file)

# What a template that speaks a syntax has in it.
TOLD_BY = {
    "hermes": "<tool_call>", "qwen_xml": "<function=", "gemma": "<|tool_call>call:", "mistral": "[TOOL_CALLS]",
    "llama3": "<|python_tag|>", "glm": "<arg_key>", "kimi": "<|tool_call_begin|>",
    "deepseek": "<｜tool▁call▁begin｜>", "atem": "<atem:invoke", "lfm2": "<|tool_call_start|>",
    "minicpm": "<function name=", "harmony": "<|channel|><|message|>commentary", "json_list": "<|tool_call|>",
    "dsml": "｜DSML｜", "minimax": "<minimax:tool_call>", "seed": "<seed:tool_call>", "": "",
}
TEMPLATE = """\
{%%- for tool in tools or [] %%}{{- tool | tojson }}{%%- endfor %%}
{%%- for message in messages %%}{{- '<|im_start|>' + message.role + '\\n' + message.content + '<|im_end|>\\n' }}{%%- endfor %%}
{%%- if add_generation_prompt %%}{{- %s }}{%%- endif %%}
{#- %s -#}"""
OPENING = "<|im_start|>assistant\n"  # where a golden says nothing of its prompt

SCHEMAS = {
    "weather": {"type": "object", "properties": {"city": {"type": "string"}, "days": {"type": "integer"},
                                                 "metric": {"type": "boolean"}}, "required": ["city"]},
    "search": {"type": "object", "properties": {"query": {"type": "string"}, "limit": {"type": ["integer", "null"]},
                                                "tags": {"anyOf": [{"type": "array"}, {"type": "null"}]},
                                                "options": {"$ref": "#/$defs/options"}},
               "$defs": {"options": {"type": "object"}}},
    "now": {"type": "object", "properties": {}},
    "write_file": {"type": "object", "properties": {"path": {"type": "string"}, "content": {"type": "string"}}},
    "anything": None,
}


def form_of(golden):
    """What must be the same for goldens to share a server."""
    return golden["syntax"], tuple(golden.get("reasoning") or ())


# Those that begin in a prompt of their own come first: all of them are taken.
FORMS = {}
for _golden in sorted(GOLDENS, key=lambda golden: "prompt" not in golden):
    FORMS.setdefault(form_of(_golden), []).append(_golden)
PER_FORM = 9


@pytest.fixture(scope="module", params=list(FORMS), ids=lambda form: " ".join((form[0] or "no calls",) + form[1][:1]))
def speaking(request, tiny_path, tmp_path_factory):
    """A server with a template of that form, and its goldens."""
    syntax, reasoning = request.param
    folder = tmp_path_factory.mktemp("speaking")
    # A pair that is a channel is told by its beginning.
    told = " ".join((TOLD_BY[syntax], *reasoning))
    (folder / "template").write_text(TEMPLATE % ("opening", told), encoding="utf-8")
    server = ScriptedServer(tiny_path, str(folder / "script.json"), id="tiny", template=folder / "template")
    yield server, FORMS[request.param][:PER_FORM]
    server.stop()


def functions(wrap):
    return [wrap(name, schema) for name, schema in SCHEMAS.items()]


def chat_request(text):
    wrap = lambda name, schema: {"type": "function", "function": {"name": name, **({"parameters": schema} if schema else {})}}
    return "/v1/chat/completions", {"messages": [{"role": "user", "content": text}], "tools": functions(wrap)}


def responses_request(text):
    wrap = lambda name, schema: {"type": "function", "name": name, "parameters": schema}
    return "/v1/responses", {"model": "any", "input": text, "tools": functions(wrap), "top_logprobs": 1}


def messages_request(text):
    wrap = lambda name, schema: {"name": name, "input_schema": schema or {"type": "object"}}
    return "/v1/messages", {"model": "any", "max_tokens": 500, "messages": [{"role": "user", "content": text}],
                            "tools": functions(wrap), "thinking": {"type": "adaptive"}}


def chat_parts(body):
    message = body["choices"][0]["message"]
    calls = [(call["function"]["name"], call["function"]["arguments"]) for call in message.get("tool_calls") or []]
    return message.get("reasoning_content", ""), message["content"] or "", calls


def check_tokens(part):
    """The tokens of a text write it, with nothing more than the rest of the first and of the last."""
    tokens = [bytes(token["bytes"]) for token in part["logprobs"]]
    written, text = b"".join(tokens), part["text"].encode()
    at = written.find(text)
    assert at >= 0, (part["text"], tokens)
    assert at < len(tokens[0]) and len(written) - at - len(text) < len(tokens[-1]), (part["text"], tokens)


def responses_parts(body):
    texts = {"reasoning": "", "message": ""}
    calls = []
    for item in body["output"]:
        if item["type"] == "function_call":
            calls.append((item["name"], item["arguments"]))
        else:
            texts[item["type"]] += "".join(part["text"] for part in item["content"])
        if item["type"] == "message":
            check_tokens(item["content"][0])
    return texts["reasoning"], texts["message"], calls


def messages_parts(body):
    texts = {"thinking": "", "text": ""}
    calls = []
    for block in body["content"]:
        if block["type"] == "tool_use":
            calls.append((block["name"], block["input"]))
        else:
            texts[block["type"]] += block[block["type"]]
    return texts["thinking"], texts["text"], calls


def golden_parts(golden, parse):
    texts = {"reasoning": "", "content": ""}
    calls = []
    for part in golden["parts"]:
        if part[0] in texts:
            texts[part[0]] += part[1]
        else:
            calls.append((part[1], stream_states.parse_input(part[2]) if parse else part[2]))
    return texts["reasoning"], texts["content"], calls


DIALECTS = {
    "chat": (chat_request, stream_states.chat, stream_states.whole_chat, chat_parts),
    "responses": (responses_request, stream_states.responses, stream_states.whole_response, responses_parts),
    "messages": (messages_request, stream_states.messages, stream_states.whole_message, messages_parts),
}
# Ids, times, and what the second of two equal requests has from the cache.
DIFFERENT = {"id", "call_id", "created", "created_at", "completed_at", "x_vedette", "usage", "timings"}


def without_ids(value):
    if isinstance(value, dict):
        return {key: without_ids(inner) for key, inner in value.items() if key not in DIFFERENT}
    return [without_ids(inner) for inner in value] if isinstance(value, list) else value


def output_tokens(body):
    return body["x_vedette"]["prompt_tokens"], body["x_vedette"]["completion_tokens"]


def check(server, golden, dialect):
    request, machine, validate, parts = DIALECTS[dialect]
    path, body = request(server.say(golden["raw"]))
    body["chat_template_kwargs"] = {"opening": golden.get("prompt") or OPENING}
    status, _, whole = server.post(path, body)
    assert status == 200, whole
    validate(whole)
    streamed = machine(server.events(path, {**body, "stream": True}))
    assert without_ids(streamed) == without_ids(whole), golden["name"]
    assert output_tokens(streamed) == output_tokens(whole)
    assert parts(whole) == golden_parts(golden, parse=dialect == "messages"), golden["name"]


@pytest.mark.parametrize("dialect", list(DIALECTS))
def test_stream_equals_whole(speaking, dialect):
    server, goldens = speaking
    with ThreadPoolExecutor(4) as pool:
        for done in [pool.submit(check, server, golden, dialect) for golden in goldens]:
            done.result()


# The marks of other syntaxes too are text here.
TEXTS = ["ďábelské 😀 漢字", "\n  a\tb \x07 \"q\" \\ ", "<think>no thoughts here</think><tool_call>", "x" * 300]


@pytest.mark.parametrize("text", TEXTS)
def test_raw_completions(scripted, text):
    body = {"prompt": scripted.say(text), "max_tokens": 400}
    status, _, whole = scripted.post("/v1/completions", body)
    assert status == 200 and whole["choices"][0]["text"] == text
    stream_states.whole_completion(whole)
    streamed = stream_states.completions(scripted.events("/v1/completions", {**body, "stream": True}))
    assert without_ids(streamed) == without_ids(whole)


@pytest.mark.parametrize("text", TEXTS)
def test_native_completion(scripted, text):
    body = {"prompt": scripted.say(text), "n_predict": 400, "seed": 1}
    status, _, whole = scripted.post("/completion", body)
    assert status == 200 and whole["content"] == text
    streamed = stream_states.native(scripted.events("/completion", {**body, "stream": True}))
    assert streamed["generation_settings"].pop("stream") and not whole["generation_settings"].pop("stream")
    _, _, tokens = scripted.post("/tokenize", {"content": text})
    assert streamed.pop("tokens") == tokens["tokens"]
    assert without_ids(streamed) == without_ids({key: whole[key] for key in whole if key != "tokens"})
