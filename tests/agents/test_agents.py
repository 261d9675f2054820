"""Each agent reads a file by a tool call, edits it and answers; then the same conversation goes on."""

import json
import os

from conftest import AFTER, ANSWER, NEXT_ANSWER, NEXT_TASK, TASK, call


def check(recorder, turns, workplace, first, second):
    """The file was edited, both answers were printed, and each request but the first came from the cache."""
    assert workplace.read_notes() == AFTER
    assert ANSWER in first
    assert NEXT_ANSWER in second
    assert all(exchange.status == 200 for exchange in recorder.exchanges), recorder.exchanges
    assert len(turns) == 4, recorder.exchanges
    for exchange in turns[1:]:
        assert exchange.cached_share >= 0.95, turns


class ClaudeCode:
    def __init__(self, agents, recorder, workplace):
        self.program = os.path.join(agents, "@anthropic-ai/claude-code-linux-x64/claude")
        self.workplace = workplace
        self.environment = {
            "ANTHROPIC_BASE_URL": recorder.url,
            "ANTHROPIC_AUTH_TOKEN": "any",
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
        return (call("Read", file_path=workplace.notes),
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


def test_codex(agents, recorded, workplace):
    recorder = recorded(call("exec_command", cmd="cat notes.txt"), call("exec_command", cmd=PATCH), ANSWER)
    workplace.write_home(".codex/config.toml", CODEX_CONFIG.format(url=recorder.url))
    program = os.path.join(agents, "@openai/codex-linux-x64/vendor/x86_64-unknown-linux-musl/bin/codex")
    flags = ["--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox"]
    first = workplace.run([program, "exec", *flags, TASK], {"VEDETTE_KEY": "any"})
    second = workplace.run([program, "exec", "resume", *flags, "--last", NEXT_TASK], {"VEDETTE_KEY": "any"})
    check(recorder, recorder.turns("exec_command"), workplace, first, second)


def test_opencode(agents, recorded, workplace):
    recorder = recorded(call("read", filePath=workplace.notes),
                        call("edit", filePath=workplace.notes, oldString="apple", newString="quince"), ANSWER)
    provider = {"npm": "@ai-sdk/openai-compatible", "options": {"baseURL": recorder.url + "/v1"}, "models": {"tiny": {}}}
    workplace.write_home(".config/opencode/opencode.json",
                         json.dumps({"provider": {"vedette": provider}, "model": "vedette/tiny"}))
    program = os.path.join(agents, "opencode-linux-x64/bin/opencode")
    environment = {"OPENCODE_DISABLE_AUTOUPDATE": "1", "OPENCODE_DISABLE_MODELS_FETCH": "1"}
    first = workplace.run([program, "run", TASK], environment)
    second = workplace.run([program, "run", "--continue", NEXT_TASK], environment)
    check(recorder, recorder.turns("edit"), workplace, first, second)
