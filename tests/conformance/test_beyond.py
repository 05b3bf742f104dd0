"""What goes beyond all five documents: repeats, discovery, truncated steps, capped results, waiting for a word."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

import tools
from adapters.traces.run_log import RunLog
from bot.runtime.tool_discovery import PackagedTools, ToolFolder, discover
from frostagent import (
    Agent,
    Allow,
    ApprovalRequest,
    Deny,
    Pending,
    RunFailed,
    ScriptedModel,
    Stop,
    SystemClock,
    Tool,
    Toolset,
    call,
    tool,
)
from frostagent.text.masking import Mask
from frostagent.types.messages import AssistantMessage, Completion, FinishReason, ToolCall
from frostagent.types.tools import SideEffectsWord
from tests.bot.cli.commands import run
from tests.cases import each_case
from tests.conformance.weather import counted, echo, results

ROOT = Path(__file__).parents[2]

HI = call("echo", text="hi")


@tool(side_effects="write")
async def write_down() -> str:
    """Writes."""
    return "written"


LOOK = call("look", text="a")
READ = {"side_effects": "read", "idempotent": True}


# --- repeats ------------------------------------------------------------------------------------------


async def test_the_same_call_gets_the_known_result_then_an_error_then_the_final_answer() -> None:
    look, ran = counted(**READ)
    model = ScriptedModel(LOOK, LOOK, LOOK, LOOK, "forced")
    with model:
        reply = await Agent(model=model, tools=[look]).chat("go")
    first, second, third, fourth = results(reply)
    assert ran == ["a"]
    assert first.content == "look 1"
    assert second.content.endswith("look 1")
    assert "called this before" in second.content
    assert third.is_error
    assert fourth.is_error
    assert model.requests[-1].tools == ()
    assert reply.text == "forced"


async def test_a_write_between_two_calls_makes_the_second_a_new_one() -> None:
    look, ran = counted(**READ)
    with ScriptedModel(LOOK, call("write_down"), LOOK, "done") as model:
        await Agent(model=model, tools=[look, write_down]).chat("go")
    assert len(ran) == 2


async def test_a_new_message_between_two_calls_makes_the_second_a_new_one() -> None:
    look, ran = counted(**READ)

    @tool
    async def nudge() -> str:
        """Lets somebody speak."""
        agent.steer("look again")
        return "nudged"

    with ScriptedModel(LOOK, call("nudge"), LOOK, "done") as model:
        agent = Agent(model=model, tools=[look, nudge])
        await agent.chat("go")
    assert len(ran) == 2


async def test_equal_calls_within_one_batch_are_all_run() -> None:
    look, ran = counted(**READ)
    with ScriptedModel([LOOK, LOOK, LOOK], "done") as model:
        await Agent(model=model, tools=[look]).chat("go")
    assert len(ran) == 3


@each_case("declared", [{**READ, "repeatable": True}, {}, {"side_effects": "read"}])
async def test_a_repeatable_tool_and_one_not_declared_so_run_each_time(declared: dict[str, Any]) -> None:
    look, ran = counted(**declared)
    with ScriptedModel(LOOK, LOOK, LOOK, "done") as model:
        await Agent(model=model, tools=[look]).chat("go")
    assert len(ran) == 3


async def test_three_invalid_calls_in_a_row_close_the_tool_which_stays_listed() -> None:
    look, ran = counted()
    wrong = call("look", text=[1, 2])
    with ScriptedModel(wrong, wrong, wrong, LOOK, "done") as model:
        reply = await Agent(model=model, tools=[look]).chat("go")
    assert ran == []
    assert all(result.is_error for result in results(reply))
    assert "three times in a row" in results(reply)[3].content
    assert len({request.tools for request in model.requests}) == 1


async def test_an_exhausted_rate_limit_is_an_error_and_the_tool_stays_listed() -> None:
    look, ran = counted(rate="1/3600")
    with ScriptedModel(LOOK, LOOK, "done") as model:
        reply = await Agent(model=model, tools=[look]).chat("go")
    assert len(ran) == 1
    assert results(reply)[1].content.endswith("[TOOL_RATE_LIMITED]")
    assert model.requests[0].tools is model.requests[2].tools


# --- discovery ----------------------------------------------------------------------------------------

DICE = '''
from frostagent import tool


@tool
def roll_dice(sides: int = 6) -> int:
    """Rolls a dice."""
    return sides
'''


async def test_a_file_in_a_folder_is_a_tool(tmp_path: Path) -> None:
    (tmp_path / "dice.py").write_text(DICE, "utf-8")
    found = discover(PackagedTools(tools), ToolFolder(tmp_path))
    assert "roll_dice" in found.names
    assert (await Toolset(found.tools, clock=SystemClock()).execute("roll_dice")).content == "6"


def test_a_broken_file_is_reported_with_its_line_and_the_others_are_found(tmp_path: Path) -> None:
    (tmp_path / "dice.py").write_text(DICE, "utf-8")
    (tmp_path / "broken.py").write_text("x = 1\ny = 1 / 0\n", "utf-8")
    found = discover(ToolFolder(tmp_path))
    assert found.names == ("roll_dice",)
    (problem,) = found.problems
    assert problem.name.endswith("broken.py:2")
    assert "ZeroDivisionError" in problem.what


# --- truncated steps ----------------------------------------------------------------------------------


def cut(finish: FinishReason, *, refusal: str = "") -> Completion:
    return Completion(AssistantMessage("", (ToolCall("c1", "look", '{"text": "a"}'),)), finish, refusal=refusal)


async def test_of_a_step_that_was_cut_off_nothing_is_executed_and_the_model_is_told() -> None:
    look, ran = counted()
    with ScriptedModel(cut(FinishReason.LENGTH), "done") as model:
        reply = await Agent(model=model, tools=[look]).chat("go")
    assert ran == []
    assert "were cut off" in results(reply)[0].content


async def test_of_a_step_that_was_filtered_nothing_is_executed() -> None:
    look, ran = counted()
    with ScriptedModel(cut(FinishReason.CONTENT_FILTER)) as model, pytest.raises(RunFailed) as caught:
        await Agent(model=model, tools=[look]).chat("go")
    assert ran == []
    assert caught.value.kind == "content_filter"


async def test_of_a_step_that_was_refused_nothing_is_executed() -> None:
    look, ran = counted()
    with ScriptedModel(cut(FinishReason.STOP, refusal="I will not.")) as model:
        reply = await Agent(model=model, tools=[look]).chat("go")
    assert ran == []
    assert (reply.text, reply.stop) == ("I will not.", Stop.ANSWERED)


# --- sizes --------------------------------------------------------------------------------------------


@tool
async def print_much(letter: str) -> str:
    """Prints a lot."""
    return f"HEAD{letter * 50_000}TAIL"


async def test_a_result_over_the_cap_keeps_head_and_tail_and_says_how_much_was_cut() -> None:
    with ScriptedModel(call("print_much", letter="x"), "done") as model:
        reply = await Agent(model=model, tools=[print_much]).chat("go")
    content = results(reply)[0].content
    assert content.startswith("HEADx")
    assert content.endswith("xTAIL")
    assert "characters cut" in content
    assert len(content) < 9_000


async def test_the_results_of_a_run_are_capped_together_too() -> None:
    steps = [call("print_much", letter=letter) for letter in "abcdefghijklmnop"]
    with ScriptedModel(*steps, "done") as model:
        reply = await Agent(model=model, tools=[print_much]).chat("go")
    assert sum(len(result.content) for result in results(reply)) < 72_000
    assert all(result.content.startswith("HEAD") for result in results(reply))


# --- waiting ------------------------------------------------------------------------------------------


class Later:
    """An approver that cannot say at once."""

    async def approve(self, request: ApprovalRequest) -> Pending:
        return Pending(3600)


def guarded() -> tuple[Tool, list[str]]:
    return counted(permission="require_approval")


@each_case("session", [None, "s"])
async def test_a_call_that_waits_suspends_the_run_as_data_which_resumes_after_the_word(session: str | None) -> None:
    look, ran = guarded()
    model = ScriptedModel([LOOK, HI], "looked", "later")
    agent = Agent(model=model, tools=[look, echo], approver=Later())
    waits = await (agent.chat("go") if session is None else agent.chat_with_session(session, "go"))
    assert (waits.stop, waits.text, ran) == (None, "", [])
    assert waits.waiting is not None
    (pending,) = waits.waiting.suspended.pending
    assert "look" in pending.asks
    with model:
        reply = await agent.resume(waits.waiting, {pending.call.id: Allow()})
        assert (reply.text, ran) == ("looked", ["a"])
        assert [message.name for message in results(reply)] == ["look", "echo"]
        await agent.chat_with_session("s", "and then?")
    assert len(model.requests[2].messages) == (1 if session is None else 6)


async def test_a_denied_wait_is_told_to_the_model_with_the_reason() -> None:
    look, ran = guarded()
    model = ScriptedModel(LOOK, "I may not")
    agent = Agent(model=model, tools=[look], approver=Later())
    waiting = (await agent.chat("go")).waiting
    assert waiting is not None
    with model:
        reply = await agent.resume(waiting, {waiting.suspended.pending[0].call.id: Deny("not today")})
    assert ran == []
    assert results(reply)[0].content == "error: the tool call was denied: not today [TOOL_DENIED]"


# --- the operator's word ------------------------------------------------------------------------------


async def test_the_operator_may_deny_a_tool_or_want_its_calls_allowed() -> None:
    look, looked = counted()
    allowed: list[str] = []

    @tool
    async def act() -> str:
        """Acts."""
        allowed.append("act")
        return "done"

    registry = Toolset([look, act, echo], deny=["look"], approve=["act"])
    assert [spec.name for spec in registry.definitions()] == ["act", "echo"]
    for name in ("look", "act"):
        assert (await registry.execute(name)).content.endswith("[TOOL_DENIED]")
    assert looked == allowed == []
    registry.set_approval_handler(lambda _name, _arguments: True)
    assert (await registry.execute("act")).content == "done"
    assert (await registry.execute("look")).content.endswith("[TOOL_DENIED]")
    assert (looked, allowed) == ([], ["act"])


# --- the command line ---------------------------------------------------------------------------------


def command(folder: Path, *words: str, **settings: str) -> tuple[int, str]:
    """`python -m bot ...` with the operator's folder of tools: its exit code and what it prints."""
    done = run(folder, *words, TOOLS_DIR=str(folder), **settings)
    return done.returncode, done.stdout


@pytest.fixture
def dice(tmp_path: Path) -> Path:
    (tmp_path / "dice.py").write_text(DICE, "utf-8")
    return tmp_path


def test_the_command_tools_lists_every_tool_with_what_it_is_and_why_not(dice: Path) -> None:
    code, out = command(dice, "tools", "--json", TOOLS_DENY="get_weather")
    rows = {row["name"]: row for row in json.loads(out)}
    assert code == 0
    assert {"roll_dice", "send_message", "use_subagent", "get_weather", "get_game_version"} <= rows.keys()
    assert {"type", "permission", "side_effects", "available", "reason"} <= rows["roll_dice"].keys()
    assert (rows["roll_dice"]["type"], rows["roll_dice"]["available"]) == ("function", True)
    assert rows["get_weather"]["permission"] == "deny"
    assert rows["send_message"]["side_effects"] == "external"


def test_the_command_tools_call_runs_one_as_the_engine_would(dice: Path) -> None:
    assert command(dice, "tools", "call", "roll_dice", '{"sides": "20"}') == (0, "20\n")


async def test_the_command_runs_lists_what_the_log_of_runs_has(dice: Path) -> None:
    file = dice / "runs.jsonl"
    log = RunLog(file, clock=SystemClock(), mask=Mask([]), content=False)
    with log.writing(), ScriptedModel(HI, "done") as model:
        reply = await Agent(model=model, tools=[echo], observer=log).chat("go")
    code, out = command(dice, "runs", "--json", LOG_RUNS=str(file))
    assert code == 0
    assert reply.run_id in out


# --- side by side -------------------------------------------------------------------------------------


async def test_a_declared_effect_waits_for_what_is_before_it_and_all_after_it_wait() -> None:
    log: list[str] = []

    def step(name: str, effects: SideEffectsWord) -> Tool:
        @tool(name=name, side_effects=effects)
        async def go() -> None:
            """Comes and goes."""
            log.append(f"+{name}")
            await asyncio.sleep(0)
            log.append(f"-{name}")

        return go

    used = [step("one", "read"), step("two", "read"), step("save", "write"), step("three", "read")]
    with ScriptedModel([call(each.name) for each in used], "done") as model:
        await Agent(model=model, tools=used).chat("go")
    assert log == ["+one", "+two", "-one", "-two", "+save", "-save", "+three", "-three"]


@each_case(("options", "most"), [({}, 16), ({"max_calls": 3}, 3)])
async def test_of_more_calls_than_one_answer_may_make_the_rest_is_refused_not_run(
    options: dict[str, Any], most: int
) -> None:
    look, ran = counted()
    with ScriptedModel([call("look", text=str(number)) for number in range(20)], "done") as model:
        reply = await Agent(model=model, tools=[look], **options).chat("go")
    assert ran == [str(number) for number in range(most)]
    assert [result.code for result in results(reply)] == [""] * most + ["TOOL_DENIED"] * (20 - most)
    assert f"only {most} calls are run in one step" in results(reply)[-1].content


async def test_no_more_than_eight_calls_run_at_once() -> None:
    inside = most = 0

    @tool
    async def meet() -> None:
        """Comes in and goes out."""
        nonlocal inside, most
        inside += 1
        most = max(most, inside)
        for _ in range(5):
            await asyncio.sleep(0)
        inside -= 1

    with ScriptedModel([call("meet")] * 12, "done") as model:
        await Agent(model=model, tools=[meet]).chat("go")
    assert most == 8
