"""How long calls take and wait, when their results are told, and how hooks stop a run around them."""

from __future__ import annotations

import asyncio
from typing import Any

from msgspec.structs import replace

from frostagent.engine.call_executor import Batch, CallExecutor
from frostagent.engine.call_state import CallTotals
from frostagent.engine.toolset import Toolset
from frostagent.types.errors import ToolDenied
from frostagent.types.hooks import BeforeCall, Hook, Rewrite, StopRun
from frostagent.types.messages import ToolCall, ToolMessage
from frostagent.types.results import ToolResult
from frostagent.types.runs import PendingCall
from frostagent.types.suspension import Allow, ApprovalRequest, Deny, Suspend
from frostagent.types.tools import Tool, tool
from frostagent.types.traits import Execution
from tests.cases import each_case
from tests.fakes import ManualClock, tool_context
from tests.frostagent.engine.test_call_executor import counted, run
from tests.frostagent.toolbox import add, ask_always, ask_first, calls_of, toolset

# --- how long it took, and when it is told ----------------------------------------------------------


def taking(clock: ManualClock, seconds: float, **declared: Any) -> Tool:
    """A tool that takes its time."""

    @tool(**declared)
    async def work() -> str:
        """Works."""
        clock.time += seconds
        return "worked"

    return work


def times(batch: Batch) -> list[tuple[float, float]]:
    return [(executed.seconds, executed.waited) for _, executed in batch.finished()]


async def test_a_call_takes_as_long_as_its_own_body_and_its_turn_is_waited_for() -> None:
    clock = ManualClock(1000.0)
    tools = Toolset([taking(clock, 0.25, side_effects="write")], clock=clock)
    batch = calls_of("work", "work", "work", "nobody")
    await run(batch, tools)
    assert times(batch) == [(0.25, 0.0), (0.25, 0.25), (0.25, 0.5), (0.0, 0.0)]


@each_case(("answer", "expected"), [(Allow(), (0.25, 8.0)), (Deny("no"), (0.0, 8.0))])
async def test_what_an_approver_takes_is_waited_for(answer: Allow | Deny, expected: tuple[float, float]) -> None:
    clock = ManualClock(1000.0)

    class Slow:
        async def approve(self, request: ApprovalRequest) -> Allow | Deny:
            clock.time += 8
            return answer

    tools = Toolset([taking(clock, 0.25)], clock=clock, approve={"work"})
    batch = calls_of("work")
    await run(batch, tools, approver=Slow())
    assert times(batch) == [expected]


async def test_a_body_that_fails_or_is_cut_off_took_its_time_too() -> None:
    clock = ManualClock(1000.0)
    started = asyncio.Event()

    @tool
    async def fail() -> str:
        """Fails."""
        clock.time += 2
        raise LookupError

    @tool
    async def hang() -> str:
        """Never ends."""
        clock.time += 4
        started.set()
        await asyncio.Event().wait()
        return "never"

    batch = calls_of("fail", "hang", "hang")
    executor = CallExecutor(Toolset([fail, hang], clock=clock), execution=Execution.SEQUENTIAL)
    async with asyncio.timeout(30), asyncio.TaskGroup() as group:
        task = group.create_task(executor.run(batch, [tool_context()] * 3))
        await started.wait()
        task.cancel()
    assert times(batch) == [(2.0, 0.0), (4.0, 2.0), (0.0, 6.0)]


async def test_the_wait_for_a_word_counts_over_the_segments_of_a_run() -> None:
    clock = ManualClock(1000.0)
    tools = Toolset([ask_first, taking(clock, 3, side_effects="write")], clock=clock)
    batch = Batch([ToolCall("w", "work", ""), ToolCall("c", "ask_first", '{"what": "it"}')])
    await CallExecutor(tools).run(batch, [tool_context()] * 2)
    pending = batch.answers()[1]
    assert isinstance(pending, PendingCall)
    assert pending.since == 1000.0
    clock.time = 1060.0
    later = Batch([pending.call, pending.call])
    later.allow(0, pending)
    later.deny(1, ToolDenied("no"), replace(pending, since=0.0))
    await CallExecutor(tools).run(later, [replace(tool_context(), allowed=True)] * 2)
    assert times(later) == [(0.0, 60.0), (0.0, 0.0)]


async def test_a_wait_began_when_its_call_did_however_long_it_took_to_ask() -> None:
    clock = ManualClock(1000.0)

    @tool
    async def ask_late() -> str:
        """Thinks before it asks."""
        clock.time += 5
        raise Suspend("Really?", seconds=60)

    batch = calls_of("ask_late")
    await CallExecutor(Toolset([ask_late], clock=clock)).run(batch, [tool_context()])
    pending = batch.answers()[0]
    assert isinstance(pending, PendingCall)
    assert (pending.since, pending.expires) == (1000.0, 1065.0)


async def test_a_wait_whose_tool_is_gone_has_its_after_all_the_same() -> None:
    asked: list[str] = []
    hooks = Hook(before_call=lambda _: asked.append("before"), after_call=lambda event: asked.append(event.error or ""))
    call = ToolCall("c", "ask_first", '{"what": "it"}')
    batch = Batch([call])
    batch.allow(0, PendingCall(call, "Do it?", 2000.0, "", call.arguments))
    tools = Toolset([add], clock=ManualClock(), hooks=[hooks])
    await CallExecutor(tools).run(batch, [replace(tool_context(), allowed=True)])
    (told,) = asked
    assert told.endswith("[TOOL_NOT_FOUND]")


async def test_what_a_barrier_refuses_is_told_before_what_still_runs() -> None:
    told: list[str] = []

    @tool(side_effects="external")
    async def send() -> str:
        """Asks first."""
        raise Suspend("Send it?", seconds=60)

    @tool
    async def look() -> str:
        """Has been allowed, so it runs."""
        assert told == ["c1"]
        return "seen"

    batch = Batch([ToolCall("c0", "send", ""), ToolCall("c1", "add", '{"a": 1}'), ToolCall("c2", "look", "")])
    contexts = [tool_context(), tool_context(), replace(tool_context(), allowed=True)]
    executor = CallExecutor(Toolset([send, add, look]), on_result=lambda call, _output: told.append(call.id))
    await executor.run(batch, contexts)
    assert told == ["c1", "c2"]
    results = [answer for answer in batch.answers() if isinstance(answer, ToolMessage)]
    assert [result.code for result in results] == ["TOOL_DENIED", ""]


async def test_results_are_told_as_they_come_and_each_once() -> None:
    told: list[tuple[str, str]] = []
    fast_is_told = asyncio.Event()

    @tool
    async def slow() -> str:
        """Ends once the other one's result is told."""
        await fast_is_told.wait()
        return "slow"

    @tool
    async def fast() -> str:
        """Ends first."""
        return "fast"

    def tell(call: ToolCall, output: str) -> None:
        told.append((call.id, output))
        if output == "fast":
            fast_is_told.set()

    batch = calls_of("slow", "fast", "add", "ask_always")
    tools = Toolset([slow, fast, add, ask_always], clock=ManualClock())
    async with asyncio.timeout(30):
        await CallExecutor(tools, on_result=tell).run(batch, [tool_context()] * 4)
    assert told == [("c2", "error: a: required [TOOL_INVALID_ARGUMENTS]"), ("c1", "fast"), ("c0", "slow")]
    assert [executed.message.content for _, executed in batch.finished()] == ["slow", "fast", told[0][1]]


async def test_where_a_hook_may_rewrite_results_they_are_told_after_it_in_call_order() -> None:
    told: list[str] = []
    hooks = Hook(after_call=lambda event: Rewrite(ToolResult(event.output.content + "!")))
    tools = Toolset([add, ask_first], clock=ManualClock(), hooks=[hooks])
    batch = Batch([ToolCall("x", "add", '{"a": 1}'), ToolCall("y", "add", '{"a": 2}'), ToolCall("z", "nobody", "")])
    await CallExecutor(tools, on_result=lambda call, output: told.append(f"{call.id} {output[:6]}")).run(
        batch, [tool_context()] * 3
    )
    assert told == ["z error:", "x 2!", "y 3!"]


async def test_a_cancelled_calls_result_is_told_too() -> None:
    told: list[str] = []
    started = asyncio.Event()

    @tool
    async def hang() -> str:
        """Never ends."""
        started.set()
        await asyncio.Event().wait()
        return "never"

    executor = CallExecutor(toolset(hang), on_result=lambda call, output: told.append(output))
    async with asyncio.timeout(30), asyncio.TaskGroup() as group:
        task = group.create_task(executor.run(calls_of("hang"), [tool_context()]))
        await started.wait()
        task.cancel()
    assert told == ["error: the call was cancelled. [TOOL_CANCELLED]"]


# --- stopped by a hook ------------------------------------------------------------------------------


async def test_a_hook_that_stops_the_run_before_a_call_stops_the_whole_step() -> None:
    look, runs = counted()
    asked: list[str] = []

    def before(event: BeforeCall) -> StopRun | None:
        asked.append(f"before {event.metadata['call']}")
        return StopRun("enough") if event.input["where"] == "there" else None

    hooks = Hook(before_call=before, after_call=lambda event: asked.append(f"after {event.error}"))
    tally, tools = CallTotals(), Toolset([look], clock=ManualClock(), hooks=[hooks])
    batch = Batch([ToolCall(where, "look", f'{{"where": "{where}"}}') for where in ("here", "there", "anywhere")])
    results = await run(batch, tools, tally)
    stopped = "error: the run was stopped here: the call was not done. [TOOL_CANCELLED]"
    assert [result.content for result in results] == [stopped] * 3
    assert (runs, tally.stop) == ([], StopRun("enough"))
    assert asked == ["before c0", "before c0", f"after {stopped}", f"after {stopped}"]


async def test_where_a_hook_stops_the_run_after_a_call_what_waits_waits_no_more() -> None:
    done: list[str] = []
    hooks = Hook(after_call=lambda event: StopRun("enough") if event.name == "add" else done.append(event.name))
    tools, tally = Toolset([ask_first, add], clock=ManualClock(), hooks=[hooks]), CallTotals()
    batch = Batch([ToolCall("x", "ask_first", '{"what": "it"}'), ToolCall("y", "add", '{"a": 1}')])
    results = await run(batch, tools, tally)
    assert [result.code for result in results] == ["TOOL_CANCELLED", ""]
    assert (batch.waiting(), done, tally.stop) == ((), ["ask_first"], StopRun("enough"))


@each_case("most", [1, 3])
async def test_how_many_calls_of_a_step_are_run_can_be_chosen(most: int) -> None:
    look, runs = counted()
    results = await run(calls_of(*["look"] * 5), Toolset([look], clock=ManualClock()), max_calls=most)
    assert len(runs) == most
    assert [result.code for result in results] == [""] * most + ["TOOL_DENIED"] * (5 - most)
    assert f"only {most} calls are run in one step" in results[-1].content
