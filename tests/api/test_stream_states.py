"""The state machines refuse streams that are wrong: each event that has a place of its own is dropped, sent twice, or
changes places with its neighbour."""

import copy

import pydantic
import pytest
import stream_states
from test_openai_client import FLAT_NOW, FLAT_WEATHER, NOW, WEATHER

REPLY = ('<think>\nHm, well.\n</think>\n\nI look.\n<tool_call>\n{"name": "weather", "arguments": {"city": "Oslo"}}\n'
         '</tool_call>\n<tool_call>\n{"name": "now", "arguments": {}}\n</tool_call>')
ANTHROPIC_TOOLS = [{"name": tool["name"], "input_schema": tool["parameters"]} for tool in (FLAT_WEATHER, FLAT_NOW)]


def user(text):
    return [{"role": "user", "content": text}]


REQUESTS = {
    "chat": ("/v1/chat/completions", lambda text: {"messages": user(text), "tools": [WEATHER, NOW],
                                                   "stream_options": {"include_usage": True}}),
    "completions": ("/v1/completions", lambda text: {"prompt": text, "max_tokens": 200}),
    "responses": ("/v1/responses", lambda text: {"input": text, "tools": [FLAT_WEATHER, FLAT_NOW]}),
    "messages": ("/v1/messages", lambda text: {"messages": user(text), "max_tokens": 200, "tools": ANTHROPIC_TOOLS,
                                               "thinking": {"type": "adaptive"}}),
    "native": ("/completion", lambda text: {"prompt": text, "n_predict": 200}),
}


def machine_of(dialect):
    machine = getattr(stream_states, dialect)
    return (lambda events: machine(events, usage=True)) if dialect == "chat" else machine


def has_its_place(dialect, event):
    """Not one of a row of pieces of text, of which one more or less is still a stream."""
    name, data = event
    if dialect == "responses":
        return True
    if dialect == "messages":
        return name != "content_block_delta" or data["delta"]["type"] == "signature_delta"
    if data == "[DONE]" or dialect == "native":
        return data == "[DONE]" or data["stop"]
    if not data["choices"] or data["choices"][0]["finish_reason"]:
        return True
    delta = data["choices"][0].get("delta", {})
    return "role" in delta or "id" in (delta.get("tool_calls") or [{}])[0]


@pytest.fixture(scope="module")
def streams(scripted):
    text = scripted.say(REPLY)
    return {dialect: scripted.events(path, {**body(text), "stream": True}) for dialect, (path, body) in REQUESTS.items()}


def refused(machine, events):
    try:
        machine(events)
    except (AssertionError, pydantic.ValidationError, LookupError, TypeError, AttributeError):
        return True
    return False


@pytest.mark.parametrize("dialect", list(REQUESTS))
def test_a_right_stream_passes(streams, dialect):
    events = copy.deepcopy(streams[dialect])
    machine_of(dialect)(events)
    assert events == streams[dialect], "the machine changes nothing"


@pytest.mark.parametrize("dialect", list(REQUESTS))
def test_an_event_that_is_missing_or_doubled(streams, dialect):
    events, machine = streams[dialect], machine_of(dialect)
    checked = 0
    for at, event in enumerate(events):
        if not has_its_place(dialect, event):
            continue
        checked += 1
        assert refused(machine, events[:at] + events[at + 1:]), f"without {event}"
        assert refused(machine, events[:at + 1] + events[at:]), f"twice {event}"
    assert checked >= {"native": 1, "completions": 2, "chat": 6}.get(dialect, 10)


@pytest.mark.parametrize("dialect", list(REQUESTS))
def test_events_that_changed_places(streams, dialect):
    events, machine = streams[dialect], machine_of(dialect)
    for at, (one, two) in enumerate(zip(events, events[1:])):
        if not (has_its_place(dialect, one) and has_its_place(dialect, two)):
            continue
        assert refused(machine, events[:at] + [two, one] + events[at + 2:]), f"{two} before {one}"


@pytest.mark.parametrize("path, value", [("id", "chatcmpl-another"), ("model", "another"), ("object", "chat.completion")])
def test_chunks_of_another_answer(streams, path, value):
    for at in range(len(streams["chat"]) - 1):
        events = copy.deepcopy(streams["chat"])
        events[at][1][path] = value
        assert refused(machine_of("chat"), events)


def test_a_delta_in_a_block_of_another_kind(streams):
    kinds = {"thinking_delta": "thinking", "text_delta": "text", "input_json_delta": "partial_json"}
    deltas = [at for at, (name, data) in enumerate(streams["messages"])
              if name == "content_block_delta" and data["delta"]["type"] in kinds]
    assert len(deltas) > 5
    for at in deltas:
        for kind, key in kinds.items():
            events = copy.deepcopy(streams["messages"])
            if events[at][1]["delta"]["type"] == kind:
                continue
            events[at][1]["delta"] = {"type": kind, key: "x"}
            assert refused(machine_of("messages"), events)


def test_an_item_with_two_ids(streams):
    for at, (_, data) in enumerate(streams["responses"]):
        if "item_id" in data or "item" in data:
            events = copy.deepcopy(streams["responses"])
            (events[at][1] if "item_id" in data else events[at][1]["item"])["item_id" if "item_id" in data else "id"] = "msg_x"
            assert refused(machine_of("responses"), events)
