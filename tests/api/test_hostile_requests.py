"""Requests that once ended the process, hung a thread or got an answer that was no JSON."""

import json

import pytest

HELLO = [{"role": "user", "content": "Hello"}]


@pytest.mark.parametrize("content", [[], [{"type": "text", "text": ""}], ""])
def test_a_conversation_without_text_is_refused(tiny, content):
    messages = [{"role": "user", "content": content}]
    for path, body, field in [("/v1/messages", {"messages": messages, "max_tokens": 1}, "messages"),
                              ("/v1/chat/completions", {"messages": messages, "max_tokens": 1}, "messages"),
                              ("/v1/responses", {"input": messages}, "")]:
        status, _, answer = tiny.post(path, body)
        assert status == 400 and field in answer["error"]["message"], answer
    assert tiny.request("/health")[0] == 200


def test_an_empty_input_names_its_field(tiny):
    status, _, answer = tiny.post("/v1/responses", {"input": []})
    assert status == 400 and answer["error"]["param"] == "input"


@pytest.mark.parametrize("path, body", [
    ("/v1/chat/completions", b"{\"model\":\xff}"), ("/v1/messages", b"\xe4"), ("/tokenize", b"{\"\xf0\x9f\": 1}"),
    ("/v1/models/%ff%fe", None), ("/v1/nothing/%f0%9f%98", None), ("/v1/responses/%ff", None), ("/rounds?limit=%ff", None),
])
def test_an_error_is_json_whatever_it_quotes(tiny, path, body):
    status, headers, answer = tiny.request(path, body)
    assert 400 <= status < 500 and headers["Content-Type"] == "application/json" and answer["error"]["message"]


def test_an_error_of_the_transport_has_every_field(tiny):
    status, _, answer = tiny.request("/tokenize", b"{}", headers={"Content-Encoding": "br"})
    assert status == 415 and set(answer["error"]) == {"message", "type", "code", "param"}


def test_biases_that_forbid_every_token_name_their_field(tiny):
    grammar = {"grammar": "root ::= \"ab\"", "logit_bias": [["a", False], ["b", False], ["ab", False]]}
    for biases in ({"logit_bias": [[token, False] for token in range(49152)]}, grammar):
        status, _, answer = tiny.post("/completion", {"prompt": "Once", "n_predict": 2, **biases})
        assert status == 400 and answer["error"]["param"] == "logit_bias", answer


@pytest.mark.parametrize("path, rest", [("/v1/chat/completions", {"messages": HELLO}), ("/tokenize", {"content": "a"})])
def test_a_deep_body_is_refused(tiny, path, rest):
    body = json.dumps({**rest, "chat_template_kwargs": 0}).replace(": 0", ": {\"a\": " + "[" * 120 + "]" * 120 + "}")
    status, _, answer = tiny.request(path, body.encode())
    assert status == 400 and "nested deeper" in answer["error"]["message"]


def many(count, entry):
    return [entry(index) for index in range(count)]


# Each took time with the square of its length.
LONG = {
    "billing lines": ("/v1/messages", {"system": "x-anthropic-billing-header: a\n" * 200_000, "messages": HELLO}),
    "token counts": ("/v1/messages", {"system": "<total_tokens>1</total_tokens>" * 200_000, "messages": HELLO}),
    "reminders": ("/v1/messages", {"messages": HELLO + many(20_000, lambda _: {"role": "system", "content": "Be terse."})}),
    "calls": ("/v1/responses", {"input": many(30_000, lambda _: {"type": "function_call", "name": "a"})}),
    "answers": ("/v1/responses", {"input": many(50_000, lambda _: {"role": "assistant", "content": "Yes."})}),
    "tools of messages": ("/v1/messages", {"messages": HELLO, "tools": many(40_000, lambda i: {
        "name": f"t{i}", "input_schema": {}})}),
    "tools of responses": ("/v1/responses", {"input": "Hello", "tools": many(40_000, lambda i: {
        "type": "function", "name": f"t{i}"})}),
    "extra body": ("/v1/chat/completions", {"messages": HELLO, "extra_body": {f"k{i}": i for i in range(60_000)}}),
    "template variables": ("/v1/chat/completions", {
        "messages": HELLO, "chat_template_kwargs": {f"k{i}": i for i in range(60_000)}}),
}


@pytest.mark.parametrize("name", LONG)
def test_long_lists_are_quick(start_server, tiny_path, name):
    server = start_server(tiny_path, ctx_size=512)
    path, body = LONG[name]
    status, _, _ = server.post(path, {**body, "max_tokens": 1, "max_output_tokens": 1}, timeout=20)
    assert status in (200, 400)


def test_items_left_out_are_noted_a_few_times(tiny):
    items = [{"type": "web"}] * 5000 + [{"role": "user", "content": "Hello"}]
    status, _, answer = tiny.post("/v1/responses", {"input": items, "max_output_tokens": 1, "store": False})
    assert status == 200 and 1 <= len(answer["x_vedette"]["warnings"]) <= 40
    assert len(json.dumps(answer["x_vedette"])) < 20_000
