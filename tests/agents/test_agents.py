"""Each agent reads a file by a tool call, edits it and answers; then the same conversation goes on."""

import json
import os

from conftest import AFTER, ANSWER, KEY, NEXT_ANSWER, NEXT_TASK, TASK, call, thought


def check(recorder, turns, workplace, first, second):
    """The file was edited, both answers were printed, and each request but the first came from the cache."""
    assert workplace.read_notes() == AFTER
    assert ANSWER in first
    assert NEXT_ANSWER in second
    assert all(exchange.status == 200 for exchange in recorder.exchanges), recorder.exchanges
    assert len(turns) == 4, recorder.exchanges
    for exchange in turns[1:]:
        assert exchange.cached_share >= 0.95, turns
    # The reply came back as it was made, with its reasoning.
    seen = turns[0].report["prompt_tokens"] + turns[0].report["completion_tokens"]
    assert turns[1].report["cache"]["matched_tokens"] >= seen - 1, turns


class ClaudeCode:
    def __init__(self, agents, recorder, workplace):
        self.program = os.path.join(agents, "@anthropic-ai/claude-code-linux-x64/claude")
        self.workplace = workplace
        self.environment = {
            "ANTHROPIC_BASE_URL": recorder.url,
            "ANTHROPIC_AUTH_TOKEN": KEY,
            "ANTHROPIC_MODEL": "tiny",
            "ANTHROPIC_SMALL_FAST_MODEL": "tiny",
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
            "IS_SANDBOX": "1",
        }

    def run(self, text, *flags):
        return self.workplace.run([self.program, "--dangerously-skip-permissions", *flags, "-p", text],
                                  self.environment)

    @staticmethod
    def replies(workplace):
        return thought(call("Read", file_path=workplace.notes),
                       call("Edit", file_path=workplace.notes, old_string="apple", new_string="quince"), ANSWER)


def claude_code_completes(agents, recorder, workplace):
    claude = ClaudeCode(agents, recorder, workplace)
    first = claude.run(TASK)
    second = claude.run(NEXT_TASK, "--continue")
    assert recorder.billed >= 4, "Claude Code sends no billing header any more; this test shows nothing"
    check(recorder, recorder.turns("Edit"), workplace, first, second)


def test_claude_code(agents, recorded, workplace):
    claude_code_completes(agents, recorded(*ClaudeCode.replies(workplace)), workplace)


def test_claude_code_with_another_billing_header_in_each_request(agents, recorded, workplace):
    recorder = recorded(*ClaudeCode.replies(workplace), change_billing=True)
    claude_code_completes(agents, recorder, workplace)


def test_claude_code_compacts_a_conversation_that_is_too_long(agents, recorded, workplace):
    outputs = [call("Bash", command=f"seq -s ' ' {i}00100 {i}00250") for i in range(1, 5)]
    refused = "no reply: this prompt is too long"
    recorder = recorded(*outputs, refused, "<summary>Much was counted.</summary>", ANSWER, ctx_size=16700)
    assert ANSWER in ClaudeCode(agents, recorder, workplace).run(TASK)
    asked = [exchange for exchange in recorder.exchanges if exchange.path.startswith("/v1/messages?")]
    assert [exchange.status for exchange in asked] == [200, 200, 200, 200, 400, 200, 200], asked
    assert "prompt is too long: " in asked[4].error


CODEX_CONFIG = """\
model = "tiny"
model_provider = "vedette"
[model_providers.vedette]
name = "Vedette"
base_url = "{url}/v1"
wire_api = "responses"
env_key = "VEDETTE_KEY"
"""
PATCH = """\
apply_patch <<'END'
*** Begin Patch
*** Update File: notes.txt
@@
 pears and plums
-apple and cherry
+quince and cherry
*** End Patch
END
"""


class Codex:
    def __init__(self, agents, recorder, workplace):
        self.program = os.path.join(agents, "@openai/codex-linux-x64/vendor/x86_64-unknown-linux-musl/bin/codex")
        self.workplace = workplace
        workplace.write_home(".codex/config.toml", CODEX_CONFIG.format(url=recorder.url))

    def run(self, *arguments):
        flags = ["--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox"]
        command = [self.program, "exec", *arguments[:-1], *flags, arguments[-1]]
        return self.workplace.run(command, {"VEDETTE_KEY": KEY})


def test_codex(agents, recorded, workplace):
    recorder = recorded(*thought(call("exec_command", cmd="cat notes.txt"), call("exec_command", cmd=PATCH), ANSWER))
    codex = Codex(agents, recorder, workplace)
    first = codex.run(TASK)
    second = codex.run("resume", "--last", NEXT_TASK)
    check(recorder, recorder.turns("exec_command"), workplace, first, second)


def test_codex_with_two_calls_in_a_reply_and_a_call_of_a_namespace(agents, recorded, workplace):
    both = [call("exec_command", cmd=f"touch {name}") for name in ("one", "two")]
    recorder = recorded("Both at once.\n" + "\n".join(both), call("close_agent", target="nobody"), ANSWER)
    assert ANSWER in Codex(agents, recorder, workplace).run(TASK)
    assert set(os.listdir(workplace.folder)) == {"notes.txt", "one", "two"}
    # Codex found the tool in its namespace, and the tool found no such agent.
    assert "invalid agent id nobody" in workplace.errors
    for exchange in recorder.turns("exec_command")[1:]:
        assert exchange.cached_share >= 0.95, recorder.exchanges


def test_opencode(agents, recorded, workplace):
    recorder = recorded(*thought(call("read", filePath=workplace.notes),
                                 call("edit", filePath=workplace.notes, oldString="apple", newString="quince"), ANSWER))
    provider = {"npm": "@ai-sdk/openai-compatible", "models": {"tiny": {}},
                "options": {"baseURL": recorder.url + "/v1", "apiKey": KEY}}
    workplace.write_home(".config/opencode/opencode.json",
                         json.dumps({"provider": {"vedette": provider}, "model": "vedette/tiny"}))
    program = os.path.join(agents, "opencode-linux-x64/bin/opencode")
    environment = {"OPENCODE_DISABLE_AUTOUPDATE": "1", "OPENCODE_DISABLE_MODELS_FETCH": "1"}
    first = workplace.run([program, "run", TASK], environment)
    second = workplace.run([program, "run", "--continue", NEXT_TASK], environment)
    check(recorder, recorder.turns("edit"), workplace, first, second)
