"""POST /v1/chat/completions/control closes the reasoning of an answer under way."""

import json
import urllib.request

import pytest

CONTROL = "/v1/chat/completions/control"
TEMPLATE = """{%- for message in messages %}
{{- '<|im_start|>' + message.role + '\\n' + message.content + '<|im_end|>\\n' }}
{%- endfor %}
{{- '<|im_start|>assistant\\n<think>\\n' }}{# </think> #}"""


class Stream:
    """A chat of endless thoughts, read as it comes."""

    def __init__(self, server, key=None, max_tokens=100_000, **fields):
        body = {"messages": [{"role": "user", "content": "Hi"}], "stream": True, "max_tokens": max_tokens,
                "ignore_eos": True, "temperature": 1, "seed": 5, "stream_options": {"include_usage": True}, **fields}
        headers = {"Content-Type": "application/json", **({"Authorization": f"Bearer {key}"} if key else {})}
        self.answer = urllib.request.urlopen(
            urllib.request.Request(server.url + "/v1/chat/completions", json.dumps(body).encode(), headers), timeout=120)
        self.reasoning = self.content = ""
        self.usage = None
        self.id = self.next()["id"]

    def next(self):
        """The next chunk, or None at the end."""
        for line in self.answer:
            data = line.decode().removeprefix("data: ").strip()
            if line.startswith(b"data: ") and data != "[DONE]":
                chunk = json.loads(data)
                for choice in chunk["choices"]:
                    self.reasoning += choice["delta"].get("reasoning_content") or ""
                    self.content += choice["delta"].get("content") or ""
                self.usage = chunk.get("usage") or self.usage
                return chunk
        return None

    def __enter__(self):
        return self

    def __exit__(self, *ignored):
        self.answer.close()


@pytest.fixture
def one_slot(start_server, tiny_path, tmp_path):
    (tmp_path / "template").write_text(TEMPLATE, encoding="utf-8")
    return start_server(tiny_path, parallel=1, template=tmp_path / "template", key="one", key2="two")


def control(server, key="one", **body):
    status, _, answer = server.post(CONTROL, body, headers={"Authorization": f"Bearer {key}"})
    return status, answer


def test_reasoning_ends_when_told(one_slot):
    with Stream(one_slot, key="one", reasoning_control=True) as stream:
        while len(stream.reasoning) < 20:
            assert stream.next()
        assert control(one_slot, id=stream.id, action="reasoning_end") == (200, {"success": True})
        while not stream.content:
            assert stream.next()
        assert "think>" not in stream.reasoning + stream.content
        # Told again, it changes nothing.
        assert control(one_slot, id=stream.id, action="reasoning_end") == (200, {"success": True})

        # Told while it waits for its turn: closed before the first thought.
        with Stream(one_slot, key="one", reasoning_control=True, max_tokens=40) as waiting:
            assert control(one_slot, id=waiting.id, action="reasoning_end") == (200, {"success": True})
            stream.answer.close()
            while waiting.next():
                pass
            assert waiting.reasoning == "" and waiting.content and "think>" not in waiting.content
            assert waiting.usage["completion_tokens"] == 40
        status, answer = control(one_slot, id=waiting.id, action="reasoning_end")
        assert status == 200 and answer["success"] is False and "under way" in answer["message"]


def test_what_cannot_be_told(one_slot):
    with Stream(one_slot, key="one") as stream:
        status, answer = control(one_slot, id=stream.id, action="reasoning_end")
        assert status == 200 and answer["success"] is False and "reasoning_control" in answer["message"]
        # Of another key nothing is known.
        status, answer = control(one_slot, key="two", id=stream.id, action="reasoning_end")
        assert status == 200 and answer["success"] is False and "under way" in answer["message"]
    for body, field in (({"action": "reasoning_end"}, "id"), ({"id": "", "action": "reasoning_end"}, "id"),
                        ({"id": "chatcmpl-1"}, "action"), ({"id": "chatcmpl-1", "action": "stop"}, "action"),
                        ({"id": 1, "action": "reasoning_end"}, "id")):
        status, answer = control(one_slot, **body)
        assert status == 400 and answer["error"]["param"] == field
    status, _, answer = one_slot.post("/v1/chat/completions", {"messages": [{"role": "user", "content": "Hi"}],
                                                              "reasoning_control": 1}, headers={"x-api-key": "one"})
    assert status == 400 and answer["error"]["param"] == "reasoning_control"
