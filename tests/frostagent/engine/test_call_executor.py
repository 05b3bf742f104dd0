from __future__ import annotations

import asyncio
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from frostagent.engine.call_executor import AT_ONCE, MAX_CALLS, Batch, CallExecutor
from frostagent.engine.call_state import MAX_RESULTS, CallTotals
from frostagent.engine.toolset import Toolset
from frostagent.types.hooks import AfterCall, BeforeCall, Hook
from frostagent.types.messages import ToolCall, ToolMessage
from frostagent.types.ports import Approver
from frostagent.types.runs import PendingCall
from frostagent.types.suspension import Allow, ApprovalRequest, digest_call
from frostagent.types.tools import Tool, tool
from frostagent.types.traits import Execution, SideEffects
from tests.cases import each_case
from tests.fakes import ManualClock, tool_context
from tests.frostagent.toolbox import ALL, add, ask_always, ask_first, calls_of, results_of, toolset


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
    async with asyncio.timeout(30):
        await CallExecutor(tools).run(batch, [tool_context(), tool_context()])
    assert [result.content for result in results_of(batch)] == ["one", "two"]


async def test_a_cancelled_batch_still_has_one_result_for_each_call() -> None:
    started = asyncio.Event()

    @tool
    async def quick() -> str:
        """Is done at once."""
        return "done"

    @tool(side_effects="external")
    async def slow() -> str:
        """Waits for ever."""
        started.set()
        await asyncio.Event().wait()
        return "never"

    tools = toolset(quick, slow, ask_always)
    batch = Batch([ToolCall("x", "quick", ""), ToolCall("y", "ask_always", ""), ToolCall("z", "slow", "")])
    async with asyncio.timeout(30), asyncio.TaskGroup() as group:
        task = group.create_task(CallExecutor(tools).run(batch, [tool_context()] * 3))
        await started.wait()
        task.cancel()
    results = results_of(batch)
    assert [message.call_id for message in results] == ["x", "y", "z"]
    assert results[0].content == "done"
    assert "cancelled while it waited to be allowed: it was not done" in results[1].content
    assert "the call was cancelled. It may have been done all the same" in results[2].content
    assert [call.id for call, _ in batch.finished()] == ["x", "y", "z"]


@each_case(("declared", "waits"), [("read", False), ("undeclared", True), ("write", True)])
async def test_a_call_that_may_change_something_waits_until_it_is_written_down(declared: str, waits: bool) -> None:
    events: list[str] = []

    @tool(side_effects=SideEffects(declared))
    async def act() -> str:
        """Does something."""
        events.append("did")
        return "done"

    async def recorded() -> None:
        events.append("recorded")

    calls = CallExecutor(toolset(act), recorded=recorded)
    batch = Batch([ToolCall("x", "act", ""), ToolCall("y", "act", "")])
    await calls.run(batch, [tool_context()] * 2)
    assert events == ["recorded", "did", "did"][0 if waits else 1 :]


async def test_nothing_is_waited_for_where_no_call_will_run() -> None:
    async def recorded() -> None:
        pytest.fail("there is nothing to write down")

    batch = Batch([ToolCall("x", "nobody", ""), ToolCall("y", "add", "no arguments")])
    await CallExecutor(toolset(), recorded=recorded).run(batch, [tool_context()] * 2)
    assert [result.is_error for result in results_of(batch)] == [True, True]


async def test_a_call_that_is_cancelled_while_it_is_written_down_was_not_begun() -> None:
    waiting = asyncio.Event()

    async def recorded() -> None:
        waiting.set()
        await asyncio.Event().wait()

    @tool(side_effects="external")
    async def act() -> str:
        """Does something."""
        pytest.fail("it was begun")

    batch = Batch([ToolCall("x", "act", "")])
    async with asyncio.timeout(30), asyncio.TaskGroup() as group:
        task = group.create_task(CallExecutor(toolset(act), recorded=recorded).run(batch, [tool_context()]))
        await waiting.wait()
        task.cancel()
    assert [result.content for result in results_of(batch)] == ["error: the call was cancelled. [TOOL_CANCELLED]"]


async def test_a_call_that_waits_has_no_result_yet_and_the_others_run_to_their_end() -> None:
    clock = ManualClock(1000.0)
    tools = Toolset(ALL, clock=clock)
    asking = ToolCall("y", "ask_first", '{"what": "it"}')
    batch = Batch([ToolCall("x", "add", '{"a": 1}'), asking, ToolCall("z", "nobody", "")])
    await CallExecutor(tools).run(batch, [tool_context()] * 3)
    assert batch.results() is None
    assert batch.waiting() == (1,)
    assert [call.id for call, _ in batch.finished()] == ["x", "z"]
    digest = digest_call(asking, run_id="t0", asker="777", arguments=asking.arguments)
    assert batch.answers()[1] == PendingCall(asking, "Do it?", 1060.0, digest, '{"what": "it"}', since=1000.0)


async def test_only_open_calls_are_run_and_what_was_kept_is_no_news() -> None:
    kept = ToolMessage("x", "crash", "earlier")
    batch = Batch([ToolCall("x", "crash", ""), ToolCall("y", "ask_first", '{"what": "it"}')])
    batch.keep(0, kept)
    assert batch.open() == (1,)
    await CallExecutor(toolset()).run(batch, [replace(tool_context(), allowed=True)] * 2)
    assert results_of(batch) == (kept, ToolMessage("y", "ask_first", "did it"))
    assert [call.id for call, _ in batch.finished()] == ["y"]


async def test_half_surrogates_reach_neither_a_tool_nor_a_result_nor_a_question() -> None:
    heard: list[str] = []

    @tool
    async def echo(text: str) -> str:
        """Says something else."""
        heard.append(text)
        return "a\ud800b 😀"

    calls = [
        ToolCall("x", "echo", '{"text": "well"}'),
        ToolCall("y", "echo", r'{"text": "a\ud800b"}'),
        ToolCall("z", "ask_first", r'{"what": "\ud800"}'),
    ]
    batch = Batch(calls)
    await CallExecutor(toolset(echo, ask_first)).run(batch, [tool_context()] * 3)
    said, refused, unasked = results_of(batch)
    assert said.content == "a\ufffdb 😀"
    assert heard == ["well"]
    for result in (refused, unasked):
        assert result.is_error
        assert "half of a character" in result.content


@given(st.lists(st.sampled_from([tool.name for tool in ALL] + ["nobody", ""]), max_size=6), st.text(max_size=20))
def test_any_batch_gives_one_result_per_call_in_call_order(names: list[str], arguments: str) -> None:
    async def scenario() -> None:
        tools = toolset()
        made = [ToolCall(f"c{index}", name, arguments) for index, name in enumerate(names)]
        batch = Batch(made)
        await CallExecutor(tools).run(batch, [tool_context() for _ in made])
        answers = [answer.call if isinstance(answer, PendingCall) else answer for answer in batch.answers()]
        assert [answer.name for answer in answers] == names
        for index in batch.waiting():
            batch.keep(index, ToolMessage(made[index].id, made[index].name, "later"))
        assert [(result.call_id, result.name) for result in results_of(batch)] == [(c.id, c.name) for c in made]

    asyncio.run(scenario())


async def test_calls_with_effects_run_one_after_the_other_in_call_order() -> None:
    said: list[str] = []

    @tool(side_effects="external")
    async def say(text: str) -> str:
        """Takes its time over the first."""
        for _ in range(20 if text == "first" else 0):
            await asyncio.sleep(0)
        said.append(text)
        return text

    tools = toolset(say)
    batch = Batch([ToolCall(text, "say", f'{{"text": "{text}"}}') for text in ("first", "second", "third")])
    await CallExecutor(tools).run(batch, [tool_context()] * 3)
    assert said == ["first", "second", "third"]


async def test_more_calls_than_one_step_may_have_are_refused_not_run() -> None:
    ran = 0

    @tool(side_effects="external")
    async def spam() -> str:
        """Counts."""
        nonlocal ran
        ran += 1
        return "sent"

    tools = toolset(spam)
    batch = Batch([ToolCall(str(index), "spam", "") for index in range(200)])
    await CallExecutor(tools).run(batch, [tool_context()] * 200)
    results = batch.results()
    assert results is not None
    assert ran == MAX_CALLS
    assert [result.is_error for result in results] == [False] * MAX_CALLS + [True] * (200 - MAX_CALLS)
    assert "[TOOL_DENIED]" in results[-1].content


async def run(
    batch: Batch, tools: Toolset, tally: CallTotals | None = None, *, approver: Approver | None = None, **settings: Any
) -> tuple[ToolMessage, ...]:
    context = tool_context({Approver: approver} if approver else {})
    async with asyncio.timeout(30):
        await CallExecutor(tools, **settings).run(batch, [context] * len(batch.calls), tally)
    return results_of(batch)


# --- order ----------------------------------------------------------------------------------------


class Track:
    """Tools that write down when they begin and end, each with its own name."""

    def __init__(self, **declared: dict[str, Any]) -> None:
        self.told: list[str] = []
        self.tools = [self._make(name, given) for name, given in declared.items()]

    def _make(self, name: str, declared: dict[str, Any]) -> Tool:
        @tool(name=name, **declared)
        async def work() -> str:
            """Takes some turns of the loop."""
            self.told.append(f"{name}(")
            for _ in range(5):
                await asyncio.sleep(0)
            self.told.append(f"){name}")
            return name

        assert isinstance(work, Tool)
        return work

    def hooks(self) -> Hook:
        def before(event: BeforeCall) -> None:
            self.told.append(f"before {event.name}")

        async def after(event: AfterCall) -> None:
            await asyncio.sleep(0)
            self.told.append(f"after {event.name}")

        return Hook(before_call=before, after_call=after)


async def test_hooks_run_in_source_order_around_all_bodies_which_run_side_by_side() -> None:
    track = Track(a={}, b={})
    results = await run(calls_of("a", "b"), Toolset(track.tools, clock=ManualClock(), hooks=[track.hooks()]))
    assert track.told == ["before a", "before b", "a(", "b(", ")a", ")b", "after a", "after b"]
    assert [result.content for result in results] == ["a", "b"]


async def test_a_call_with_effects_waits_for_those_before_it_and_those_after_it_wait_for_it() -> None:
    track = Track(a={}, b={}, send={"side_effects": "external"}, c={}, d={})
    await run(calls_of("a", "b", "send", "c", "d"), Toolset(track.tools, clock=ManualClock()))
    assert track.told == ["a(", "b(", ")a", ")b", "send(", ")send", "c(", "d(", ")c", ")d"]


async def test_one_sequential_tool_or_the_whole_loop_makes_the_calls_of_a_step_take_turns() -> None:
    turns = ["a(", ")a", "b(", ")b", "c(", ")c"]
    track = Track(a={}, b={"execution": "sequential"}, c={})
    await run(calls_of("a", "b", "c"), Toolset(track.tools, clock=ManualClock()))
    assert track.told == turns
    track = Track(a={}, b={}, c={})
    await run(calls_of("a", "b", "c"), Toolset(track.tools, clock=ManualClock()), execution=Execution.SEQUENTIAL)
    assert track.told == turns


async def test_no_more_bodies_run_at_once_than_agreed() -> None:
    track = Track(a={})
    await run(calls_of(*["a"] * MAX_CALLS), Toolset(track.tools, clock=ManualClock()))
    assert track.told[: AT_ONCE + 1] == [*["a("] * AT_ONCE, ")a"]


async def test_while_one_call_waits_for_a_word_the_others_run() -> None:
    asked, told = asyncio.Event(), asyncio.Event()

    class Terminal:
        async def approve(self, request: ApprovalRequest) -> Allow:
            asked.set()
            await told.wait()
            return Allow()

    @tool
    async def tell() -> str:
        """Gives the word."""
        await asked.wait()
        told.set()
        return "told"

    tools = Toolset([add, tell], clock=ManualClock(), approve={"add"})
    batch = Batch([ToolCall("x", "add", '{"a": 1}'), ToolCall("y", "tell", "")])
    results = await run(batch, tools, approver=Terminal())
    assert [result.content for result in results] == ["2", "told"]


# --- over steps -----------------------------------------------------------------------------------


def counted(**declared: Any) -> tuple[Tool, list[str]]:
    """A tool that takes down each of its runs."""
    runs: list[str] = []

    @tool(**{"side_effects": "read", "idempotent": True, **declared})
    async def look(where: str = "here") -> str:
        """Looks."""
        runs.append(where)
        return f"saw {where}"

    assert isinstance(look, Tool)
    return look, runs


async def test_the_same_call_again_gets_what_it_gave_then_an_error_then_ends_the_run() -> None:
    look, runs = counted()
    tools, tally = Toolset([look], clock=ManualClock()), CallTotals()
    told = [(await run(calls_of("look"), tools, tally))[0].content for _ in range(4)]
    assert told[0] == "saw here"
    assert told[1].endswith("\nsaw here")
    assert "called this before" in told[1]
    assert [text.rpartition(" ")[2] for text in told[2:]] == ["[TOOL_DENIED]"] * 2
    assert (runs, tally.is_over) == (["here"], True)


async def test_twice_in_one_step_after_a_write_or_where_a_tool_may_be_repeated_the_call_is_made() -> None:
    look, runs = counted()
    track = Track(send={"side_effects": "write"})
    tools, tally = Toolset([look, *track.tools], clock=ManualClock()), CallTotals()
    await run(calls_of("look", "look"), tools, tally)
    await run(calls_of("send"), tools, tally)
    await run(calls_of("look"), tools, tally)
    assert len(runs) == 3
    for declared in ({"repeatable": True}, {"idempotent": False}, {"side_effects": "undeclared"}):
        again, again_runs = counted(**declared)
        tools, tally = Toolset([again], clock=ManualClock()), CallTotals()
        for _ in range(4):
            await run(calls_of("look"), tools, tally)
        assert len(again_runs) == 4


async def test_a_tool_called_wrongly_three_times_in_a_row_is_not_run_any_more_but_stays_listed() -> None:
    tools, tally = toolset(add), CallTotals()
    for _ in range(3):
        await run(calls_of("add"), tools, tally)
    (result,) = await run(Batch([ToolCall("x", "add", '{"a": 1}')]), tools, tally)
    assert "three times in a row" in result.content
    assert [spec.name for spec in tools.definitions()] == ["add"]


async def test_all_results_of_a_run_together_have_a_cap_and_each_has_something() -> None:
    @tool
    async def flood() -> str:
        """Talks too much."""
        return "x" * 7000

    tally = CallTotals()
    await run(calls_of(*["flood"] * 12), toolset(flood), tally)
    results = await run(calls_of(*["flood"] * 8), toolset(flood), tally)
    assert all("characters cut" in result.content for result in results)
    assert all(200 < len(result.content) < 300 for result in results)
    assert MAX_RESULTS - 8000 < MAX_RESULTS - tally.left <= MAX_RESULTS
