"""Faults that users of other servers reported, one test each where a server can show them; the docstring names the
report. What a smaller part shows alone (parser, template, loader, sampler) is tested beside that part."""

import json
import math
import socket
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
import stream_states
from conftest import ScriptedServer, Server
from test_stream_equals_whole import TEMPLATE, TOLD_BY, without_ids

CHAT, COMPLETIONS, MESSAGES, RESPONSES = ("/v1/chat/completions", "/v1/completions", "/v1/messages", "/v1/responses")
WEATHER = {"type": "object", "properties": {"city": {"type": "string", "enum": ["Oslo", "Lima"]},
                                            "days": {"type": "integer", "minimum": 1, "maximum": 9},
                                            "metric": {"type": "boolean"}},
           "required": ["city", "days", "metric"], "additionalProperties": False}
TOOLS = [{"type": "function", "function": {"name": "weather", "parameters": WEATHER}}]
CALL = '<tool_call>\n{"name": "weather", "arguments": {"city": "Oslo", "days": 2, "metric": true}}\n</tool_call>'
SPECIAL = "ďábelské 😀 漢字"


def user(text):
    return [{"role": "user", "content": text}]


def chat_body(text, **more):
    return {"messages": user(text), "max_tokens": 300, **more}


def whole_chat(server, body):
    status, _, answer = server.post(CHAT, body)
    assert status == 200, answer
    stream_states.whole_chat(answer)
    return answer


def both_ways(server, body):
    """The choice, which must be the same whole and streamed."""
    whole = whole_chat(server, body)
    streamed = stream_states.chat(server.events(CHAT, {**body, "stream": True}), logprobs=body.get("logprobs", False))
    assert without_ids(streamed) == without_ids(whole)
    return whole["choices"][0]


# ---- bytes, characters, stop strings, log probabilities


def test_a_character_cut_at_a_chunk_border(scripted):
    """ggml-org/llama.cpp#28926 (api)"""
    points = [0x7F, 0x80, 0x7FF, 0x800, 0xD7FF, 0xE000, 0xFFFD, 0x10000, 0x1F600, 0x10FFFF, 0x0301, 0x200D, 0x4E00]
    text = "".join(chr(point) + chr(point + 1 if point < 0x10FFFF and point != 0xD7FF else point) for point in points)
    assert both_ways(scripted, chat_body(scripted.say(text)))["message"]["content"] == text


def test_a_resumed_stream_starts_at_any_byte(scripted):
    """ggml-org/llama.cpp#28926 (api): the copy of a stream is bytes, whole wherever it is read from"""
    _, _, sent = scripted.request(CHAT, {**chat_body(scripted.say(SPECIAL)), "stream": True},
                                  headers={"X-Conversation-Id": "resumed"})
    size = len(sent.encode())
    for start in (0, 1, size // 2, size - 1):
        with socket.create_connection(address(scripted)) as client:
            client.sendall(f"GET /v1/stream?conv_id=resumed&from={start} HTTP/1.0\r\nHost: localhost\r\n\r\n".encode())
            answer = read_all(client)
        assert answer.split(b"\r\n\r\n", 1)[1] == sent.encode()[start:]


def test_illegal_utf8_at_high_temperature(tiny):
    """ggml-org/llama.cpp#11738 (robustness)"""
    def one(seed):
        return both_ways(tiny, chat_body("Hi", temperature=2, seed=seed, max_tokens=48, ignore_eos=True))["message"]["content"]

    with ThreadPoolExecutor(4) as pool:
        texts = list(pool.map(one, range(24)))
    assert any("\ufffd" in text for text in texts), "no reply had bytes that are no UTF-8; this shows nothing"


def test_half_a_character_is_no_server_error(tiny):
    """ggml-org/llama.cpp#24327 (robustness)"""
    _, _, pieces = tiny.post("/tokenize", {"content": "𐍈", "with_pieces": True})
    half = next(piece["id"] for piece in pieces["tokens"] if isinstance(piece["piece"], list))
    for most in (1, 3):
        choice = both_ways(tiny, chat_body("Hi", logit_bias={str(half): 100}, max_tokens=most))
        assert set(choice["message"]["content"]) == {"\ufffd"}


@pytest.mark.parametrize("requests", [1, 4])
def test_tokens_that_are_parts_of_characters(scripted, requests):
    """waybarrios/vllm-mlx#109, Blaizzy/mlx-vlm#1076 (tokenizer): alone and with others"""
    body = chat_body(scripted.say(SPECIAL))
    with ThreadPoolExecutor(requests) as pool:
        for choice in pool.map(lambda _: both_ways(scripted, body), range(requests)):
            assert choice["message"]["content"] == SPECIAL


@pytest.mark.parametrize("said, stop, text", [
    ("ABCDEFGHIJ", "DEFGHIJ", "ABC"), ("ABCDEFX", "DEFGHIJ", "ABCDEFX"), ("ABCDEF", "DEFGHIJ", "ABCDEF"),
    ("?\n", "\n", "?"), ("plain text", ["never", "nor this", "\x01", "zzz"], "plain text"),
    ("ababac", "abac", "ab"), ("x😀y", "😀", "x"),
])
def test_stop_strings(scripted, said, stop, text):
    """vllm-project/vllm#3574 (sampler), ggml-org/llama.cpp#9867, vllm-project/vllm#11089 (api)"""
    prompt = scripted.say(said)
    choice = both_ways(scripted, chat_body(prompt, stop=stop))
    assert choice["message"]["content"] == text and choice["finish_reason"] == "stop"
    status, _, raw = scripted.post(COMPLETIONS, {"prompt": prompt, "stop": stop, "max_tokens": 300})
    assert status == 200 and raw["choices"][0]["text"] == text


def test_logprobs_of_one_request_in_a_batch(smollm2):
    """sgl-project/sglang#30188 (api)"""
    body = {"messages": user("Count to ten."), "temperature": 0, "max_tokens": 12}
    logged = {**body, "logprobs": True, "top_logprobs": 5}
    alone = both_ways(smollm2, logged)
    with ThreadPoolExecutor(4) as pool:
        answers = list(pool.map(lambda given: whole_chat(smollm2, given), [logged, body, logged, body]))
    for answer, wanted in zip(answers, [True, False, True, False]):
        assert answer["choices"][0]["message"] == alone["message"]
        assert answer["choices"][0]["logprobs"] == (alone["logprobs"] if wanted else None)
    tables = [tuple(top["token"] for top in token["top_logprobs"]) for token in alone["logprobs"]["content"]]
    assert len(set(tables)) > 1, "each token has a table of its own"


def test_logprobs_of_completions_are_not_null(smollm2):
    """ggml-org/llama.cpp#11346 (api)"""
    for stream in (False, True):
        body = {"prompt": "One, two,", "logprobs": 1, "max_tokens": 1, "stream": stream}
        if stream:
            answer = stream_states.completions(smollm2.events(COMPLETIONS, body), logprobs=True)
        else:
            answer = smollm2.post(COMPLETIONS, body)[2]
        lists = answer["choices"][0]["logprobs"]
        assert len(lists["tokens"]) == len(lists["token_logprobs"]) == len(lists["top_logprobs"]) == 1


def test_logprobs_are_those_of_a_distribution(smollm2):
    """abetlen/llama-cpp-python#990 (api)"""
    _, _, answer = smollm2.post(COMPLETIONS, {"prompt": "1, 2, 3, 4, 5, 6, 7,", "logprobs": 20, "max_tokens": 4,
                                              "temperature": 0})
    for top in answer["choices"][0]["logprobs"]["top_logprobs"]:
        mass = sum(math.exp(value) for value in top.values())
        assert all(math.isfinite(value) for value in top.values()) and 0.8 < mass <= 1 + 1e-4


# ---- tool calls


def test_a_streamed_call_is_not_lost(scripted):
    """ddalcu/mlx-serve#287, earendil-works/pi#1125, waybarrios/vllm-mlx#107 (api): nor is its markup content"""
    choice = both_ways(scripted, chat_body(scripted.say("I look.\n" + CALL), tools=TOOLS))
    assert choice["finish_reason"] == "tool_calls" and choice["message"]["content"] == "I look."
    assert [call["function"]["name"] for call in choice["message"]["tool_calls"]] == ["weather"]


def test_malformed_arguments_end_normally(scripted):
    """jundot/omlx#2012 (robustness)"""
    broken = CALL.replace('"city":', '"city"')
    text = scripted.say(broken)
    choice = both_ways(scripted, chat_body(text, tools=TOOLS))
    assert '"city" "Oslo"' in choice["message"]["tool_calls"][0]["function"]["arguments"]
    tools = [{"name": "weather", "input_schema": WEATHER}]
    body = {"messages": user(text), "tools": tools, "max_tokens": 300}
    message = stream_states.messages(scripted.events(MESSAGES, {**body, "stream": True}))
    assert '"city" "Oslo"' in message["content"][0]["input"]["_malformed_arguments"]


def test_markers_that_are_no_special_tokens(scripted):
    """raullenchai/Rapid-MLX#978 (tokenizer): the vocabulary has no token for the marks of a call"""
    _, _, ids = scripted.post("/tokenize", {"content": "<tool_call>"})
    assert len(ids["tokens"]) > 1
    assert both_ways(scripted, chat_body(scripted.say(CALL), tools=TOOLS))["message"]["tool_calls"]


def test_python_literals_in_arguments(scripted):
    """waybarrios/vllm-mlx#63 (template)"""
    text = scripted.say("<tool_call>\n{'name': 'weather', 'arguments': {'city': ['a','b'], 'k': True, 'n': None}}\n</tool_call>")
    call = both_ways(scripted, chat_body(text, tools=TOOLS))["message"]["tool_calls"][0]
    assert json.loads(call["function"]["arguments"]) == {"city": ["a", "b"], "k": True, "n": None}


def test_every_delta_of_a_call_has_its_index(scripted):
    """ollama/ollama#7881 (api)"""
    body = chat_body(scripted.say(CALL + "\n" + CALL), tools=TOOLS, stream=True)
    events = scripted.events(CHAT, body)
    deltas = [call for _, chunk in events[:-1] for choice in chunk["choices"]
              for call in choice["delta"].get("tool_calls", [])]
    assert {delta["index"] for delta in deltas} == {0, 1} and len(deltas) > 4
    stream_states.chat(events)


def test_finish_reason_is_null_until_the_end(scripted):
    """ollama/ollama#4357, BerriAI/litellm#35663 (api)"""
    events = scripted.events(CHAT, chat_body(scripted.say(CALL), tools=TOOLS, stream=True))
    reasons = [choice["finish_reason"] for _, chunk in events[:-1] for choice in chunk["choices"]]
    assert reasons == [None] * (len(reasons) - 1) + ["tool_calls"]


@pytest.fixture(scope="module", params=["qwen_xml", "mistral", "llama3", "glm", "hermes"])
def speaking(request, tiny_path, tmp_path_factory):
    """Random weights with a template of that syntax."""
    folder = tmp_path_factory.mktemp("family")
    (folder / "template").write_text(TEMPLATE % ("'<|im_start|>assistant\\n'", TOLD_BY[request.param]), encoding="utf-8")
    server = ScriptedServer(tiny_path, str(folder / "script.json"), template=folder / "template")
    yield request.param, server
    server.stop()


def test_required_is_enforced_for_each_template(speaking):
    """ggml-org/llama.cpp#27217 (sampler)"""
    for seed in range(2):
        choice = whole_chat(speaking[1], chat_body("Hi", tools=TOOLS, tool_choice="required", temperature=1, seed=seed,
                                                   parallel_tool_calls=False))["choices"][0]
        value = json.loads(choice["message"]["tool_calls"][0]["function"]["arguments"])
        assert choice["finish_reason"] == "tool_calls"
        assert value["city"] in ("Oslo", "Lima") and 1 <= value["days"] <= 9 and isinstance(value["metric"], bool)


def test_a_schema_is_enforced_for_each_template(speaking):
    """ggml-org/llama.cpp#24097 (sampler)"""
    schema = {"type": "json_schema", "json_schema": {"name": "weather", "schema": WEATHER}}
    message = both_ways(speaking[1], chat_body("Hi", response_format=schema, temperature=1, seed=1))["message"]
    assert set(json.loads(message["content"])) == {"city", "days", "metric"}


def test_values_have_the_types_of_the_schema(speaking):
    """scouzi1966/maclocal-api#38, unslothai/unsloth#10019 (template)"""
    syntax, server = speaking
    said = {"qwen_xml": "<tool_call>\n<function=weather>\n<parameter=city>\n7\n</parameter>\n<parameter=days>\n7\n"
                        "</parameter>\n<parameter=metric>\nfalse\n</parameter>\n</function>\n</tool_call>",
            "glm": "<tool_call>weather\n<arg_key>city</arg_key>\n<arg_value>7</arg_value>\n<arg_key>days</arg_key>\n"
                   "<arg_value>7</arg_value>\n<arg_key>metric</arg_key>\n<arg_value>false</arg_value>\n</tool_call>",
            "mistral": '[TOOL_CALLS]weather[ARGS]{"city": "7", "days": 7, "metric": false}',
            "llama3": '{"name": "weather", "parameters": {"city": "7", "days": 7, "metric": false}}',
            "hermes": '<tool_call>{"name": "weather", "arguments": {"city": "7", "days": 7, "metric": false}}</tool_call>'}
    call = both_ways(server, chat_body(server.say(said[syntax]), tools=TOOLS))["message"]["tool_calls"][0]
    assert json.loads(call["function"]["arguments"]) == {"city": "7", "days": 7, "metric": False}


# ---- OpenAI, Anthropic, Responses


def test_tools_of_types_that_are_not_run(scripted):
    """ggml-org/llama.cpp#20156, #22389, unslothai/unsloth#5141 (api)"""
    function = {"type": "function", "name": "weather", "parameters": WEATHER}
    other = [{"type": "web_search"}, {"type": "custom", "name": "patch"}, {"type": "image_generation"},
             {"type": "local_shell"}, {"type": "namespace", "name": "more", "description": "More.",
             "tools": [{**function, "name": "inner"}]}]
    body = {"input": scripted.say(CALL + CALL.replace("weather", "inner")), "tools": other + [function]}
    answer = stream_states.responses(scripted.events(RESPONSES, {**body, "stream": True}))
    assert [(item["name"], item.get("namespace")) for item in answer["output"]] == [("weather", None), ("inner", "more")]
    warnings = " ".join(answer["x_vedette"]["warnings"])
    assert all(kind in warnings for kind in ("web_search", "custom", "image_generation", "local_shell"))
    answer = whole_chat(scripted, chat_body(scripted.say("Yes."), tools=other[:4] + TOOLS))
    assert "web_search" in " ".join(answer["x_vedette"]["warnings"])


def test_outputs_of_tools_in_every_form(scripted):
    """ggml-org/llama.cpp#23465 (api)"""
    call = {"type": "function_call", "call_id": "call_1", "name": "weather", "arguments": "{}"}
    body = {"max_output_tokens": 20, "tools": [{"type": "function", "name": "weather", "parameters": WEATHER}]}

    def answer(output):
        given = user(scripted.say("Wet.")) + [call, {"type": "function_call_output", "call_id": "call_1", "output": output}]
        return scripted.post(RESPONSES, {**body, "input": given})

    for output in ("rain", [{"type": "input_text", "text": "rain"}], [{"type": "output_text", "text": "a"},
                                                                     {"type": "input_text", "text": "b"}], []):
        status, _, response = answer(output)
        assert status == 200 and response["output"][0]["content"][0]["text"] == "Wet.", response
    status, _, refused = answer([{"type": "input_image", "image_url": "data:image/png;base64,AA=="}])
    assert status == 400 and refused["error"]["param"] == "input[2].output[0]" and "input_image" in refused["error"]["message"]


def test_text_format_of_responses_is_applied(tiny):
    """lmstudio-bug-tracker#1396 (api)"""
    body = {"input": "Hi", "max_output_tokens": 200, "temperature": 1, "seed": 1, "reasoning": {"effort": "none"},
            "text": {"format": {"type": "json_schema", "name": "weather", "schema": WEATHER}}}
    for answer in (tiny.post(RESPONSES, body)[2], stream_states.responses(tiny.events(RESPONSES, {**body, "stream": True}))):
        assert set(json.loads(answer["output"][0]["content"][0]["text"])) == {"city", "days", "metric"}
        assert answer["text"] == body["text"]


def test_one_id_for_all_events_of_an_item(scripted):
    """EricLBuehler/mistral.rs#1984, #1989 (api)"""
    body = {"input": scripted.say("<think>\nHm.\n</think>\n\nI look.\n" + CALL + CALL), "stream": True,
            "tools": [{"type": "function", "name": "weather", "parameters": WEATHER}]}
    events = scripted.events(RESPONSES, body)
    assert len(stream_states.responses(events)["output"]) == 4
    ids = {}
    for _, data in events:
        if "output_index" in data:
            ids.setdefault(data["output_index"], set()).add(data.get("item_id") or data["item"]["id"])
    assert [len(ids[index]) for index in range(4)] == [1, 1, 1, 1]
    status, _, refused = scripted.post(RESPONSES, {**body, "background": True})
    assert status == 400 and refused["error"]["param"] == "background"


def test_reasoning_events_are_those_that_clients_know(scripted):
    """earendil-works/pi#4193 (api)"""
    events = scripted.events(RESPONSES, {"input": scripted.say("<think>\nHm.\n</think>\n\nYes."), "stream": True})
    stream_states.responses(events)
    names = [name for name, _ in events]
    assert "response.reasoning_text.delta" in names and "response.reasoning_text.done" in names


def agent_body(server, reply):
    """What Claude Code sends, by size: a long system text in blocks, 30 tools."""
    tools = [{"name": f"tool_{index}", "description": "It does this and that. " * 12, "input_schema": WEATHER}
             for index in range(29)] + [{"name": "weather", "input_schema": WEATHER}]
    system = [{"type": "text", "text": "You are an agent."},
              {"type": "text", "text": "Heed this rule of the house, and the next one. " * 900,
               "cache_control": {"type": "ephemeral"}}]
    return {"model": "any", "max_tokens": 300, "system": system, "tools": tools, "messages": user(server.say(reply)),
            "stream": True}


def test_an_agents_tools_are_used(scripted):
    """lmstudio-bug-tracker#2164 (api)"""
    answer = stream_states.messages(scripted.events(MESSAGES, agent_body(scripted, "I look.\n" + CALL)))
    assert answer["stop_reason"] == "tool_use" and answer["content"][1]["name"] == "weather"
    assert answer["x_vedette"]["prompt_tokens"] > 12_000


@pytest.mark.parametrize("said", ["<think>\nHm, " + "so " * 30 + "\n</think>\n\nYes.\n" + CALL + CALL,
                                  "<think>\nHm.", "<think>\n</think>\nYes.", "Yes.", CALL])
def test_blocks_open_once_and_hold_their_own_deltas(scripted, said):
    """ggml-org/llama.cpp#18551, BerriAI/litellm#33224 (api)"""
    body = {"messages": user(scripted.say(said)), "max_tokens": 300, "thinking": {"type": "enabled", "budget_tokens": 1024},
            "tools": [{"name": "weather", "input_schema": WEATHER}]}
    streamed = stream_states.messages(scripted.events(MESSAGES, {**body, "stream": True}))
    _, _, whole = scripted.post(MESSAGES, body)
    stream_states.whole_message(whole)
    assert without_ids(streamed) == without_ids(whole)
    assert all(block["signature"] for block in whole["content"] if block["type"] == "thinking")


IMAGE = "data:image/png;base64,AA=="


@pytest.mark.parametrize("path, content", [
    (MESSAGES, {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AA=="}}),
    (CHAT, {"type": "image_url", "image_url": {"url": IMAGE}}),
    (RESPONSES, {"type": "input_image", "image_url": IMAGE}),
])
def test_images_are_not_ignored(tiny, path, content):
    """Blaizzy/mlx-vlm#1060 (api)"""
    message = [{"role": "user", "content": [content]}]
    status, _, answer = tiny.post(path, {"input" if path == RESPONSES else "messages": message, "max_tokens": 1})
    assert status == 400 and "image" in answer["error"]["message"] and answer["error"]["param"]


WRONG = [None, True, -7, 1e300, "text", [], {}, [[]], [{}], {"type": "zzz"}, ["\u0000"], {"a": {"b": []}}]
FIELDS = {
    CHAT: ["model", "messages", "n", "stop", "seed", "temperature", "top_p", "top_k", "min_p", "max_tokens",
           "max_completion_tokens", "logprobs", "top_logprobs", "logit_bias", "stream", "stream_options", "tools",
           "tool_choice", "parallel_tool_calls", "response_format", "reasoning_effort", "chat_template_kwargs",
           "presence_penalty", "frequency_penalty", "user", "extra_body", "grammar", "thinking_budget"],
    COMPLETIONS: ["prompt", "n", "best_of", "echo", "logprobs", "suffix", "stop", "max_tokens", "stream", "logit_bias"],
    MESSAGES: ["messages", "system", "tools", "tool_choice", "thinking", "output_config", "stop_sequences", "max_tokens",
               "metadata", "stream", "temperature"],
    RESPONSES: ["input", "instructions", "previous_response_id", "conversation", "store", "stream", "max_output_tokens",
                "max_tool_calls", "tools", "tool_choice", "text", "reasoning", "metadata", "truncation", "background",
                "include", "top_logprobs"],
}
PLAIN = {CHAT: {"messages": user("Hi"), "max_tokens": 1}, MESSAGES: {"messages": user("Hi"), "max_tokens": 1},
         COMPLETIONS: {"prompt": "Hi", "max_tokens": 1}, RESPONSES: {"input": "Hi", "max_output_tokens": 1}}


@pytest.mark.parametrize("path", list(FIELDS))
def test_wrong_types_are_named(tiny, path):
    """lmstudio-bug-tracker#377 (robustness)"""
    limit = "max_output_tokens" if path == RESPONSES else "max_tokens"

    def one(case):
        field, value = case
        body = {**PLAIN[path], field: value}
        if field == limit and (value is None or isinstance(value, (int, float))):
            return None
        status, _, answer = tiny.post(path, body)
        if status not in (200, 400, 404):
            return f"{field} = {value!r}: {status} {answer}"
        if status != 200 and not (answer["error"].get("param") or field in answer["error"]["message"]):
            return f"{field} = {value!r}: {answer}"
        return None

    with ThreadPoolExecutor(4) as pool:
        cases = [(field, value) for field in FIELDS[path] for value in WRONG]
        faults = [fault for fault in pool.map(one, cases) if fault]
    assert not faults, "\n".join(faults)
    status, _, answer = tiny.post(path, {**PLAIN[path], FIELDS[path][1 if path == CHAT else 0]: {"role": "user"}})
    assert status == 400 and answer["error"]["param"].startswith(FIELDS[path][1 if path == CHAT else 0])


@pytest.mark.parametrize("path", [CHAT, COMPLETIONS, MESSAGES, RESPONSES, "/completion"])
def test_a_body_that_is_no_json(tiny, path):
    """ml-explore/mlx-lm#342 (robustness)"""
    for body in (b"{:", b"", b"[]", b"null", b'{"messages": "\xff"}', b"{" * 3000):
        status, _, answer = tiny.request(path, body, method="POST")
        assert status == 400 and answer["error"]["message"], (body, answer)


def test_the_last_chunk_has_the_usual_shape(scripted):
    """ml-explore/mlx-lm#342 (robustness)"""
    events = scripted.events(CHAT, chat_body(scripted.say("Yes."), stream=True))
    last = events[-2][1]["choices"]
    assert last == [{"index": 0, "delta": {}, "logprobs": None, "finish_reason": "stop"}]


# ---- reasoning and structured output


@pytest.fixture(scope="module")
def opened(tiny_path, tmp_path_factory):
    """Random weights with a template that opens reasoning itself."""
    folder = tmp_path_factory.mktemp("opened")
    opening = ("'<|im_start|>assistant\\n<think>\\n' + ('\\n</think>\\n\\n' if enable_thinking is defined and not "
               "enable_thinking else '')")
    (folder / "template").write_text(TEMPLATE % (opening, "<think> </think> <tool_call>"), encoding="utf-8")
    server = ScriptedServer(tiny_path, str(folder / "script.json"), template=folder / "template")
    yield server
    server.stop()


def test_unterminated_reasoning_is_no_answer(opened):
    """kekzl/imp#509 (template)"""
    choice = both_ways(opened, chat_body("Hi", max_tokens=8, ignore_eos=True, temperature=1, seed=1))
    assert choice["finish_reason"] == "length" and choice["message"]["content"] == ""
    assert choice["message"]["reasoning_content"]


def test_the_forced_end_of_thinking_is_no_content(opened):
    """vllm-project/vllm#39697 (sampler)"""
    for seed in range(3):
        body = chat_body("Hi", max_tokens=48, temperature=1, seed=seed, thinking_budget_tokens=16, ignore_eos=True)
        message = both_ways(opened, body)["message"]
        assert "think>" not in message["content"] + message["reasoning_content"] and message["content"]
        assert whole_chat(opened, body)["usage"]["completion_tokens_details"]["reasoning_tokens"] <= 24


@pytest.mark.parametrize("form", [{"type": "json_schema", "json_schema": {"name": "weather", "schema": WEATHER}},
                                  {"type": "json_object", "schema": WEATHER}])
@pytest.mark.parametrize("thinking", [True, False])
@pytest.mark.parametrize("which", ["opened", "tiny"])
def test_json_is_the_answer_and_not_the_reasoning(request, which, thinking, form):
    """sgl-project/sglang#14821, lmstudio-bug-tracker#1698 (sampler)"""
    server = request.getfixturevalue(which)
    body = chat_body("Hi", temperature=1, seed=2, response_format=form, enable_thinking=thinking, thinking_budget_tokens=8)
    message = both_ways(server, body)["message"]
    assert set(json.loads(message["content"])) == {"city", "days", "metric"}
    if which == "opened":
        assert ("reasoning_content" in message) == thinking


def test_recursive_schema(tiny):
    """sgl-project/sglang#7639 (robustness)"""
    node = {"type": "object", "properties": {"value": {"type": "integer"},
                                             "children": {"type": "array", "items": {"$ref": "#/$defs/node"}}},
            "required": ["value", "children"], "additionalProperties": False}
    schema = {"$ref": "#/$defs/node", "$defs": {"node": node}}
    choice = whole_chat(tiny, chat_body("Hi", temperature=1, seed=1, enable_thinking=False, response_format={
        "type": "json_schema", "json_schema": {"name": "tree", "schema": schema}}))["choices"][0]
    assert choice["message"]["content"].lstrip().startswith("{")
    if choice["finish_reason"] == "stop":
        assert set(json.loads(choice["message"]["content"])) == {"value", "children"}
    endless = {"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/a"}}}
    status, _, answer = tiny.post(CHAT, chat_body("Hi", response_format={
        "type": "json_schema", "json_schema": {"name": "loop", "schema": endless}}))
    assert status == 400 and answer["error"]["param"].startswith("response_format"), answer


# ---- cache, context, disconnects


def test_a_changing_first_line_keeps_the_rest_cached(scripted):
    """waybarrios/vllm-mlx#277, ggml-org/llama.cpp#20623, vllm#36829, ollama#14918, jundot/omlx#2881 (cache)"""
    body = {**agent_body(scripted, "Yes."), "stream": False}

    def answer(version, left):
        system = [{"type": "text", "text": f"x-anthropic-billing-header: cc_version={version}; cch={version:05x};"},
                  *body["system"], {"type": "text", "text": f"Left: <total_tokens>{left}</total_tokens>"}]
        status, _, message = scripted.post(MESSAGES, {**body, "system": system})
        assert status == 200, message
        usage = message["usage"]
        return usage["cache_read_input_tokens"] / (usage["cache_read_input_tokens"] + usage["input_tokens"])

    answer(1, 199_000)
    assert answer(77, 150_123) >= 0.99
    assert answer(78, 1) >= 0.99


def test_a_prompt_beyond_the_window_is_refused(start_server, tiny_path):
    """ollama#4967, #3839, #17889, #18107 (api)"""
    server = start_server(tiny_path, ctx_size=512)
    text = "The code word is plum. " + "word " * 2000
    for path, body in ((CHAT, {"messages": user(text)}), (COMPLETIONS, {"prompt": text}), (RESPONSES, {"input": text}),
                       (MESSAGES, {"messages": user(text), "max_tokens": 5}), ("/completion", {"prompt": text})):
        for stream in (False, True):
            status, _, answer = server.post(path, {**body, "stream": stream})
            assert status == 400, answer
            error = answer["error"]
            count = int(error["message"].split(" tokens")[0].removeprefix("prompt is too long: "))
            assert error["message"] == f"prompt is too long: {count} tokens > 512 maximum" and count > 2000
            assert error["type"] == "invalid_request_error" and ("type" in answer) == (path == MESSAGES)


def test_a_request_out_of_context_ends_alone(start_server, tiny_path):
    """ggml-org/llama.cpp#23652 (robustness)"""
    server = start_server(tiny_path, ctx_size=256, parallel=4)
    bodies = [chat_body(f"Hi {index}", max_tokens=10**6 if index == 0 else 40, ignore_eos=True, seed=index)
              for index in range(4)]
    alone = [whole_chat(server, body)["choices"][0] for body in bodies]
    with ThreadPoolExecutor(4) as pool:
        together = [answer["choices"][0] for answer in pool.map(lambda body: whole_chat(server, body), bodies)]
    assert together == alone and [choice["finish_reason"] for choice in together] == ["length"] * 4


def address(server):
    host, port = server.url.removeprefix("http://").split(":")
    return host, int(port)


def read_all(client):
    out = b""
    while piece := client.recv(65536):
        out += piece
    return out


def send(client, path, body):
    data = json.dumps(body).encode()
    client.sendall(f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
                   f"Content-Length: {len(data)}\r\n\r\n".encode() + data)


def slots(server):
    return [slot["state"] for slot in server.request("/slots")[2] if slot["is_processing"]]


def wait_until(condition, seconds):
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            return False
        time.sleep(0.005)
    return True


@pytest.fixture(scope="module")
def single(tiny_path):
    """A server that serves one request at a time."""
    server = Server(tiny_path, parallel=1)
    yield server
    server.stop()


@pytest.mark.parametrize("point", ["waiting", "prefill", "decode"])
@pytest.mark.parametrize("path", [CHAT, MESSAGES, RESPONSES])
def test_a_disconnect_frees_the_slot(single, path, point):
    """ggml-org/llama.cpp#24496, ikawrakow/ik_llama.cpp#1020 (robustness)"""
    server = single
    long = {"messages": user(f"{point} {path} " + "word " * (60_000 if point == "prefill" else 10)), "max_tokens": 50_000, "ignore_eos": True,
            "stream": point == "decode"}
    if path == RESPONSES:
        long.update(input=long.pop("messages"), max_output_tokens=long.pop("max_tokens"))
    with socket.create_connection(address(server)) as other, socket.create_connection(address(server)) as client:
        if point == "waiting":
            send(other, CHAT, {"messages": user("Hi"), "max_tokens": 50_000, "ignore_eos": True})
            assert wait_until(lambda: slots(server) == ["decode"], 10)
        send(client, path, long)
        both = ["decode", "waiting"] if point == "waiting" else [point]
        assert wait_until(lambda: slots(server) == both, 10), slots(server)
        if point == "decode":
            assert b"200 OK" in client.recv(4096)
        client.close()
        assert wait_until(lambda: slots(server) == both[:-1], 0.2), slots(server)
    assert wait_until(lambda: slots(server) == [], 0.2)


@pytest.mark.parametrize("path", [CHAT, MESSAGES, RESPONSES, COMPLETIONS, "/completion"])
def test_a_client_gone_after_the_header(tiny, path):
    """EricLBuehler/mistral.rs#1376 (robustness)"""
    body = {**PLAIN.get(path, {"prompt": "Hi", "n_predict": 1}), "stream": True}
    for _ in range(3):
        with socket.create_connection(address(tiny)) as client:
            send(client, path, body)
            client.recv(1)
        with socket.create_connection(address(tiny)) as client:
            send(client, path, body)
        with socket.create_connection(address(tiny)) as client:
            client.sendall(f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Length: 999\r\n\r\n{{".encode())
    assert wait_until(lambda: slots(tiny) == [], 1)
    assert tiny.post(path, {**body, "stream": False})[0] == 200


def test_a_foreign_page_gets_no_permission(tiny):
    """ggml-org/llama.cpp#25606, #25655, nomic-ai/gpt4all#3681 (security)"""
    evil = {"Origin": "https://evil.example", "Access-Control-Request-Method": "POST"}
    for path, body, method in ((CHAT, PLAIN[CHAT], "POST"), ("/health", None, "GET"), (CHAT, None, "OPTIONS")):
        _, headers, _ = tiny.request(path, body, method=method, headers=evil)
        assert not [name for name in headers if name.lower().startswith("access-control-allow")]
    status, _, answer = tiny.request("/health", headers={"Host": "evil.example"})
    assert status == 403 and answer["error"]["message"]


def test_two_sessions_do_not_evict_each_other(start_server, tiny_path):
    """lmstudio-bug-tracker#2320 (cache)"""
    server = start_server(tiny_path, ctx_size=16384, parallel=2)
    sessions = [user(f"Session {name}. " + f"{name} is a word. " * 1200) for name in ("apple", "quince")]
    seen = [0, 0]
    for turn in range(3):
        for index, messages in enumerate(sessions):
            answer = whole_chat(server, {"messages": messages, "max_tokens": 4, "temperature": 0})
            usage = answer["usage"]
            assert usage["prompt_tokens_details"]["cached_tokens"] > seen[index] - 64, (turn, index, answer["x_vedette"])
            seen[index] = usage["prompt_tokens"]
            messages += [{"role": "assistant", "content": answer["choices"][0]["message"]["content"] or "Hm."},
                         {"role": "user", "content": f"Go on {turn}."}]
    assert min(seen) > 5000
