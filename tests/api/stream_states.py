"""A state machine for the stream of each dialect. Each takes the events of one stream, as Server.events gives them,
fails where an event is not allowed at its place, and returns what the events say together: the body that the same
request has without `stream`, but for ids and times.

Each event must also be a valid value of the official client's own type, in strict mode.
"""

import copy
import json

from anthropic.types import Message, RawMessageStreamEvent
from openai.types import Completion
from openai.types.chat import ChatCompletion, ChatCompletionChunk
from openai.types.responses import Response, ResponseStreamEvent
from pydantic import TypeAdapter

RESPONSE_EVENT = TypeAdapter(ResponseStreamEvent)
MESSAGE_EVENT = TypeAdapter(RawMessageStreamEvent)


def whole_chat(body):
    return ChatCompletion.model_validate(body, strict=True)


def whole_completion(body):
    """The type knows no null for the first token of an echoed prompt, which OpenAI's own answers have."""
    valid = copy.deepcopy(body)
    for choice in valid["choices"]:
        for key, instead in (("token_logprobs", 0.0), ("top_logprobs", {})):
            if choice["logprobs"] and choice["logprobs"][key][:1] == [None]:
                choice["logprobs"][key][0] = instead
    return Completion.model_validate(valid, strict=True)


def whole_response(body):
    return Response.model_validate(body, strict=True)


def whole_message(body):
    return Message.model_validate(body, strict=True)


def openai_frames(events, usage):
    """The chunks of an OpenAI stream: one id, one [DONE] at the end, usage last and only if asked for."""
    assert events[-1] == ("", "[DONE]")
    chunks = [data for _, data in events[:-1]]
    assert all(name == "" for name, _ in events)
    assert all(isinstance(chunk, dict) for chunk in chunks), "[DONE] before the end"
    for key in ("id", "created", "model", "object", "system_fingerprint"):
        assert len({chunk[key] for chunk in chunks}) == 1, f"{key} changes within a stream"
    last_usage = None
    if usage:
        last = chunks.pop()
        assert last["choices"] == [] and last["usage"]["total_tokens"] > 0
        assert all(chunk["usage"] is None for chunk in chunks)
        last_usage = last["usage"]
    else:
        assert all(chunk.get("usage") is None for chunk in chunks)
    assert all(chunk["choices"] for chunk in chunks)
    reports = [chunk["x_vedette"] for chunk in chunks if "x_vedette" in chunk]
    assert len(reports) == 1 and "x_vedette" in chunks[-1]
    return chunks, last_usage, reports[0]


class ChatChoice:
    def __init__(self):
        self.role = None
        self.content, self.reasoning = "", ""
        self.calls, self.logprobs, self.finish_reason = [], [], None

    def take(self, choice):
        delta, reason = choice["delta"], choice["finish_reason"]
        assert self.finish_reason is None, "a chunk after finish_reason"
        if choice["logprobs"] is not None:
            assert choice["logprobs"]["content"]
            self.logprobs += choice["logprobs"]["content"]
        if self.role is None:
            assert delta == {"role": "assistant", "content": ""} and reason is None, "the first delta gives the role"
            self.role = delta["role"]
            return
        if reason is not None:
            assert delta == {} and reason in ("stop", "length", "tool_calls")
            self.finish_reason = reason
            return
        kinds = set(delta) - {"reasoning"}
        assert len(kinds) == 1, f"one kind of delta at a time: {delta}"
        if "content" in delta:
            assert delta["content"]
            self.content += delta["content"]
        elif "reasoning_content" in delta:
            assert delta["reasoning_content"] and delta["reasoning"] == delta["reasoning_content"]
            self.reasoning += delta["reasoning_content"]
        else:
            for call in delta["tool_calls"]:
                self.take_call(call)

    def take_call(self, call):
        index = call["index"]
        if index == len(self.calls):
            assert call["type"] == "function" and call["id"].startswith("call_") and call["function"]["name"]
            assert call["id"] not in [other["id"] for other in self.calls]
            self.calls.append(copy.deepcopy(call))
            return
        assert index == len(self.calls) - 1, "a delta of a call that is over"
        assert set(call) == {"index", "function"} and set(call["function"]) == {"arguments"}
        self.calls[index]["function"]["arguments"] += call["function"]["arguments"]

    def whole(self, index, logprobs):
        assert self.role and self.finish_reason, "a choice without an end"
        message = {"role": "assistant", "content": self.content or (None if self.calls else ""), "refusal": None}
        if self.reasoning:
            message.update(reasoning_content=self.reasoning, reasoning=self.reasoning)
        if self.calls:
            message["tool_calls"] = [{key: call[key] for key in ("id", "type", "function")} for call in self.calls]
        return {"index": index, "message": message, "finish_reason": self.finish_reason,
                "logprobs": {"content": self.logprobs, "refusal": None} if logprobs else None}


def chat(events, n=1, usage=False, logprobs=False):
    choices = [ChatChoice() for _ in range(n)]
    chunks, last_usage, report = openai_frames(events, usage)
    for chunk in chunks:
        ChatCompletionChunk.model_validate(chunk, strict=True)
        for choice in chunk["choices"]:
            choices[choice["index"]].take(choice)
    body = {"id": chunks[0]["id"], "object": "chat.completion", "created": chunks[0]["created"],
            "model": chunks[0]["model"], "system_fingerprint": chunks[0]["system_fingerprint"],
            "choices": [choice.whole(index, logprobs) for index, choice in enumerate(choices)], "x_vedette": report}
    if usage:
        body["usage"] = last_usage
    whole_chat(body)
    return body


def completions(events, n=1, usage=False, logprobs=False):
    choices = [{"index": index, "text": "", "finish_reason": None, "logprobs": None} for index in range(n)]
    chunks, last_usage, report = openai_frames(events, usage)
    for chunk in chunks:
        valid = copy.deepcopy(chunk)
        for choice in valid["choices"]:
            # The type knows no chunk before the end; OpenAI's own streams have null there too.
            choice["finish_reason"] = choice["finish_reason"] or "stop"
        whole_completion(valid)
        for choice in chunk["choices"]:
            into = choices[choice["index"]]
            assert into["finish_reason"] is None, "a chunk after finish_reason"
            assert choice["text"] or choice["finish_reason"]
            into["text"] += choice["text"]
            into["finish_reason"] = choice["finish_reason"]
            if choice["logprobs"] is not None:
                assert logprobs
                into["logprobs"] = into["logprobs"] or {key: [] for key in choice["logprobs"]}
                for key, values in choice["logprobs"].items():
                    into["logprobs"][key] += values
    assert all(choice["finish_reason"] for choice in choices), "a choice without an end"
    body = {"id": chunks[0]["id"], "object": "text_completion", "created": chunks[0]["created"],
            "model": chunks[0]["model"], "system_fingerprint": chunks[0]["system_fingerprint"], "choices": choices,
            "x_vedette": report}
    if usage:
        body["usage"] = last_usage
    whole_completion(body)
    return body


# Item type: (delta event, done event, key of the done event's whole text).
ITEM_EVENTS = {
    "message": ("response.output_text.delta", "response.output_text.done", "text"),
    "reasoning": ("response.reasoning_text.delta", "response.reasoning_text.done", "text"),
    "function_call": ("response.function_call_arguments.delta", "response.function_call_arguments.done", "arguments"),
}


class ResponseItem:
    """added -> [part added] -> deltas -> text done -> [part done] -> done; one id throughout."""

    def __init__(self, item, index):
        assert item["status"] == "in_progress" and item.get("content", []) == [] and item.get("arguments", "") == ""
        self.item, self.index, self.text, self.logprobs = item, index, "", []
        self.delta, self.done, self.key = ITEM_EVENTS[item["type"]]
        self.parts = item["type"] != "function_call"
        self.state = "added" if self.parts else "open"

    def check(self, data):
        assert data["item_id"] == self.item["id"] and data["output_index"] == self.index
        assert data.get("content_index", 0) == 0 and ("content_index" in data) == self.parts

    def take(self, name, data):
        self.check(data)
        if name == "response.content_part.added":
            assert self.state == "added" and data["part"]["text"] == ""
            self.state = "open"
        elif name == self.delta:
            assert self.state == "open" and data["delta"]
            self.text += data["delta"]
            self.logprobs += data.get("logprobs", [])
        elif name == self.done:
            assert self.state == "open" and data[self.key] == self.text
            assert data.get("logprobs", []) == self.logprobs
            self.state = "part" if self.parts else "closed"
        elif name == "response.content_part.done":
            assert self.state == "part" and data["part"]["text"] == self.text
            assert data["part"].get("logprobs", []) == self.logprobs
            self.state = "closed"
        else:
            raise AssertionError(f"{name} within an item of type {self.item['type']}")

    def end(self, item):
        assert self.state == "closed" and item["id"] == self.item["id"] and item["type"] == self.item["type"]
        assert (item["arguments"] if not self.parts else item["content"][0]["text"]) == self.text
        assert not self.parts or item["content"][0].get("logprobs", []) == self.logprobs
        assert item["status"] in ("completed", "incomplete")


def responses(events):
    assert events[0][0] == "response.created" and events[1][0] == "response.in_progress"
    assert events[0][1]["response"] == events[1][1]["response"]
    first = events[0][1]["response"]
    assert first["status"] == "in_progress" and first["output"] == []
    output, item = [], None
    for number, (name, data) in enumerate(events):
        RESPONSE_EVENT.validate_python(data, strict=True)
        assert data["type"] == name and data["sequence_number"] == number
        if number < 2 or number == len(events) - 1:
            continue
        if name == "response.output_item.added":
            assert item is None, "an item within an item"
            item = ResponseItem(data["item"], data["output_index"])
            assert item.index == len(output)
        elif name == "response.output_item.done":
            assert data["output_index"] == item.index
            item.end(data["item"])
            output.append(data["item"])
            item = None
        else:
            assert item is not None, f"{name} outside of an item"
            item.take(name, data)
    name, last = events[-1]
    assert item is None, "an item without an end"
    body = last["response"]
    assert body["status"] in ("completed", "incomplete", "cancelled")
    assert name == ("response.completed" if body["status"] == "completed" else "response.incomplete")
    assert body["output"] == output and body["id"] == first["id"]
    assert len({entry["id"] for entry in output}) == len(output)
    whole_response(body)
    return body


DELTA_OF_BLOCK = {"text": {"text_delta"}, "thinking": {"thinking_delta", "signature_delta"},
                  "tool_use": {"input_json_delta"}}


def parse_input(text):
    try:
        value = json.loads(text or "{}")
    except ValueError:
        value = None
    return value if isinstance(value, dict) else {"_malformed_arguments": text}


class MessageBlock:
    def __init__(self, block):
        self.block, self.json, self.signed = copy.deepcopy(block), "", False
        empty = {"text": ("text", ""), "thinking": ("thinking", ""), "tool_use": ("input", {})}[block["type"]]
        assert block[empty[0]] == empty[1], "a block opens empty"

    def take(self, delta):
        assert delta["type"] in DELTA_OF_BLOCK[self.block["type"]], f"{delta['type']} in a {self.block['type']} block"
        if delta["type"] == "signature_delta":
            assert not self.signed and delta["signature"]
            self.signed = True
            self.block["signature"] = delta["signature"]
        elif delta["type"] == "input_json_delta":
            self.json += delta["partial_json"]
        else:
            assert not self.signed and delta[self.block["type"]], "a delta adds text, and none after the signature"
            self.block[self.block["type"]] += delta[self.block["type"]]

    def end(self):
        if self.block["type"] == "tool_use":
            self.block["input"] = parse_input(self.json)
        assert self.block["type"] != "thinking" or self.signed, "a thinking block ends signed"
        return self.block


def messages(events, pings=False):
    """message_start, then blocks of one start and one stop each, message_delta, message_stop. Pings where allowed."""
    if pings:
        events = [event for event in events if event[0] != "ping"]
    body, blocks, block = None, [], None
    for number, (name, data) in enumerate(events):
        MESSAGE_EVENT.validate_python(data, strict=True)
        assert data["type"] == name
        if number == 0:
            assert name == "message_start" and data["message"]["content"] == []
            assert data["message"]["stop_reason"] is None
            whole_message(data["message"])
            body = copy.deepcopy(data["message"])
        elif name == "content_block_start":
            assert block is None and data["index"] == len(blocks)
            block = MessageBlock(data["content_block"])
        elif name == "content_block_delta":
            assert block is not None and data["index"] == len(blocks)
            block.take(data["delta"])
        elif name == "content_block_stop":
            assert block is not None and data["index"] == len(blocks)
            blocks.append(block.end())
            block = None
        elif name == "message_delta":
            assert block is None and number == len(events) - 2, "message_delta comes once, before the last event"
            assert data["usage"]["input_tokens"] == body["usage"]["input_tokens"]
            assert data["usage"]["cache_read_input_tokens"] == body["usage"]["cache_read_input_tokens"]
            body.update(data["delta"], usage=data["usage"], x_vedette=data["x_vedette"])
        else:
            assert name == "message_stop" and number == len(events) - 1, f"{name} at {number} of {len(events)}"
    assert [name for name, _ in events[-2:]] == ["message_delta", "message_stop"]
    assert blocks or body["usage"]["output_tokens"] == 0
    body["content"] = blocks
    whole_message(body)
    return body


def native(events):
    """The pieces of /completion, then the same object as without stream, and no [DONE]."""
    assert all(name == "" and isinstance(data, dict) for name, data in events)
    assert [data["stop"] for _, data in events] == [False] * (len(events) - 1) + [True]
    assert events[-1][1]["content"] == ""
    return {**events[-1][1], "content": "".join(data["content"] for _, data in events),
            "tokens": [token for _, data in events for token in data["tokens"]]}
