"""One request of each dialect, whole and streamed, on a real model."""

PARIS = [{"role": "user", "content": "What is the capital of France? Answer with one word."}]


def test_health(smollm2):
    status, _, body = smollm2.request("/health")
    assert status == 200 and body["status"] == "ok"


def test_chat_stream_equals_whole(smollm2):
    body = {"messages": PARIS, "max_tokens": 16, "temperature": 0}
    status, _, whole = smollm2.post("/v1/chat/completions", body)
    assert status == 200
    events = smollm2.events("/v1/chat/completions", {**body, "stream": True})
    assert events[-1] == ("", "[DONE]")
    text = "".join(choice["delta"].get("content") or "" for _, chunk in events[:-1] for choice in chunk["choices"])
    assert text == whole["choices"][0]["message"]["content"] != ""


def test_messages_stream_equals_whole(smollm2):
    body = {"model": "any", "messages": PARIS, "max_tokens": 16, "temperature": 0}
    status, _, whole = smollm2.post("/v1/messages", body)
    assert status == 200 and whole["content"][0]["type"] == "text"
    events = smollm2.events("/v1/messages", {**body, "stream": True})
    text = "".join(data["delta"]["text"] for name, data in events if name == "content_block_delta")
    assert text == whole["content"][0]["text"]


def test_responses_stream_equals_whole(smollm2):
    body = {"model": "any", "input": PARIS, "max_output_tokens": 16, "temperature": 0}
    status, _, whole = smollm2.post("/v1/responses", body)
    assert status == 200
    events = smollm2.events("/v1/responses", {**body, "stream": True})
    assert [data["sequence_number"] for _, data in events] == list(range(len(events)))
    text = "".join(data["delta"] for name, data in events if name == "response.output_text.delta")
    assert text == whole["output"][0]["content"][0]["text"]


def test_native_stream_equals_whole(smollm2):
    body = {"prompt": "The capital of France is", "n_predict": 8, "temperature": 0}
    status, _, whole = smollm2.post("/completion", body)
    assert status == 200
    events = smollm2.events("/completion", {**body, "stream": True})
    assert "".join(data["content"] for _, data in events) == whole["content"]


def test_second_turn_reuses_the_first(smollm2):
    first = [{"role": "user", "content": "Tell me a story about a fox. " * 20}]
    _, _, one = smollm2.post("/v1/chat/completions", {"messages": first, "max_tokens": 40, "temperature": 0})
    answer = one["choices"][0]["message"]["content"]
    second = first + [{"role": "assistant", "content": answer}, {"role": "user", "content": "Go on."}]
    _, _, two = smollm2.post("/v1/chat/completions", {"messages": second, "max_tokens": 4, "temperature": 0})
    seen = one["usage"]["prompt_tokens"] + one["usage"]["completion_tokens"]
    assert two["usage"]["prompt_tokens_details"]["cached_tokens"] >= seen - 40
