from __future__ import annotations

import json
from pathlib import Path

import pytest

from adapters.offline.server import OfflineModel
from bot.cli.inspection import TerminalApprover, call_tool, list_tools, result_to_json, result_to_text, tools_to_text
from bot.cli.past_runs import to_json
from config.settings import Settings
from frostagent.types.results import Image, ToolResult
from frostagent.types.runs import Asker
from frostagent.types.suspension import Allow, ApprovalRequest, Deny
from tests.fakes import GROUP, tool_context

TOOLS = '''
from frostagent.types.ports import Speaker; from bot.core.ports import Web
from frostagent import ToolContext, tool
from frostagent.programs import command_tool

draw = command_tool("draw", "Draws.", ["no-such-program"])


@tool(permission="require_approval", side_effects="none", audience="owner", rate="5/60", label="Dice")
async def roll_dice(context: ToolContext, sides: int = 6) -> str:
    """Rolls.

    Args:
        sides: How many sides.
    """
    context.progress("rolling")
    return f"{sides}!"


@tool(needs=(Web,))
async def fetch(context: ToolContext) -> str:
    """Has the ports of the service."""
    return type(context.port(Web)).__name__
'''


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "dice.py").write_text(TOOLS)
    return Settings(tools_dir=tmp_path / "mine", tools_deny=("fetch_nothing",))


async def call(
    settings: Settings, name: str, arguments: str = "{}", *, answer: str | None = None
) -> tuple[ToolResult, list[str]]:
    """The result, and what was told and asked meanwhile."""
    told: list[str] = []

    def ask(question: str) -> str:
        told.append(question)
        return str(answer)

    result = await call_tool(settings, name, arguments, ask=None if answer is None else ask, tell=told.append)
    return result, told


# --- tools ----------------------------------------------------------------------------------------


def test_every_tool_is_listed_with_type_permission_side_effects_and_why_it_cannot_be_used(settings: Settings) -> None:
    rows, problems = list_tools(settings)
    assert problems == ()
    by_name = {row["name"]: row for row in rows}
    assert list(by_name) == sorted(by_name)
    dice, draw = by_name["roll_dice"], by_name["draw"]
    assert (dice["type"], dice["permission"], dice["audience"], dice["side_effects"]) == (
        *("function", "require_approval", "owner", "none"),
    )
    assert (dice["rate"], dice["label"], dice["available"], dice["reason"]) == ("5/60", "Dice", True, "")
    assert (draw["type"], draw["available"]) == ("cli", False)
    assert draw["reason"] == "needs the program no-such-program, which is not in PATH"
    assert by_name["send_message"]["needs"] == ["Speaker", "Media"]
    assert json.loads(to_json(rows)) == rows


def test_the_list_is_a_line_for_each_tool(settings: Settings) -> None:
    rows, _ = list_tools(settings)
    head, *lines = tools_to_text(rows).splitlines()
    assert head.split() == ["TOOL", "TYPE", "PERMISSION", "AUDIENCE", "SIDE", "EFFECTS", "AVAILABLE"]
    assert len(lines) == len(rows)
    told = {line.split()[0]: " ".join(line.split()[1:]) for line in lines}
    assert told["roll_dice"] == "function require_approval owner none yes"
    assert told["draw"].endswith("no: it needs the program no-such-program, which is not in PATH")


def test_a_broken_file_is_told_beside_the_list(settings: Settings) -> None:
    assert settings.tools_dir is not None
    (settings.tools_dir / "broken.py").write_text("1 / 0\n")
    rows, (problem,) = list_tools(settings)
    assert "roll_dice" in {row["name"] for row in rows}
    assert problem.name.endswith("broken.py:1")


@pytest.mark.parametrize("answer", ["y", "YES", " 同意 "])
async def test_a_call_that_must_be_allowed_is_asked_about_and_run(settings: Settings, answer: str) -> None:
    result, (question, progress) = await call(settings, "roll_dice", '{"sides": "20"}', answer=answer)
    assert (result.content, result.is_error) == ("20!", False)
    assert question.startswith('Dice {"sides": 20}\nAllow this call?')
    assert progress == "rolling"


@pytest.mark.parametrize("answer", ["", "n", "maybe"])
async def test_anything_but_yes_is_no(settings: Settings, answer: str) -> None:
    result, _ = await call(settings, "roll_dice", answer=answer)
    assert result.content == "error: the tool call was denied: not allowed at the terminal [TOOL_DENIED]"


async def test_the_end_of_what_is_typed_is_no(settings: Settings) -> None:
    def ask(_question: str) -> str:
        raise EOFError

    result = await call_tool(settings, "roll_dice", "{}", ask=ask, tell=print)
    assert "not allowed at the terminal" in result.content


async def test_without_a_terminal_nobody_can_be_asked(settings: Settings) -> None:
    result, told = await call(settings, "roll_dice")
    assert result.content.endswith("there is nobody to ask. Do without it. [TOOL_DENIED]")
    assert told == []


async def test_a_tool_has_the_ports_it_has_in_the_service(settings: Settings) -> None:
    assert (await call(settings, "fetch"))[0].content == "HttpxWeb"


async def test_a_tool_that_needs_a_conversation_says_so(settings: Settings) -> None:
    result, _ = await call(settings, "send_message", '{"messages": []}')
    assert result.is_error
    assert result.content.startswith("error: send_message needs a conversation: ")
    assert result.content.endswith("[TOOL_UNAVAILABLE]")


async def test_without_a_model_there_is_no_subagent(settings: Settings) -> None:
    arguments = '{"subagent_name": "Coder", "content": "hi"}'
    result, _ = await call(settings, "use_subagent", arguments)
    assert result.content.startswith("error: use_subagent cannot run here: it needs Subagents")
    async with OfflineModel() as model:
        local = settings.model_copy(update={"llm_base_url": model.base_url, "llm_model": "demo"})
        result, _ = await call(local, "use_subagent", arguments)
    assert result.content
    assert not result.is_error


@pytest.mark.parametrize(
    ("name", "arguments", "code"),
    [
        ("roll_dices", "{}", "TOOL_NOT_FOUND"),
        ("roll_dice", '{"sides": "many"}', "TOOL_INVALID_ARGUMENTS"),
        ("roll_dice", "no json", "TOOL_INVALID_ARGUMENTS"),
        ("draw", "{}", "TOOL_UNAVAILABLE"),
    ],
)
async def test_what_goes_wrong_is_a_result_as_the_model_would_read_it(
    settings: Settings, name: str, arguments: str, code: str
) -> None:
    result, _ = await call(settings, name, arguments, answer="y")
    assert result.is_error
    assert result.content.endswith(f"[{code}]")


async def test_what_is_asked_at_the_terminal_commands_no_terminal() -> None:
    asked: list[str] = []
    request = ApprovalRequest(
        run_id="",
        step=1,
        call_id="",
        name="x",
        arguments={},
        asks="rm \x1b[2J",
        conversation=str(GROUP),
        asker=Asker("1"),
        context=tool_context(),
    )

    def ask(question: str) -> str:
        asked.append(question)
        return "y"

    assert await TerminalApprover(ask).approve(request) == Allow()
    assert isinstance(await TerminalApprover(lambda _: "no").approve(request), Deny)
    assert asked[0].startswith("rm \\x1b[2J\n")


def test_a_result_is_told_as_text_or_as_data() -> None:
    result = ToolResult("two\nlines \x1b[31m", images=(Image.of(b"png"),), details={"raw": b"x", "n": 1}, is_error=True)
    assert result_to_text(result).splitlines() == ["two", "lines \\x1b[31m", "[picture: 26 characters]"]
    told = json.loads(result_to_json(result))
    assert (told["content"], told["is_error"], told["details"]["n"]) == (result.content, True, 1)
    assert told["images"] == [result.images[0].url]
