from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Protocol

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel

from bot.domain.chat import ToolCall, ToolMessage
from bot.domain.errors import ConfigError
from bot.domain.run import PendingCall
from bot.domain.suspension import Suspend, digest_call
from bot.domain.tool import Tool, ToolContext, tool
from bot.toolset import MAX_CALLS, Batch, Toolset, parse_arguments, render_result, shorten
from tests.fakes import ManualClock, tool_context


class Telescope(Protocol):
    """A capability no run has, unless a test gives it."""


@tool
async def add(a: int, b: int = 1) -> str:
    """Adds two numbers."""
    return str(a + b)


@tool
async def crash() -> str:
    """Breaks."""
    raise ZeroDivisionError("secret detail")


@tool
async def leave() -> str:
    """Asks the interpreter to go."""
    raise SystemExit(3)


@tool
async def give_up() -> str:
    """Raises a cancellation of its own."""
    raise asyncio.CancelledError


@tool(timeout=0.01)
async def dawdle() -> str:
    """Never comes back."""
    await asyncio.Event().wait()
    return "never"


@tool(timeout=0.01, may_have_happened=True)
async def send_slowly() -> str:
    """Never comes back, but has effects."""
    await asyncio.Event().wait()
    return "never"


@tool
async def time_out_inside() -> str:
    """Raises a TimeoutError that is not our deadline."""
    raise TimeoutError


@tool(needs=(Telescope,))
async def look(context: ToolContext) -> str:
    """Looks at the stars."""
    return type(context.port(Telescope)).__name__


@tool
def count_words(text: str) -> int:
    """A plain function: runs in a thread."""
    return len(text.split())


@tool
async def ask_first(context: ToolContext, what: str) -> str:
    """Does nothing before it is allowed."""
    if not context.allowed:
        raise Suspend(f"Do {what}?", seconds=60)
    return f"did {what}"


@tool
async def ask_always() -> str:
    """Asks, whatever was said."""
    raise Suspend("Again?", seconds=60)


ALL = (add, crash, leave, give_up, dawdle, send_slowly, time_out_inside, look, count_words, ask_first, ask_always)


def toolset(*tools: Tool) -> Toolset:
    return Toolset(tools or ALL, clock=ManualClock())


async def run(name: str, arguments: str = "{}", ports: dict[type, object] | None = None) -> tuple[str, str]:
    executed = await toolset().execute(ToolCall("c9", name, arguments), tool_context(ports))
    assert (executed.message.call_id, executed.message.name) == ("c9", name)
    assert executed.message.is_error == (executed.code != "ok")
    return executed.message.content, executed.code


def results_of(batch: Batch) -> tuple[ToolMessage, ...]:
    results = batch.results()
    assert results is not None, "a call still waits"
    return results


def test_a_second_tool_of_one_name_is_an_error_unless_it_replaces_on_purpose() -> None:
    tools = toolset(add)
    with pytest.raises(ConfigError, match="tool add: is registered twice"):
        tools.register(add)
    tools.register(add, replace=True)
    assert tools.get("add") is add


def test_tools_are_listed_by_name() -> None:
    assert [tool.name for tool in toolset().list()] == sorted(tool.name for tool in ALL)


def test_a_tool_whose_needs_are_not_met_is_hidden_from_the_model() -> None:
    assert "look" not in [spec.name for spec in toolset().definitions({})]
    assert "look" in [spec.name for spec in toolset().definitions({Telescope: object()})]


async def test_a_call_by_name_gives_the_result_of_the_tool() -> None:
    assert await run("add", '{"a": 2, "b": 40}') == ("42", "ok")


async def test_a_plain_function_runs_too_and_its_number_becomes_text() -> None:
    assert await run("count_words", '{"text": "a b c"}') == ("3", "ok")


async def test_an_unknown_name_is_an_error_result_that_suggests_the_nearest() -> None:
    content, code = await run("ad")
    assert content.startswith('error: tool not found: "ad". Did you mean "add"? Available: add, ask_always,')
    assert content.endswith("[TOOL_NOT_FOUND]")
    assert code == "TOOL_NOT_FOUND"


async def test_wrong_arguments_name_each_wrong_field() -> None:
    content, code = await run("add", '{"a": "many", "c": 1}')
    assert "a: Input should be a valid integer, unable to parse string as an integer, got 'many'" in content
    assert "c: no such field, leave it out" in content
    assert code == "TOOL_INVALID_ARGUMENTS"


async def test_a_missing_field_is_named() -> None:
    assert await run("add") == ("error: a: required [TOOL_INVALID_ARGUMENTS]", "TOOL_INVALID_ARGUMENTS")


@pytest.mark.parametrize("raw", ["[" * 100_000, '{"a": 1', '{"a": 1}{"a": 1}', "{'a': 1}", "[1]", '"text"', "7"])
async def test_arguments_that_are_not_one_json_object_are_never_run(raw: str) -> None:
    content, code = await run("add", raw)
    assert code == "TOOL_INVALID_ARGUMENTS"
    assert "JSON" in content


@pytest.mark.parametrize("raw", ["", "  ", "null", "{}"])
def test_no_arguments_at_all_is_an_empty_object(raw: str) -> None:
    assert parse_arguments(raw) == {}


async def test_a_crash_is_an_error_result_that_tells_no_details() -> None:
    content, code = await run("crash")
    assert "the tool broke (ZeroDivisionError)" in content
    assert "secret" not in content
    assert code == "TOOL_EXECUTION_FAILED"


@pytest.mark.parametrize("name", ["leave", "give_up", "time_out_inside"])
async def test_no_way_of_ending_badly_gets_out_of_a_tool(name: str) -> None:
    content, code = await run(name)
    assert content.startswith("error: ")
    assert code == "TOOL_EXECUTION_FAILED"


async def test_a_deadline_ends_a_call_and_says_so() -> None:
    assert await run("dawdle") == (
        "error: dawdle timed out after 0.01 s. Do not repeat it unchanged. [TOOL_TIMEOUT]",
        "TOOL_TIMEOUT",
    )


async def test_a_timed_out_effect_may_have_happened_and_the_model_is_told() -> None:
    content, _ = await run("send_slowly")
    assert "may have been done all the same" in content


async def test_a_missing_capability_makes_a_tool_unavailable_with_the_reason() -> None:
    content, code = await run("look")
    assert "it needs Telescope" in content
    assert code == "TOOL_UNAVAILABLE"
    assert await run("look", "{}", {Telescope: object()}) == ("object", "ok")


async def test_results_come_in_call_order_whatever_finishes_first() -> None:
    gate = asyncio.Event()

    @tool
    async def first() -> str:
        """Waits for the second."""
        await gate.wait()
        return "one"

    @tool
    async def second() -> str:
        """Lets the first go."""
        gate.set()
        return "two"

    tools = toolset(first, second)
    batch = Batch([ToolCall("x", "first", ""), ToolCall("y", "second", "")])
    async with asyncio.timeout(5):
        await tools.run_batch(batch, [tool_context(), tool_context()])
    assert [result.content for result in results_of(batch)] == ["one", "two"]


async def test_a_cancelled_batch_still_has_one_result_for_each_call() -> None:
    started = asyncio.Event()

    @tool
    async def quick() -> str:
        """Is done at once."""
        return "done"

    @tool(may_have_happened=True)
    async def slow() -> str:
        """Waits for ever."""
        started.set()
        await asyncio.Event().wait()
        return "never"

    tools = toolset(quick, slow, ask_always)
    batch = Batch([ToolCall("x", "quick", ""), ToolCall("y", "slow", ""), ToolCall("z", "ask_always", "")])
    async with asyncio.timeout(5), asyncio.TaskGroup() as group:
        task = group.create_task(tools.run_batch(batch, [tool_context()] * 3))
        await started.wait()
        task.cancel()
    results = results_of(batch)
    assert [message.call_id for message in results] == ["x", "y", "z"]
    assert results[0].content == "done"
    assert "the call was cancelled. It may have been done all the same" in results[1].content
    assert "cancelled while it waited to be allowed: it was not done" in results[2].content
    assert [call.id for call, _ in batch.finished()] == ["x", "y", "z"]


async def test_a_call_that_waits_has_no_result_yet_and_the_others_run_to_their_end() -> None:
    clock = ManualClock(1000.0)
    tools = Toolset(ALL, clock=clock)
    asking = ToolCall("y", "ask_first", '{"what": "it"}')
    batch = Batch([ToolCall("x", "add", '{"a": 1}'), asking, ToolCall("z", "nobody", "")])
    await tools.run_batch(batch, [tool_context()] * 3)
    assert batch.results() is None
    assert batch.waiting() == (1,)
    assert [call.id for call, _ in batch.finished()] == ["x", "z"]
    digest = digest_call(asking, run_id="t0", asker=777)
    assert batch.answers()[1] == PendingCall(asking, "Do it?", 1060.0, digest)


async def test_only_open_calls_are_run_and_what_was_kept_is_no_news() -> None:
    kept = ToolMessage("x", "crash", "earlier")
    batch = Batch([ToolCall("x", "crash", ""), ToolCall("y", "ask_first", '{"what": "it"}')])
    batch.keep(0, kept)
    assert batch.open() == (1,)
    await toolset().run_batch(batch, [replace(tool_context(), allowed=True)] * 2)
    assert results_of(batch) == (kept, ToolMessage("y", "ask_first", "did it"))
    assert [call.id for call, _ in batch.finished()] == ["y"]


async def test_a_tool_that_asks_again_although_it_was_allowed_fails() -> None:
    with pytest.raises(Suspend):
        await toolset().execute(ToolCall("c", "ask_always", ""), tool_context())
    executed = await toolset().execute(ToolCall("c", "ask_always", ""), replace(tool_context(), allowed=True))
    assert "asked to be allowed what it had been allowed" in executed.message.content
    assert executed.code == "TOOL_EXECUTION_FAILED"


async def test_wrong_arguments_are_told_before_anybody_is_asked() -> None:
    assert (await run("ask_first", "{}"))[1] == "TOOL_INVALID_ARGUMENTS"


async def test_half_surrogates_reach_neither_a_result_nor_a_question() -> None:
    @tool
    async def echo(text: str) -> str:
        """Says it again."""
        return text

    tools = toolset(echo, ask_first)
    batch = Batch(
        [ToolCall("x", "echo", r'{"text": "a\ud800b 😀"}'), ToolCall("y", "ask_first", r'{"what": "\ud800"}')]
    )
    await tools.run_batch(batch, [tool_context()] * 2)
    result, asking = batch.answers()
    assert isinstance(result, ToolMessage)
    assert result.content == "a\ufffdb 😀"
    assert isinstance(asking, PendingCall)
    assert asking.asks == "Do \ufffd?"


@given(st.lists(st.sampled_from([tool.name for tool in ALL] + ["nobody", ""]), max_size=6), st.text(max_size=20))
def test_any_batch_gives_one_result_per_call_in_call_order(names: list[str], arguments: str) -> None:
    async def scenario() -> None:
        tools = toolset()
        made = [ToolCall(f"c{index}", name, arguments) for index, name in enumerate(names)]
        batch = Batch(made)
        await tools.run_batch(batch, [tool_context() for _ in made])
        answers = [answer.call if isinstance(answer, PendingCall) else answer for answer in batch.answers()]
        assert [answer.name for answer in answers] == names
        for index in batch.waiting():
            batch.keep(index, ToolMessage(made[index].id, made[index].name, "later"))
        assert [(result.call_id, result.name) for result in results_of(batch)] == [(c.id, c.name) for c in made]

    asyncio.run(scenario())


class Point(BaseModel):
    x: int


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "(no output)"),
        ("", "(no output)"),
        ("北京", "北京"),
        ({"城市": "北京"}, '{"城市": "北京"}'),
        ([1, "二"], '[1, "二"]'),
        (Point(x=1), '{"x":1}'),
        (3.5, "3.5"),
    ],
)
def test_whatever_a_tool_returns_becomes_text(value: object, text: str) -> None:
    assert render_result(value) == text


def test_a_long_result_keeps_head_and_tail_and_says_what_was_cut() -> None:
    text = shorten("a" * 100 + "z" * 100, 40)
    assert text.startswith("a" * 30)
    assert text.endswith("z" * 10)
    assert "[... 160 characters cut ...]" in text


async def test_a_long_result_is_shortened_before_the_model_reads_it() -> None:
    @tool
    async def flood() -> str:
        """Talks too much."""
        return "x" * 100_000

    tools = Toolset([flood], clock=ManualClock(), max_result=1000)
    executed = await tools.execute(ToolCall("c", "flood", ""), tool_context())
    assert len(executed.message.content) < 1100


async def test_calls_with_effects_run_one_after_the_other_in_call_order() -> None:
    said: list[str] = []

    @tool(may_have_happened=True)
    async def say(text: str) -> str:
        """Takes its time over the first."""
        for _ in range(20 if text == "first" else 0):
            await asyncio.sleep(0)
        said.append(text)
        return text

    tools = toolset(say)
    batch = Batch([ToolCall(text, "say", f'{{"text": "{text}"}}') for text in ("first", "second", "third")])
    await tools.run_batch(batch, [tool_context()] * 3)
    assert said == ["first", "second", "third"]


async def test_more_calls_than_one_step_may_have_are_refused_not_run() -> None:
    ran = 0

    @tool(may_have_happened=True)
    async def spam() -> str:
        """Counts."""
        nonlocal ran
        ran += 1
        return "sent"

    tools = toolset(spam)
    batch = Batch([ToolCall(str(index), "spam", "") for index in range(200)])
    await tools.run_batch(batch, [tool_context()] * 200)
    results = batch.results()
    assert results is not None
    assert ran == MAX_CALLS
    assert [result.is_error for result in results] == [False] * MAX_CALLS + [True] * (200 - MAX_CALLS)
    assert "[TOOL_DENIED]" in results[-1].content
