"""What the dialects read alike: parts of texts, tools whose names must differ, the words of tool_choice."""

import pytest

SCHEMA = {"type": "object", "properties": {}}


def message(content):
    return [{"role": "user", "content": content}]


# path of the route, name of the field with the messages, a tool
DIALECTS = {
    "chat": ("/v1/chat/completions", "messages", {"type": "function", "function": {"name": "now", "parameters": SCHEMA}}),
    "responses": ("/v1/responses", "input", {"type": "function", "name": "now", "parameters": SCHEMA}),
    "messages": ("/v1/messages", "messages", {"name": "now", "input_schema": SCHEMA}),
}
TEXT = {"chat": "text", "responses": "input_text", "messages": "text"}


@pytest.fixture(params=list(DIALECTS))
def dialect(request):
    return request.param


def send(server, dialect, content="Hi", **more):
    path, field, _ = DIALECTS[dialect]
    limit = "max_output_tokens" if dialect == "responses" else "max_tokens"
    status, _, answer = server.post(path, {field: message(content), limit: 1, **more})
    return status, answer


def refused(server, dialect, field, words, **more):
    status, answer = send(server, dialect, **more)
    assert status == 400 and answer["error"]["param"] == field and words in answer["error"]["message"], answer


def test_parts_are_joined(tiny, dialect):
    parts = [{"type": TEXT[dialect], "text": text} for text in ("One", "Two")]
    tokens = [send(tiny, dialect, content)[1]["x_vedette"]["prompt_tokens"] for content in (parts, "One\nTwo")]
    assert tokens[0] == tokens[1]


def test_a_part_that_is_no_text(tiny, dialect):
    name = DIALECTS[dialect][1]
    parts = [{"type": TEXT[dialect], "text": "What is this?"}, {"type": "image", "source": {}}]
    refused(tiny, dialect, f"{name}[0].content[1]", "a part of type 'image'", content=parts)
    refused(tiny, dialect, f"{name}[0].content[0].type", "expected a string", content=[{"text": "Hi"}])
    refused(tiny, dialect, f"{name}[0].content[0].text", "expected a string", content=[{"type": TEXT[dialect]}])
    refused(tiny, dialect, f"{name}[0].content[0]", "expected an object", content=[7])


def test_two_tools_of_one_name(tiny, dialect):
    tool = DIALECTS[dialect][2]
    field = "tools[1].function.name" if dialect == "chat" else "tools[1].name"
    refused(tiny, dialect, field, "'now' is there twice", tools=[tool, tool])


def test_a_tool_that_is_not_run_here(tiny, dialect):
    status, answer = send(tiny, dialect, tools=[DIALECTS[dialect][2], {"type": "web_search", "name": "web_search"}])
    assert status == 200
    assert answer["x_vedette"]["warnings"] == ["tools of type 'web_search' are not run here and were left out"]


def test_words_of_tool_choice(tiny):
    for dialect in ("chat", "responses"):
        tools = [DIALECTS[dialect][2]]
        for word in ("auto", "none", "required"):
            assert send(tiny, dialect, tools=tools, tool_choice=word)[0] == 200
        for wrong in ("maybe", 7, ["auto"]):
            refused(tiny, dialect, "tool_choice", "expected auto, none, required", tools=tools, tool_choice=wrong)
    refused(tiny, "chat", "tool_choice.function.name", "the name of a tool", tool_choice={"function": {}})
    refused(tiny, "responses", "tool_choice.name", "the name of a tool", tool_choice={"type": "function"})
