"""The official anthropic client for Python drives every feature, whole and streamed."""

import base64
import time
from concurrent.futures import ThreadPoolExecutor

import anthropic
import pytest
import stream_states
from anthropic import Anthropic

PARIS = [{"role": "user", "content": "What is the capital of France? Answer with one word."}]
WEATHER = {"name": "weather", "description": "The weather of a city.", "input_schema": {
    "type": "object", "properties": {"city": {"type": "string", "enum": ["Oslo", "Lima"]},
                                     "days": {"type": "integer", "minimum": 1, "maximum": 9}},
    "required": ["city", "days"], "additionalProperties": False}}
NOW = {"name": "now", "input_schema": {"type": "object", "properties": {}, "additionalProperties": False}}
TWO_CALLS = ('I look.\n<tool_call>\n{"name": "weather", "arguments": {"city": "Oslo", "days": 2}}\n</tool_call>\n'
             '<tool_call>\n{"name": "now", "arguments": {}}\n</tool_call>')
THINKING = {"type": "enabled", "budget_tokens": 1024}
BLOCK = 32  # tokens of a K/V block: the cache gives whole ones
PIXEL = base64.b64encode(b"\x89PNG\r\n\x1a\n").decode()


def client_of(server):
    return Anthropic(base_url=server.url, api_key="any", max_retries=0, _strict_response_validation=True)


@pytest.fixture(scope="module")
def real(smollm2):
    return client_of(smollm2)


@pytest.fixture(scope="module")
def client(scripted):
    return client_of(scripted)


def user(*texts):
    return [{"role": "user", "content": text} for text in texts]


GREEDY = {"temperature": 0}  # fields that this version of the client has no parameters for


def ask(client, messages, **more):
    return client.messages.create(model="any", messages=messages, **{"max_tokens": 200, **more})


def blocks(message):
    return [(block.type, getattr(block, block.type, None) if block.type != "tool_use" else (block.name, block.input))
            for block in message.content]


def prompt_tokens(message):
    return message.usage.input_tokens + message.usage.cache_read_input_tokens


def test_messages(real):
    whole = ask(real, PARIS, extra_body=GREEDY, max_tokens=16, system="You answer in one word.")
    assert whole.role == "assistant" and "Paris" in whole.content[0].text
    assert whole.stop_reason in ("end_turn", "max_tokens") and whole.stop_sequence is None
    assert ask(real, PARIS, max_tokens=1).stop_reason == "max_tokens"


def test_stream_helper(real):
    more = dict(model="any", messages=PARIS, max_tokens=16, extra_body=GREEDY)
    with real.messages.stream(**more) as stream:
        text = "".join(stream.text_stream)
        final = stream.get_final_message()
    assert text == final.content[0].text == real.messages.create(**more).content[0].text
    assert final.usage.output_tokens > 0


def test_no_tokens_warm_the_cache(client, scripted):
    """max_tokens 0 computes the prompt, so that the next request finds it."""
    messages = user(scripted.say("Yes.") + " word" * 64)
    warmed = ask(client, messages, max_tokens=0)
    assert warmed.content == [] and warmed.stop_reason == "max_tokens" and warmed.usage.output_tokens == 0
    answer = ask(client, messages)
    assert blocks(answer) == [("text", "Yes.")]
    assert answer.usage.cache_read_input_tokens >= prompt_tokens(warmed) - BLOCK
    streamed = stream_states.messages(scripted.events(
        "/v1/messages", {"model": "any", "messages": messages, "max_tokens": 0, "stream": True}))
    assert streamed["content"] == [] and streamed["stop_reason"] == "max_tokens"
    with client.messages.stream(model="any", messages=messages, max_tokens=0) as stream:
        assert stream.get_final_message().content == []


def test_end_of_turn(client, scripted):
    message = ask(client, user(scripted.say("Yes.")))
    assert blocks(message) == [("text", "Yes.")] and message.stop_reason == "end_turn"


@pytest.mark.parametrize("stream", [False, True])
def test_stop_sequence_is_reported(client, scripted, stream):
    more = dict(model="any", max_tokens=50, messages=user(scripted.say("one two three")), stop_sequences=["no", " three"])
    if stream:
        with client.messages.stream(**more) as opened:
            message = opened.get_final_message()
    else:
        message = client.messages.create(**more)
    assert (message.stop_reason, message.stop_sequence) == ("stop_sequence", " three")
    assert blocks(message) == [("text", "one two")]


@pytest.mark.parametrize("stream", [False, True])
def test_stop_sequence_within_thinking(client, scripted, stream):
    more = dict(model="any", max_tokens=50, messages=user(scripted.say("<think>\none STOP two</think>\n\nHi")),
                stop_sequences=["STOP"], thinking=THINKING)
    if stream:
        with client.messages.stream(**more) as opened:
            message = opened.get_final_message()
    else:
        message = client.messages.create(**more)
    assert (message.stop_reason, message.stop_sequence) == ("stop_sequence", "STOP")
    assert [block.type for block in message.content] == ["thinking"]


def test_tools(client, scripted):
    text = scripted.say(TWO_CALLS)
    whole = ask(client, user(text), tools=[WEATHER, NOW])
    expected = [("text", "I look."), ("tool_use", ("weather", {"city": "Oslo", "days": 2})), ("tool_use", ("now", {}))]
    assert blocks(whole) == expected and whole.stop_reason == "tool_use"
    with client.messages.stream(model="any", max_tokens=200, messages=user(text), tools=[WEATHER, NOW]) as stream:
        kinds = [event.type for event in stream]
        assert blocks(stream.get_final_message()) == expected
    assert kinds.count("content_block_stop") == 3 and "input_json" in kinds


def test_tool_round_trip(client, scripted):
    messages = user(scripted.say(TWO_CALLS))
    first = ask(client, messages, tools=[WEATHER, NOW])
    messages.append({"role": "assistant", "content": first.content})
    results = [{"type": "tool_result", "tool_use_id": block.id, "content": [{"type": "text", "text": "wet"}],
                "is_error": False} for block in first.content if block.type == "tool_use"]
    messages.append({"role": "user", "content": results + [{"type": "text", "text": scripted.say("It rains.")}]})
    second = ask(client, messages, tools=[WEATHER, NOW])
    assert blocks(second) == [("text", "It rains.")]
    seen = prompt_tokens(first) + first.usage.output_tokens
    assert second.usage.cache_read_input_tokens > seen - 1 - BLOCK
    assert second.usage.input_tokens == prompt_tokens(second) - second.usage.cache_read_input_tokens


@pytest.mark.parametrize("choice, names", [({"type": "any", "disable_parallel_tool_use": True}, {"weather", "now"}),
                                           ({"type": "tool", "name": "weather", "disable_parallel_tool_use": True},
                                            {"weather"})])
@pytest.mark.parametrize("stream", [False, True])
def test_tool_choice_forces_a_call(client, choice, names, stream):
    more = dict(model="any", max_tokens=200, messages=PARIS, tools=[WEATHER, NOW], tool_choice=choice,
                thinking={"type": "disabled"}, extra_body={"seed": 4, "temperature": 1})
    if stream:
        with client.messages.stream(**more) as opened:
            message = opened.get_final_message()
    else:
        message = client.messages.create(**more)
    assert message.stop_reason == "tool_use"
    assert {block.name for block in message.content} <= names
    for block in message.content:
        assert block.input == {} if block.name == "now" else \
            block.input["city"] in ("Oslo", "Lima") and 1 <= block.input["days"] <= 9


def test_tool_choice_none(client, scripted):
    message = ask(client, user(scripted.say(TWO_CALLS)), tools=[WEATHER, NOW], tool_choice={"type": "none"})
    assert blocks(message) == [("text", TWO_CALLS)] and message.stop_reason == "end_turn"


def test_no_parallel_tools(client):
    message = ask(client, PARIS, tools=[WEATHER, NOW], extra_body={"temperature": 1}, thinking={"type": "disabled"},
                  tool_choice={"type": "any", "disable_parallel_tool_use": True})
    assert len(message.content) == 1


def test_thinking(client, scripted):
    text = scripted.say("<think>\nThey greet.\n</think>\n\nHello!")
    whole = ask(client, user(text), thinking=THINKING)
    assert blocks(whole) == [("thinking", "They greet."), ("text", "Hello!")] and whole.content[0].signature
    with client.messages.stream(model="any", max_tokens=200, messages=user(text), thinking=THINKING) as stream:
        kinds = [event.type for event in stream]
        final = stream.get_final_message()
    assert blocks(final) == blocks(whole) and final.content[0].signature
    assert kinds.count("signature") == 1 and kinds.count("thinking") > 1
    off = ask(client, user(scripted.say("Hello!")), thinking={"type": "disabled"})
    assert blocks(off) == [("text", "Hello!")]


def test_thinking_disabled_drops_stray_reasoning(client, scripted):
    message = ask(client, user(scripted.say("<think>\nStill.</think>\n\nHello!")), thinking={"type": "disabled"})
    assert [block.type for block in message.content] == ["text"]
    assert "Still" not in message.content[0].text and "Hello!" in message.content[0].text


def test_thinking_goes_back(client, scripted):
    messages = user(scripted.say("<think>\nThey greet, " + "and greet, " * 40 + ".\n</think>\n\nHello!"))
    first = ask(client, messages, thinking=THINKING)
    messages += [{"role": "assistant", "content": first.content}] + user(scripted.say("Bye."))
    second = ask(client, messages, thinking=THINKING)
    assert second.usage.cache_read_input_tokens > prompt_tokens(first) + first.usage.output_tokens - 1 - BLOCK


def test_second_turn_from_the_cache(real):
    messages = user("Tell me a story about a lonely fox in the snow. " * 20)
    first = ask(real, messages, max_tokens=20, extra_body=GREEDY)
    messages += [{"role": "assistant", "content": first.content}] + user("Go on.")
    second = ask(real, messages, max_tokens=4, extra_body=GREEDY)
    assert second.usage.cache_read_input_tokens > prompt_tokens(first) - BLOCK


def test_count_tokens_is_exact(client, scripted):
    messages = user(scripted.say("Yes.")) + [{"role": "assistant", "content": "Hm."}] + user("And?")
    more = dict(model="any", messages=messages, tools=[WEATHER, NOW], system=[{"type": "text", "text": "Be brief."}],
                thinking=THINKING)
    counted = client.messages.count_tokens(**more).input_tokens
    assert counted == prompt_tokens(client.messages.create(max_tokens=10, **more))
    assert client.messages.count_tokens(**{**more, "tools": []}).input_tokens < counted


def test_system_turns_inside_messages(client, scripted):
    messages = user("Hi") + [{"role": "assistant", "content": "Hello."}] + user(scripted.say("Done."))
    plain = client.messages.count_tokens(model="any", messages=messages).input_tokens
    messages.append({"role": "system", "content": [{"type": "text", "text": "The user opened a file."}]})
    message = ask(client, messages)
    assert blocks(message) == [("text", "Done.")] and prompt_tokens(message) > plain
    assert blocks(ask(client, [{"role": "system", "content": "First."}] + messages)) == [("text", "Done.")]


def test_prefill(client, scripted):
    message = ask(client, user(scripted.say("four")) + [{"role": "assistant", "content": "Two and two is"}])
    assert blocks(message) == [("text", "four")]


@pytest.mark.parametrize("where", ["message", "tool_result"])
def test_images_are_refused(client, where):
    image = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PIXEL}}
    if where == "message":
        messages = [{"role": "user", "content": [image, {"type": "text", "text": "What is it?"}]}]
    else:
        messages = user("Look.") + [
            {"role": "assistant", "content": [{"type": "tool_use", "id": "toolu_1", "name": "now", "input": {}}]},
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "toolu_1", "content": [image]}]}]
    with pytest.raises(anthropic.BadRequestError) as caught:
        ask(client, messages, tools=[NOW])
    assert caught.value.body["error"]["type"] == "invalid_request_error"
    assert "image" in caught.value.message and caught.value.body["error"]["param"].startswith("messages[")


def test_output_format(real):
    schema = {"type": "object", "properties": {"city": {"enum": ["Paris", "Rome"]}}, "required": ["city"],
              "additionalProperties": False}
    message = ask(real, PARIS, max_tokens=40, extra_body=GREEDY,
                  output_config={"format": {"type": "json_schema", "schema": schema}})
    assert message.content[0].text.replace(" ", "").replace("\n", "") in ('{"city":"Paris"}', '{"city":"Rome"}')


def test_errors(client):
    with pytest.raises(anthropic.BadRequestError) as caught:
        ask(client, [])
    assert caught.value.body["error"]["param"] == "messages" and caught.value.body["type"] == "error"
    with pytest.raises(anthropic.BadRequestError):
        ask(client, PARIS, extra_body={"temperature": -1})


def test_models(client):
    assert [model.id for model in client.models.list()] == ["tiny"]


def test_keep_alive(start_server, tiny_path):
    """Pings come while nothing else does, also before message_start, as a request waits for its turn."""
    server = start_server(tiny_path, ping_ms=1, parallel=1)
    body = {"model": "any", "max_tokens": 5, "messages": user("Hi"), "stream": True}
    with client_of(server).messages.stream(model="any", max_tokens=100_000, messages=user("Hi"),
                                           extra_body={"ignore_eos": True}) as first, ThreadPoolExecutor(1) as pool:
        next(iter(first))
        second = pool.submit(server.events, "/v1/messages", body)
        time.sleep(1)
        first.close()
        events = second.result()
    assert events[0][0] == "ping"
    assert stream_states.messages(events, pings=True)["usage"]["output_tokens"] <= 5
