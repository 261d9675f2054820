"""Settings that change while the server runs, resumable streams, sleeping and loading."""

import re
import time

PROMPT = {"prompt": "The quick brown fox", "n_predict": 4}


def test_settings_change_the_defaults_of_requests(tiny):
    status, _, body = tiny.request("/v1/settings")
    assert status == 200
    names = {entry["name"] for entry in body["schema"]}
    assert names == set(body["values"])
    before = body["values"]
    try:
        status, _, body = tiny.request("/v1/settings", {"temperature": 0, "max_tokens": 3}, method="PATCH")
        assert status == 200 and sorted(body["applied"]) == ["max_tokens", "temperature"] and body["rejected"] == {}
        _, _, answer = tiny.post("/v1/completions", {"prompt": "The quick brown fox", "ignore_eos": True})
        assert answer["usage"]["completion_tokens"] == 3
        _, _, again = tiny.post("/v1/completions", {"prompt": "The quick brown fox", "ignore_eos": True})
        assert again["choices"][0]["text"] == answer["choices"][0]["text"]  # greedy
    finally:
        _, _, body = tiny.request("/v1/settings", {"op": "replace", "values": {}}, method="PATCH")
        assert body["values"] == before


def test_bad_settings_are_rejected_by_name_and_good_ones_applied(tiny):
    _, _, body = tiny.request("/v1/settings", {"temperature": "hot", "top_p": 0.5, "port": 1}, method="PATCH")
    assert body["applied"] == ["top_p"] and set(body["rejected"]) == {"temperature", "port"}
    assert "temperature" in body["rejected"]["temperature"]
    _, _, body = tiny.request("/v1/settings", {"top_p": None}, method="PATCH")
    assert body["applied"] == ["top_p"]
    status, _, body = tiny.request("/v1/settings", {"op": "melt", "values": {}}, method="PATCH")
    assert status == 400 and body["error"]["param"] == "op"


def test_a_language_can_be_ruled_out_by_request_and_by_setting(tiny):
    body = {"prompt": "The quick brown fox", "n_predict": 24, "temperature": 1, "seed": 3, "ignore_eos": True}

    def letters(**fields):
        answer = tiny.post("/completion", {**body, **fields})[2]["content"]
        events = tiny.events("/completion", {**body, **fields, "stream": True})
        assert "".join(data["content"] for _, data in events) == answer
        return re.findall("[A-Za-z]", answer)

    assert letters()
    assert not letters(language_bias={"en": False}) and not letters(language_bias="latn=-inf")
    try:
        _, _, change = tiny.request("/v1/settings", {"language_bias": {"en": "-inf", "ja": -1.5}}, method="PATCH")
        assert change["applied"] == ["language_bias"]
        assert change["values"]["language_bias"] == {"en": "-inf", "ja": -1.5}
        assert not letters()
        assert letters(language_bias={})
    finally:
        tiny.request("/v1/settings", {"language_bias": None}, method="PATCH")
    for wrong in ({"xx": 1}, {"ja": "much"}, {"ja": 1e9}, {"ja": [1]}, "ja", 7):
        status, _, answer = tiny.post("/completion", {**body, "language_bias": wrong})
        assert status == 400 and answer["error"]["message"].startswith("language_bias"), answer
    assert tiny.post("/completion", {**body, "language_bias": {"ja": "much"}})[2]["error"]["param"] == "language_bias.ja"


def test_a_language_bias_that_forbade_all_was_the_servers_fault(tiny):
    for path in ("/completion", "/v1/completions"):
        status, _, answer = tiny.post(path, {"prompt": "a", "max_tokens": 4, "grammar": "root ::= [a-z]+",
                                             "language_bias": {"latn": False}})
        assert status == 400 and answer["error"]["param"] == "language_bias", answer


def test_a_stream_can_be_read_again_from_any_byte(tiny):
    events = tiny.events("/completion", {**PROMPT, "stream": True, "n_predict": 20, "ignore_eos": True},
                         headers={"X-Conversation-Id": "talk-1"})
    status, _, whole = tiny.request("/v1/stream?conv_id=talk-1")
    assert status == 200 and len(whole) > 100
    _, _, rest = tiny.request("/v1/stream?conv_id=talk-1&from=57")
    assert rest == whole[57:]
    status, _, views = tiny.request("/v1/streams/lookup", {"conversation_ids": ["talk-1", "unknown"]})
    assert status == 200 and [view["conversation_id"] for view in views] == ["talk-1"]
    assert views[0]["is_done"] and views[0]["total_bytes"] == len(whole.encode())
    assert events[-1][1]["stop"] is True
    assert tiny.request("/v1/stream?conv_id=talk-1&from=999999")[0] == 400
    assert tiny.request("/v1/stream?conv_id=talk-1", method="DELETE")[0] == 204
    assert tiny.request("/v1/stream?conv_id=talk-1")[0] == 404


def test_unloading_answers_503_and_loading_is_refused_without_a_resolver(start_server, tiny_path):
    server = start_server(tiny_path)
    assert server.post("/completion", PROMPT)[0] == 200
    status, _, body = server.post("/admin/unload", {})
    assert status == 200 and body == {"success": True}
    status, headers, body = server.post("/v1/chat/completions", {"messages": [{"role": "user", "content": "Hi"}]})
    assert status == 503 and "/admin/load" in body["error"]["message"] and headers["Retry-After"]
    assert server.request("/health")[0] == 503
    assert server.request("/")[0] == 200


def test_metrics_have_the_families_of_llama_server(tiny):
    tiny.post("/completion", PROMPT)
    status, headers, text = tiny.request("/metrics")
    assert status == 200 and int(headers["Process-Start-Time-Unix"]) <= time.time()
    for name in ("prompt_tokens_total", "tokens_predicted_total", "prompt_tokens_seconds", "predicted_tokens_seconds",
                 "requests_processing", "requests_deferred", "n_decode_total", "n_busy_slots_per_decode"):
        assert f"\nllamacpp:{name} " in text, name
    assert "\nvedette_requests_total " in text


def test_infill_can_be_named_in_the_order_of_samplers(tiny):
    """Random weights are sure of nothing, so the link leaves the end alone."""
    body = {**PROMPT, "temperature": 1, "seed": 1, "n_predict": 8, "samplers": ["top_k", "infill", "temperature"]}
    status, _, answer = tiny.post("/completion", body)
    assert status == 200 and answer["stop_type"] == "eos" and answer["content"] == ""
    assert tiny.post("/completion", {**body, "samplers": ["outfill"]})[0] == 400
