"""The official openai client for Node. Skipped, with the reason, only where npm does not answer."""

import json
import os
import subprocess

import pytest
from conftest import ROOT

FOLDER = os.environ.get("VEDETTE_TEST_NODE_CLIENT", os.path.join(ROOT, "build/node_client"))
NPM_DOES_NOT_ANSWER = 3  # exit code of tools/get_node_client


def call(city):
    return "<tool_call>\n" + json.dumps({"name": "weather", "arguments": {"city": city}}) + "\n</tool_call>"


@pytest.fixture(scope="module")
def node_client():
    done = subprocess.run([os.path.join(ROOT, "tools/get_node_client"), FOLDER], stderr=subprocess.PIPE, text=True)
    if done.returncode == NPM_DOES_NOT_ANSWER:
        pytest.skip(done.stderr.strip())
    assert done.returncode == 0, done.stderr
    return FOLDER


def test_node_client(node_client, scripted):
    texts = {"hello": scripted.say("Hello, ďábelské 😀 world!"), "calls": scripted.say(call("Oslo") + "\n" + call("Lima")),
             "thought": scripted.say("<think>\nHm.\n</think>\n\nHi."), "after": scripted.say("Both are wet.")}
    done = subprocess.run(["node", os.path.join(ROOT, "tests/api/node_client.mjs"), node_client, scripted.url,
                           json.dumps(texts)], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.split() == ["models", "chat", "chatStream", "chatStreamHelper", "runTools", "responses",
                                   "responsesStream", "errors"]
