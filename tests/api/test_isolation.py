"""Two keys on one server: nothing that one leaves behind is seen by the other."""

import json
import urllib.request

import pytest
from conftest import Server

TEXT = "The harbour of the copper lantern lies north of the winter meadow. " * 8


@pytest.fixture(scope="module")
def server(tiny_path):
    server = Server(tiny_path, id="tiny", ctx_size=2048, key="one", key2="two")
    yield server
    server.stop()


@pytest.fixture(scope="module")
def ask(server):
    return lambda key, path, body=None, **more: server.request(
        path, body, headers={"Authorization": f"Bearer {key}", **more.pop("headers", {})}, **more)


def test_prefixes_are_not_shared(ask):
    body = {"messages": [{"role": "user", "content": TEXT}], "max_tokens": 1}
    cached = lambda key: ask(key, "/v1/chat/completions", body)[2]["x_vedette"]["cached_tokens"]
    assert [cached("one"), cached("two")] == [0, 0]
    assert cached("one") > 32 and cached("two") > 32


def test_a_difference_does_not_quote_the_other_keys_prompt(ask):
    ask("one", "/completion", {"prompt": TEXT + "My secret is 4711.", "n_predict": 1})
    _, _, answer = ask("two", "/completion", {"prompt": TEXT + "My secret is", "n_predict": 1})
    assert "4711" not in json.dumps(answer["x_vedette"])


def test_stored_answers_are_not_shared(ask):
    status, _, mine = ask("one", "/v1/responses", {"input": TEXT, "max_output_tokens": 1, "conversation": "talk"})
    assert status == 200
    for method, path in [("GET", ""), ("DELETE", ""), ("POST", "/cancel")]:
        assert ask("two", f"/v1/responses/{mine['id']}{path}", method=method)[0] == 404
    status, _, answer = ask("two", "/v1/responses", {"input": "Hello", "previous_response_id": mine["id"]})
    assert (status, answer["error"]["param"]) == (404, "previous_response_id")
    _, _, theirs = ask("two", "/v1/responses", {"input": "Hello", "max_output_tokens": 1, "conversation": "talk"})
    assert theirs["usage"]["input_tokens"] < 60
    assert ask("one", f"/v1/responses/{mine['id']}")[0] == 200


def test_an_answer_under_way_is_not_the_other_keys_to_cancel(ask, server):
    body = json.dumps({"input": TEXT, "max_output_tokens": 1500, "ignore_eos": True, "stream": True}).encode()
    headers = {"Authorization": "Bearer one", "Content-Type": "application/json"}
    request = urllib.request.Request(server.url + "/v1/responses", body, headers)
    with urllib.request.urlopen(request, timeout=120) as response:
        response.readline()
        ident = json.loads(response.readline()[6:])["response"]["id"]
        assert ask("two", f"/v1/responses/{ident}/cancel", method="POST")[0] == 404
        assert "cancelled" not in response.read().decode()


def test_streams_are_not_shared(ask):
    body = {"prompt": "Once", "n_predict": 2, "stream": True}
    assert ask("one", "/completion", body, headers={"X-Conversation-Id": "talk"})[0] == 200
    assert ask("two", "/v1/stream?conv_id=talk")[0] == 404
    assert ask("two", "/v1/stream?conv_id=talk", method="DELETE")[0] == 404
    assert ask("two", "/v1/streams/lookup", {"conversation_ids": ["talk"]})[2] == []
    assert ask("one", "/v1/streams/lookup", {"conversation_ids": ["talk"]})[2][0]["is_done"]
    assert ask("one", "/v1/stream?conv_id=talk")[0] == 200


def test_a_wrong_key_is_refused_everywhere(ask):
    for path in ("/v1/models", "/slots", "/props", "/metrics", "/v1/stream?conv_id=talk", "/events", "/admin/status"):
        for key in ("", "three", "one two", "ONE"):
            assert ask(key, path)[0] == 401, path
