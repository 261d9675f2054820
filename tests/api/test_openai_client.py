"""The official openai client for Python drives every feature, whole and streamed."""

import json
import math
import urllib.request

import openai
import pydantic
import pytest
import stream_states
from conftest import parse_events
from openai import OpenAI

PARIS = [{"role": "user", "content": "What is the capital of France? Answer with one word."}]
WEATHER = {"type": "function", "function": {
    "name": "weather", "description": "The weather of a city.", "strict": True,
    "parameters": {"type": "object", "properties": {"city": {"type": "string", "enum": ["Oslo", "Lima"]},
                                                    "days": {"type": "integer", "minimum": 1, "maximum": 9}},
                   "required": ["city", "days"], "additionalProperties": False}}}
NOW = {"type": "function", "function": {
    "name": "now", "strict": True,
    "parameters": {"type": "object", "properties": {}, "required": [], "additionalProperties": False}}}
FLAT_WEATHER, FLAT_NOW = ({"type": "function", **tool["function"]} for tool in (WEATHER, NOW))
TWO_CALLS = ('I look.\n<tool_call>\n{"name": "weather", "arguments": {"city": "Oslo", "days": 2}}\n</tool_call>\n'
             '<tool_call>\n{"name": "now", "arguments": {}}\n</tool_call>')
THOUGHT = "<think>\nHm, a greeting.\n</think>\n\nHello!"


class Answer(pydantic.BaseModel):
    city: str
    people: int


def client_of(server):
    return OpenAI(base_url=server.url + "/v1", api_key="any", max_retries=0, _strict_response_validation=True)


@pytest.fixture(scope="module")
def real(smollm2):
    return client_of(smollm2)


@pytest.fixture(scope="module")
def tiny_client(scripted):
    return client_of(scripted)


def user(text):
    return [{"role": "user", "content": text}]


def chat(client, messages=PARIS, **more):
    more = {"max_tokens": 8, "temperature": 0, **more}
    return client.chat.completions.create(model="any", messages=messages, **more)


def streamed_text(chunks, index=0):
    return "".join(choice.delta.content or "" for chunk in chunks for choice in chunk.choices if choice.index == index)


# ---- models


def test_models(real):
    models = real.models.list().data
    assert [model.id for model in models] == ["SmolLM2"]
    assert real.models.retrieve("SmolLM2").id == "SmolLM2"
    with pytest.raises(openai.NotFoundError):
        real.models.retrieve("another")


# ---- chat completions


def test_chat(real):
    whole = chat(real)
    assert "Paris" in whole.choices[0].message.content
    assert whole.choices[0].finish_reason in ("stop", "length")
    assert whole.usage.total_tokens == whole.usage.prompt_tokens + whole.usage.completion_tokens
    assert whole.x_vedette["prompt_tokens"] == whole.usage.prompt_tokens
    assert streamed_text(list(chat(real, stream=True))) == whole.choices[0].message.content


def test_chat_length(real):
    assert chat(real, max_tokens=1).choices[0].finish_reason == "length"
    assert chat(real, max_tokens=openai.omit, max_completion_tokens=1).usage.completion_tokens == 1


def test_chat_choices(real, smollm2):
    body = {"messages": PARIS, "n": 3, "seed": 7, "temperature": 1.5, "max_tokens": 6}
    whole = chat(real, n=3, seed=7, temperature=1.5, max_tokens=6)
    texts = [choice.message.content for choice in whole.choices]
    assert [choice.index for choice in whole.choices] == [0, 1, 2] and len(set(texts)) > 1
    streamed = stream_states.chat(smollm2.events("/v1/chat/completions", {**body, "stream": True}), n=3)
    assert [choice["message"]["content"] for choice in streamed["choices"]] == texts
    assert whole.usage.completion_tokens <= 18


def test_chat_seed(real):
    texts = [chat(real, temperature=1.5, seed=seed, max_tokens=12).choices[0].message.content for seed in (5, 5, 6)]
    assert texts[0] == texts[1] != texts[2]


def test_chat_logprobs(real, smollm2):
    whole = chat(real, logprobs=True, top_logprobs=3)
    tokens = whole.choices[0].logprobs.content
    assert len(tokens) == whole.usage.completion_tokens
    for token in tokens:
        assert bytes(token.bytes).decode() == token.token and token.logprob <= 0
        top = [other.logprob for other in token.top_logprobs]
        assert len(top) == 3 and top == sorted(top, reverse=True)
        assert token.logprob == top[0], "greedy takes the most likely"
    body = {"messages": PARIS, "max_tokens": 8, "temperature": 0, "logprobs": True, "top_logprobs": 3, "stream": True}
    streamed = stream_states.chat(smollm2.events("/v1/chat/completions", body), logprobs=True)
    assert streamed["choices"][0]["logprobs"] == whole.choices[0].logprobs.model_dump()
    with pytest.raises(openai.BadRequestError) as caught:
        chat(real, top_logprobs=3)
    assert caught.value.param == "top_logprobs"
    assert chat(real).choices[0].logprobs is None


def test_chat_stop(tiny_client, scripted):
    text = scripted.say("one two three four")
    for stop in ("three", ["never", "three"]):
        whole = chat(tiny_client, user(text), max_tokens=50, stop=stop)
        assert whole.choices[0].message.content == "one two " and whole.choices[0].finish_reason == "stop"
        assert streamed_text(list(chat(tiny_client, user(text), max_tokens=50, stop=stop, stream=True))) == "one two "


def test_chat_usage_in_stream(real):
    chunks = list(chat(real, stream=True, stream_options={"include_usage": True}))
    assert all(chunk.usage is None for chunk in chunks[:-1])
    assert chunks[-1].choices == [] and chunks[-1].usage.completion_tokens > 0
    assert all(chunk.usage is None for chunk in chat(real, stream=True))


def test_chat_logit_bias(real, smollm2):
    _, _, ids = smollm2.post("/tokenize", {"content": "zebra"})
    token = ids["tokens"][0]
    assert chat(real, logit_bias={str(token): 100}, max_tokens=1).choices[0].message.content == "z" or \
        "zebra".startswith(chat(real, logit_bias={str(token): 100}, max_tokens=1).choices[0].message.content)
    free = chat(real, max_tokens=1, logprobs=True).choices[0].logprobs.content[0]
    _, _, first = smollm2.post("/tokenize", {"content": free.token})
    barred = chat(real, max_tokens=1, logit_bias={str(first["tokens"][0]): -100}).choices[0].message.content
    assert barred != free.token
    with pytest.raises(openai.BadRequestError):
        chat(real, logit_bias={"99999999": 1})


def test_chat_prefill(real, scripted):
    begun = PARIS + [{"role": "assistant", "content": "The capital city is called"}]
    text = chat(real, begun, max_tokens=4).choices[0].message.content
    assert "Paris" in text and not text.startswith("The capital")
    _, _, prompt = scripted.post("/apply-template", {"messages": user("Hi") + [{"role": "assistant", "content": "Well, "}]})
    assert prompt["prompt"].endswith("Well, ")


def test_developer_role(scripted):
    prompts = [scripted.post("/apply-template", {"messages": [{"role": role, "content": "Be brief."}] + user("Hi")})[2]
               for role in ("system", "developer")]
    assert prompts[0] == prompts[1] and "Be brief." in prompts[0]["prompt"]


def test_reasoning(tiny_client, scripted):
    text = scripted.say(THOUGHT)
    message = chat(tiny_client, user(text), max_tokens=50).choices[0].message
    assert message.reasoning_content == message.reasoning == "Hm, a greeting." and message.content == "Hello!"
    chunks = list(chat(tiny_client, user(text), max_tokens=50, stream=True))
    deltas = [choice.delta for chunk in chunks for choice in chunk.choices]
    assert "".join(getattr(delta, "reasoning_content", None) or "" for delta in deltas) == "Hm, a greeting."
    assert streamed_text(chunks) == "Hello!"
    whole = chat(tiny_client, user(text), max_tokens=50)
    assert 0 < whole.usage.completion_tokens_details.reasoning_tokens < whole.usage.completion_tokens


@pytest.mark.parametrize("effort", ["none", "minimal", "low", "medium", "high", "xhigh"])
def test_reasoning_effort(tiny_client, scripted, effort):
    """Each effort is taken; `none` closes the block in the prompt, so that the answer is content alone."""
    text = scripted.say("Hello!" if effort == "none" else THOUGHT)
    message = chat(tiny_client, user(text), max_tokens=50, reasoning_effort=effort).choices[0].message
    assert message.content == "Hello!"
    assert (getattr(message, "reasoning_content", None) is None) == (effort == "none")


def test_reasoning_effort_unknown(tiny_client):
    with pytest.raises(openai.BadRequestError) as caught:
        chat(tiny_client, reasoning_effort="hardest")
    assert caught.value.param == "reasoning_effort"


def test_json_object(tiny_client):
    text = chat(tiny_client, response_format={"type": "json_object"}, temperature=1, seed=1, max_tokens=60)
    assert text.choices[0].message.content.lstrip().startswith("{")


def test_json_schema(real):
    schema = {"type": "object", "properties": {"city": {"enum": ["Paris", "Rome"]}, "sure": {"type": "boolean"}},
              "required": ["city", "sure"], "additionalProperties": False}
    given = {"type": "json_schema", "json_schema": {"name": "answer", "strict": True, "schema": schema}}
    whole = chat(real, response_format=given, max_tokens=40)
    value = json.loads(whole.choices[0].message.content)
    assert value["city"] in ("Paris", "Rome") and isinstance(value["sure"], bool) and len(value) == 2
    assert streamed_text(list(chat(real, response_format=given, max_tokens=40, stream=True))) == \
        whole.choices[0].message.content


def test_parse(real):
    whole = real.chat.completions.parse(model="any", messages=PARIS, response_format=Answer, max_tokens=60,
                                        temperature=0)
    assert isinstance(whole.choices[0].message.parsed, Answer)


@pytest.mark.parametrize("broken", [{"type": "yaml"}, {"type": "json_schema"}, {"type": "json_schema", "json_schema": {}},
                                    {"type": "json_schema", "json_schema": {"name": "a", "schema": {"type": "strin"}}}])
def test_response_format_that_cannot_be_enforced(tiny_client, broken):
    with pytest.raises(openai.BadRequestError) as caught:
        chat(tiny_client, response_format=broken)
    assert caught.value.param.startswith("response_format")


def test_two_calls(tiny_client, scripted):
    text = scripted.say(TWO_CALLS)
    choice = chat(tiny_client, user(text), tools=[WEATHER, NOW], max_tokens=200).choices[0]
    assert choice.finish_reason == "tool_calls" and choice.message.content == "I look."
    calls = choice.message.tool_calls
    assert [(call.type, call.function.name) for call in calls] == [("function", "weather"), ("function", "now")]
    assert json.loads(calls[0].function.arguments) == {"city": "Oslo", "days": 2}
    assert calls[0].id != calls[1].id


def test_tool_round_trip(tiny_client, scripted):
    messages = user(scripted.say(TWO_CALLS))
    answer = chat(tiny_client, messages, tools=[WEATHER, NOW], max_tokens=200).choices[0].message
    messages.append(answer)
    for call in answer.tool_calls:
        messages.append({"role": "tool", "tool_call_id": call.id, "content": f"result of {call.function.name}"})
    messages += user(scripted.say("It rains."))
    whole = chat(tiny_client, messages, tools=[WEATHER, NOW])
    assert whole.choices[0].message.content == "It rains." and whole.choices[0].finish_reason == "stop"
    assert whole.usage.prompt_tokens_details.cached_tokens > 0


def test_tool_choice_none(tiny_client, scripted):
    text = scripted.say(TWO_CALLS)
    choice = chat(tiny_client, user(text), tools=[WEATHER, NOW], tool_choice="none", max_tokens=200).choices[0]
    assert choice.message.tool_calls is None and choice.message.content == TWO_CALLS


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("choice", ["required", {"type": "function", "function": {"name": "weather"}}])
def test_tool_choice_forces_a_call(tiny_client, scripted, choice, stream):
    """Random weights at temperature 1 give a call that the schema allows."""
    more = dict(tools=[WEATHER, NOW], tool_choice=choice, temperature=1, seed=3, max_tokens=200, reasoning_effort="none",
                parallel_tool_calls=False)
    if stream:
        body = {"messages": PARIS, "stream": True, **more}
        message = stream_states.chat(scripted.events("/v1/chat/completions", body))["choices"][0]
        assert message["finish_reason"] == "tool_calls"
        calls = [(call["function"]["name"], call["function"]["arguments"]) for call in message["message"]["tool_calls"]]
    else:
        answer = chat(tiny_client, **more).choices[0]
        assert answer.finish_reason == "tool_calls"
        calls = [(call.function.name, call.function.arguments) for call in answer.message.tool_calls]
    assert calls
    for name, arguments in calls:
        value = json.loads(arguments)
        assert name == "weather" or choice == "required"
        assert value == {} if name == "now" else value["city"] in ("Oslo", "Lima") and 1 <= value["days"] <= 9


def test_tool_choice_one_call_at_most(tiny_client):
    for seed in range(3):
        message = chat(tiny_client, tools=[WEATHER, NOW], tool_choice="required", parallel_tool_calls=False,
                       temperature=1, seed=seed, max_tokens=200, reasoning_effort="none").choices[0].message
        assert len(message.tool_calls) == 1


@pytest.mark.parametrize("wrong", [dict(tool_choice="required"),
                                   dict(tools=[NOW], tool_choice={"type": "function", "function": {"name": "nope"}})])
def test_tool_choice_that_names_no_tool(tiny_client, wrong):
    with pytest.raises(openai.BadRequestError) as caught:
        chat(tiny_client, **wrong)
    assert caught.value.param == "tool_choice"


def test_stream_helper(tiny_client, scripted):
    text = scripted.say(TWO_CALLS)
    with tiny_client.chat.completions.stream(model="any", messages=user(text), tools=[WEATHER, NOW],
                                             max_tokens=200) as stream:
        events = list(stream)
        final = stream.get_final_completion()
    done = [event for event in events if event.type == "tool_calls.function.arguments.done"]
    assert [(event.name, event.index) for event in done] == [("weather", 0), ("now", 1)]
    calls = final.choices[0].message.tool_calls
    assert calls[0].function.parsed_arguments == {"city": "Oslo", "days": 2}
    assert final.choices[0].message.content == "I look." and final.choices[0].finish_reason == "tool_calls"


def test_stream_helper_parses(tiny_client, scripted):
    text = scripted.say('{"city": "Paris", "people": 2100000}')
    with tiny_client.chat.completions.stream(model="any", messages=user(text), response_format=Answer,
                                             max_tokens=60) as stream:
        final = stream.get_final_completion()
    assert final.choices[0].message.parsed == Answer(city="Paris", people=2100000)


def test_extra_body(tiny_client, scripted):
    """Fields beyond OpenAI's arrive flattened by the client."""
    text = scripted.say("Hello!")
    whole = chat(tiny_client, user(text), extra_body={"chat_template_kwargs": {"enable_thinking": False}, "top_k": 5,
                                                      "unheard_of": 1})
    assert whole.choices[0].message.content == "Hello!" and whole.x_vedette["ignored_fields"] == ["unheard_of"]


def test_errors_name_the_field(real):
    with pytest.raises(openai.BadRequestError) as caught:
        chat(real, temperature=-3)
    assert caught.value.param == "temperature" and caught.value.type == "invalid_request_error"
    with pytest.raises(openai.NotFoundError):
        real.get("/nothing", cast_to=object)


# ---- completions


def complete(client, prompt, **more):
    return client.completions.create(model="any", prompt=prompt, **{"max_tokens": 4, "temperature": 0, **more})


def test_completions(real):
    whole = complete(real, "The capital of France is")
    assert whole.object == "text_completion" and whole.usage.completion_tokens == 4
    with real.completions.with_streaming_response.create(model="any", prompt="The capital of France is", max_tokens=4,
                                                         temperature=0, stream=True) as raw:
        text = "".join(choice["text"] for line in raw.iter_lines() if line.startswith("data: {")
                       for choice in json.loads(line[6:])["choices"])
    assert text == whole.choices[0].text


def test_completions_prompts(real, smollm2):
    texts = ["The capital of France is", "One, two, three,"]
    alone = [complete(real, text).choices[0].text for text in texts]
    both = complete(real, texts)
    assert [choice.text for choice in both.choices] == alone and [choice.index for choice in both.choices] == [0, 1]
    ids = [smollm2.post("/tokenize", {"content": text})[2]["tokens"] for text in texts]
    assert complete(real, ids[0]).choices[0].text == alone[0]
    assert [choice.text for choice in complete(real, ids).choices] == alone
    streamed = stream_states.completions(smollm2.events("/v1/completions", {
        "prompt": texts, "max_tokens": 4, "temperature": 0, "stream": True, "stream_options": {"include_usage": True}}),
        n=2, usage=True)
    assert [choice["text"] for choice in streamed["choices"]] == alone
    assert streamed["usage"]["prompt_tokens"] == sum(map(len, ids))


def test_completions_choices(real):
    whole = complete(real, ["One,", "Two,"], n=2, temperature=1.2, seed=1)
    assert [choice.index for choice in whole.choices] == [0, 1, 2, 3]
    assert whole.choices[0].text != whole.choices[1].text


def test_more_choices_than_the_queue_can_hold(start_server, tiny_path):
    """They could never run: a 400 that names the limit, and not a 503 that asks to come back."""
    server = start_server(tiny_path, parallel=2)  # and 32 wait
    for path, body, field in (("/v1/completions", {"prompt": "One,", "n": 35}, "n"),
                              ("/v1/completions", {"prompt": ["One,", "Two,"], "n": 18}, "n"),
                              ("/v1/completions", {"prompt": ["One,"] * 35}, "prompt"),
                              ("/v1/chat/completions", {"messages": user("Hi"), "n": 35}, "n")):
        status, _, answer = server.post(path, {**body, "max_tokens": 1})
        assert status == 400 and answer["error"]["param"] == field
        assert "slots and queue hold 34 together" in answer["error"]["message"]
    status, _, answer = server.post("/v1/completions", {"prompt": ["One,", "Two,"], "n": 17, "max_tokens": 1})
    assert status == 200 and len(answer["choices"]) == 34


def test_completions_echo(real, smollm2):
    prompt = "The capital of France is"
    whole = complete(real, prompt, echo=True)
    assert whole.choices[0].text.startswith(prompt) and len(whole.choices[0].text) > len(prompt)
    streamed = stream_states.completions(smollm2.events("/v1/completions", {
        "prompt": prompt, "max_tokens": 4, "temperature": 0, "echo": True, "stream": True}))
    assert streamed["choices"][0]["text"] == whole.choices[0].text


def test_completions_logprobs(real, smollm2):
    prompt = "The capital of France is"
    whole = complete(real, prompt, logprobs=2)
    lists = whole.choices[0].logprobs
    assert "".join(lists.tokens) == whole.choices[0].text and len(lists.tokens) == 4
    assert lists.text_offset == [len("".join(lists.tokens[:index])) for index in range(4)]
    for token, value, top in zip(lists.tokens, lists.token_logprobs, lists.top_logprobs):
        assert len(top) == 2 and math.isclose(top[token], value)
    streamed = stream_states.completions(smollm2.events("/v1/completions", {
        "prompt": prompt, "max_tokens": 4, "temperature": 0, "logprobs": 2, "stream": True}), logprobs=True)
    assert streamed["choices"][0]["logprobs"] == lists.model_dump()


ECHOED = ["The capital of France is Paris.", "Zwölf Boxkämpfer – 日本"]


@pytest.mark.parametrize("most", [0, 3])
def test_completions_echo_logprobs(smollm2, most):
    """What evaluation harnesses send: the prompt's own tokens come with their log probabilities."""
    body = {"prompt": ECHOED, "max_tokens": most, "temperature": 0, "logprobs": 2, "echo": True, "n": 2, "seed": 1}
    status, _, whole = smollm2.post("/v1/completions", body)
    assert status == 200, whole
    stream_states.whole_completion(whole)
    streamed = stream_states.completions(smollm2.events("/v1/completions", {**body, "stream": True}), n=4, logprobs=True)
    assert streamed["choices"] == whole["choices"]
    for index, choice in enumerate(whole["choices"]):
        text, lists = ECHOED[index // 2], choice["logprobs"]
        ids = smollm2.post("/tokenize", {"content": text})[2]["tokens"]
        assert choice["text"].startswith(text) and (choice["text"] == text) == (most == 0)
        assert choice["finish_reason"] == "length"
        assert {key: len(values) for key, values in lists.items()} == dict.fromkeys(lists, len(ids) + most)
        assert lists["token_logprobs"][0] is None and lists["top_logprobs"][0] is None
        for token, offset in zip(lists["tokens"], lists["text_offset"]):
            assert "\ufffd" in token or choice["text"][offset:].startswith(token)
        for token, value, top in list(zip(lists["tokens"], lists["token_logprobs"], lists["top_logprobs"]))[1:]:
            assert value <= 0 and 1 <= len(top) <= 3 and (top[token] == value or "\ufffd" in token)
    assert whole["usage"]["completion_tokens"] == 4 * most


def test_completions_echo_logprobs_are_those_of_replies(smollm2):
    """A prompt's token has the log probability that a reply has which is made to draw it."""
    ids = smollm2.post("/tokenize", {"content": ECHOED[0]})[2]["tokens"]
    body = {"max_tokens": 1, "temperature": 0, "logprobs": 5}
    echoed = smollm2.post("/v1/completions", {**body, "prompt": ids, "echo": True})[2]["choices"][0]["logprobs"]
    for index in range(1, len(ids)):
        drawn = smollm2.post("/v1/completions", {**body, "prompt": ids[:index], "logit_bias": {ids[index]: 100}})[2]
        lists = drawn["choices"][0]["logprobs"]
        assert lists["token_logprobs"] == [echoed["token_logprobs"][index]]
        assert lists["top_logprobs"] == [echoed["top_logprobs"][index]]


def test_completions_without_tokens(real, smollm2):
    """max_tokens 0 computes the prompt alone; the next request finds it in the cache."""
    text = "A prompt to come back to: " + "one two three four " * 12
    warmed = complete(real, text, max_tokens=0)
    assert warmed.choices[0].text == "" and warmed.choices[0].finish_reason == "length"
    assert warmed.usage.completion_tokens == 0
    assert complete(real, text, max_tokens=1).usage.prompt_tokens_details.cached_tokens >= 32
    assert complete(real, text, max_tokens=0, echo=True).choices[0].text == text
    alone = smollm2.post("/v1/completions", {"prompt": "", "echo": True, "logprobs": 1, "max_tokens": 0})[2]["choices"][0]
    assert alone["text"] == "" and alone["logprobs"]["token_logprobs"] == [None]


def test_completions_suffix_refused(real):
    with pytest.raises(openai.BadRequestError) as caught:
        complete(real, "a", suffix="b")
    assert caught.value.param == "suffix"


# ---- responses


def respond(client, given, **more):
    return client.responses.create(model="any", input=given, **{"max_output_tokens": 200, **more})


def test_responses(real):
    whole = respond(real, PARIS, temperature=0, max_output_tokens=8, instructions="Answer shortly.")
    assert "Paris" in whole.output_text and whole.object == "response"
    assert whole.instructions == "Answer shortly." and whole.usage.input_tokens_details.cached_tokens >= 0
    cut = respond(real, PARIS, temperature=0, max_output_tokens=1)
    assert cut.status == "incomplete" and cut.incomplete_details.reason == "max_output_tokens"


def test_responses_stream(tiny_client, scripted):
    text = scripted.say("<think>\nThey ask.\n</think>\n\nHello!")
    events = list(respond(tiny_client, text, stream=True))
    assert [event.sequence_number for event in events] == list(range(len(events)))
    kinds = [event.type for event in events if "delta" not in event.type]
    item = ["response.output_item.added", "response.content_part.added", "response.{}.done",
            "response.content_part.done", "response.output_item.done"]
    assert kinds == ["response.created", "response.in_progress",
                     *(kind.format("reasoning_text") for kind in item), *(kind.format("output_text") for kind in item),
                     "response.completed"]
    final = events[-1].response
    assert [item.type for item in final.output] == ["reasoning", "message"] and final.output_text == "Hello!"
    assert final.output[0].content[0].text == "They ask."


def test_responses_stream_helper(tiny_client, scripted):
    with tiny_client.responses.stream(model="any", input=scripted.say(TWO_CALLS), tools=[FLAT_WEATHER, FLAT_NOW],
                                      max_output_tokens=200) as stream:
        events = list(stream)
        final = stream.get_final_response()
    done = [event for event in events if event.type == "response.function_call_arguments.done"]
    assert [json.loads(event.arguments) for event in done] == [{"city": "Oslo", "days": 2}, {}]
    assert [item.type for item in final.output] == ["message", "function_call", "function_call"]


def test_responses_function_calls(tiny_client, scripted):
    given = user(scripted.say(TWO_CALLS))
    first = respond(tiny_client, given, tools=[FLAT_WEATHER, FLAT_NOW])
    calls = [item for item in first.output if item.type == "function_call"]
    assert [(call.name, json.loads(call.arguments), call.status) for call in calls] == [
        ("weather", {"city": "Oslo", "days": 2}, "completed"), ("now", {}, "completed")]
    given += [item.model_dump(exclude_none=True) for item in first.output]
    given += [{"type": "function_call_output", "call_id": call.call_id, "output": "fine"} for call in calls]
    given += user(scripted.say("It is fine."))
    second = respond(tiny_client, given, tools=[FLAT_WEATHER, FLAT_NOW])
    assert second.output_text == "It is fine." and second.usage.input_tokens_details.cached_tokens > 0


def test_responses_previous(tiny_client, scripted):
    first = respond(tiny_client, scripted.say("Blue.") + " word" * 64)
    second = respond(tiny_client, scripted.say("As said, blue."), previous_response_id=first.id)
    assert second.previous_response_id == first.id and second.output_text == "As said, blue."
    assert second.usage.input_tokens > first.usage.input_tokens + first.usage.output_tokens
    assert second.usage.input_tokens_details.cached_tokens >= first.usage.input_tokens - 32
    with pytest.raises(openai.NotFoundError) as caught:
        respond(tiny_client, "Hi", previous_response_id="resp_unknown")
    assert caught.value.param == "previous_response_id"


def test_responses_conversation(tiny_client, scripted):
    first = respond(tiny_client, scripted.say("Red."), conversation="conv_1")
    second = respond(tiny_client, scripted.say("Still red."), conversation="conv_1")
    assert second.conversation.id == "conv_1"
    assert second.usage.input_tokens > first.usage.input_tokens + first.usage.output_tokens
    with pytest.raises(openai.BadRequestError):
        respond(tiny_client, "Hi", conversation="conv_1", previous_response_id=first.id)


def test_responses_store(tiny_client, scripted):
    kept = respond(tiny_client, scripted.say("Kept."))
    assert tiny_client.responses.retrieve(kept.id).output_text == "Kept."
    assert tiny_client.responses.cancel(kept.id).status == "completed", "what is over cannot be cancelled any more"
    tiny_client.responses.delete(kept.id)
    for gone in (kept.id, respond(tiny_client, scripted.say("Not kept."), store=False).id):
        with pytest.raises(openai.NotFoundError):
            tiny_client.responses.retrieve(gone)
        with pytest.raises(openai.NotFoundError):
            tiny_client.responses.cancel(gone)


def test_responses_parse(tiny_client, scripted):
    text = scripted.say('{"city": "Lima", "people": 10}')
    assert tiny_client.responses.parse(model="any", input=text, text_format=Answer).output_parsed == \
        Answer(city="Lima", people=10)


def test_responses_parse_real(real):
    parsed = real.responses.parse(model="any", input=PARIS, text_format=Answer, max_output_tokens=60, temperature=0)
    assert isinstance(parsed.output_parsed, Answer)


def test_responses_input_tokens(tiny_client, scripted):
    text = scripted.say("Yes.")
    counted = tiny_client.responses.input_tokens.count(model="any", input=text, tools=[FLAT_NOW])
    assert counted.object == "response.input_tokens"
    first = respond(tiny_client, text, tools=[FLAT_NOW])
    assert counted.input_tokens == first.usage.input_tokens
    more = tiny_client.responses.input_tokens.count(model="any", input="More.", previous_response_id=first.id)
    assert more.input_tokens == respond(tiny_client, "More.", previous_response_id=first.id, max_output_tokens=1
                                        ).usage.input_tokens


def test_responses_namespace_and_unknown_tools(tiny_client, scripted):
    tools = [{"type": "namespace", "name": "clock", "description": "Times.", "tools": [FLAT_NOW]},
             {"type": "web_search"}, {"type": "custom", "name": "patch"}]
    whole = respond(tiny_client, scripted.say('<tool_call>\n{"name": "now", "arguments": {}}\n</tool_call>'), tools=tools)
    call = whole.output[0]
    assert (call.type, call.name, call.namespace) == ("function_call", "now", "clock")
    assert [warning for warning in whole.x_vedette["warnings"] if "web_search" in warning]
    assert [warning for warning in whole.x_vedette["warnings"] if "custom" in warning]


@pytest.mark.parametrize("choice, names", [("required", {"weather", "now"}),
                                           ({"type": "function", "name": "now"}, {"now"})])
def test_responses_tool_choice(tiny_client, choice, names):
    whole = respond(tiny_client, PARIS, tools=[FLAT_WEATHER, FLAT_NOW], tool_choice=choice, temperature=1,
                    parallel_tool_calls=False, reasoning={"effort": "none"})
    assert {item.name for item in whole.output} <= names and whole.output


def test_responses_logprobs(tiny_client, scripted):
    """The tokens of the text alone: neither those of reasoning and calls nor the end token."""
    wanted = dict(include=["message.output_text.logprobs"], top_logprobs=3)
    text = scripted.say("<think>\nThey ask.\n</think>\n\n" + TWO_CALLS)
    whole = respond(tiny_client, text, tools=[FLAT_WEATHER, FLAT_NOW], **wanted)
    assert whole.top_logprobs == 3 and [item.type for item in whole.output][:2] == ["reasoning", "message"]
    tokens = whole.output[1].content[0].logprobs
    assert "".join(token.token for token in tokens).strip() == "I look." and len(tokens) > 1
    for token in tokens:
        assert bytes(token.bytes).decode() == token.token and token.logprob <= 0
        assert len(token.top_logprobs) == 3 and token.top_logprobs[0].logprob >= token.logprob
    events = list(respond(tiny_client, text, tools=[FLAT_WEATHER, FLAT_NOW], stream=True, **wanted))
    deltas = [event for event in events if event.type == "response.output_text.delta"]
    assert [token.token for event in deltas for token in event.logprobs] == [token.token for token in tokens]
    assert all(event.logprobs for event in deltas)
    body = {"input": text, "tools": [FLAT_WEATHER, FLAT_NOW], "stream": True, **wanted}
    streamed = stream_states.responses(scripted.events("/v1/responses", body))
    assert streamed["output"][1]["content"][0]["logprobs"] == [token.model_dump() for token in tokens]
    with tiny_client.responses.stream(model="any", input=text, **wanted) as stream:
        assert stream.get_final_response().output[1].content[0].logprobs
    assert respond(tiny_client, text).output[1].content[0].logprobs == []


def test_responses_logprobs_are_those_of_chat(real):
    """And the least that asks for them is either field."""
    chatted = chat(real, PARIS, logprobs=True, top_logprobs=1).choices[0].logprobs.content
    for wanted in ({"include": ["message.output_text.logprobs"]}, {"top_logprobs": 1}):
        part = respond(real, PARIS, temperature=0, max_output_tokens=8, **wanted).output[0].content[0]
        assert [token.logprob for token in part.logprobs] == [token.logprob for token in chatted[:len(part.logprobs)]]
        assert "".join(token.token for token in part.logprobs) == part.text
        assert {len(token.top_logprobs) for token in part.logprobs} == {wanted.get("top_logprobs", 0)}


@pytest.mark.parametrize("store", [True, False])
def test_responses_cancel(real, smollm2, store):
    """A stream that is cancelled ends with what it said until then."""
    body = {"input": "Count to ten thousand.", "max_output_tokens": 7000, "temperature": 0, "ignore_eos": True,
            "stream": True, "store": store}
    request = urllib.request.Request(smollm2.url + "/v1/responses", json.dumps(body).encode(),
                                     {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=120) as response:
        text = ""
        while "response.output_text.delta" not in text:
            text += response.readline().decode()
        ident = parse_events(text)[0][1]["response"]["id"]
        cancelled = real.responses.cancel(ident)
        text += response.read().decode()
    streamed = stream_states.responses(parse_events(text))
    assert cancelled.id == ident and cancelled.status == streamed["status"] == "cancelled"
    assert cancelled.output_text == streamed["output"][0]["content"][0]["text"] and cancelled.incomplete_details is None
    assert streamed["output"][-1]["status"] == "incomplete" and 0 < cancelled.usage.output_tokens < 7000
    if store:
        assert real.responses.retrieve(ident).status == "cancelled"
        assert real.responses.cancel(ident).output_text == cancelled.output_text
        assert respond(real, "Go on.", previous_response_id=ident, max_output_tokens=1).usage.input_tokens > \
            cancelled.usage.output_tokens
    else:
        with pytest.raises(openai.NotFoundError):
            real.responses.cancel(ident)


@pytest.mark.parametrize("field, value", [("background", True), ("truncation", "auto"), ("top_logprobs", 21)])
def test_responses_refused(tiny_client, field, value):
    with pytest.raises(openai.BadRequestError) as caught:
        respond(tiny_client, "Hi", **{field: value})
    assert caught.value.param == field
