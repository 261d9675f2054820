"""Reasoning that an Anthropic client asked not to see comes back to the model in the next turn, from the cache."""

import pytest

THOUGHT = "The user wants the file, so I shall read it and count its lines. Grüße."
REPLY = "<think>\n" + THOUGHT + '\n</think>\n\n<tool_call>\n{"name": "read", "arguments": {"path": "a.txt"}}\n</tool_call>'
TOOLS = [{"name": "read", "description": "Reads a file.",
          "input_schema": {"type": "object", "properties": {"path": {"type": "string"}}}}]


def ask(server, messages, stream, display):
    body = {"model": "any", "max_tokens": 100, "messages": messages, "tools": TOOLS,
            "thinking": {"type": "adaptive", "display": display}}
    if not stream:
        status, _, answer = server.post("/v1/messages", body)
        assert status == 200, answer
        return answer["content"], answer["x_vedette"]
    blocks, report = [], None
    for name, data in server.events("/v1/messages", {**body, "stream": True}):
        if name == "content_block_start":
            blocks.append(data["content_block"])
        elif name == "content_block_delta":
            delta = data["delta"]
            if delta["type"] == "signature_delta":
                blocks[-1]["signature"] += delta["signature"]
            elif delta["type"] == "thinking_delta":
                blocks[-1]["thinking"] += delta["thinking"]
        elif name == "message_delta":
            report = data["x_vedette"]
    return blocks, report


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("display", ["omitted", "summarized"])
def test_hidden_thinking_is_not_lost(start_server, tiny_path, stream, display):
    server = start_server(tiny_path, [{"when": "the file", "reply": REPLY}, {"when": "the file", "reply": "Done."}])
    messages = [{"role": "user", "content": "How long is the file?"}]
    blocks, first = ask(server, messages, stream, display)
    assert [block["type"] for block in blocks] == ["thinking", "tool_use"]
    assert blocks[0]["thinking"].strip() == ("" if display == "omitted" else THOUGHT)
    assert THOUGHT not in blocks[0]["signature"]
    call = {"type": "tool_use", "id": blocks[1]["id"], "name": "read", "input": {"path": "a.txt"}}
    result = {"type": "tool_result", "tool_use_id": blocks[1]["id"], "content": "12 lines"}
    messages += [{"role": "assistant", "content": [blocks[0], call]}, {"role": "user", "content": [result]}]
    _, second = ask(server, messages, stream, display)
    seen = first["prompt_tokens"] + first["completion_tokens"]
    assert second["cache"]["matched_tokens"] >= seen - 1, second["cache"]


@pytest.mark.parametrize("signature", ["", "of-another-server", "vedette:~~", "vedette:/w"])
def test_a_signature_of_another_server_is_no_error(tiny, signature):
    turn = [{"type": "thinking", "thinking": "", "signature": signature}, {"type": "text", "text": "Yes."}]
    messages = [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": turn},
                {"role": "user", "content": "Again"}]
    status, _, answer = tiny.post("/v1/messages", {"model": "any", "max_tokens": 1, "messages": messages})
    assert status == 200, answer


def test_a_signature_that_is_no_text_is_named(tiny):
    turn = [{"type": "thinking", "thinking": "", "signature": 7}]
    messages = [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": turn}]
    status, _, answer = tiny.post("/v1/messages", {"model": "any", "max_tokens": 1, "messages": messages})
    assert status == 400 and answer["error"]["param"] == "messages[1].content[0].signature", answer
