from __future__ import annotations

import asyncio
import contextvars
import threading

import pytest
from msgspec.structs import replace

from frostagent.engine.tool_execution import Progress, Threads
from frostagent.types.errors import ToolUnavailable
from frostagent.types.results import ToolResult
from tests.fakes import tool_context

COLOUR: contextvars.ContextVar[str] = contextvars.ContextVar("COLOUR")


async def test_a_function_runs_beside_the_loop_in_the_context_of_its_call() -> None:
    COLOUR.set("red")
    ident, colour, total = await Threads().run(
        lambda a, *, b: (threading.get_ident(), COLOUR.get(), a + b),
        1,
        b=2,
    )
    assert ident != threading.get_ident()
    assert (colour, total) == ("red", 3)


async def test_what_a_function_raises_is_raised_where_it_is_waited_for() -> None:
    def leave() -> None:
        raise SystemExit(3)

    with pytest.raises(SystemExit):
        await Threads().run(leave)


async def test_an_iterator_at_its_end_is_an_error_like_any_other() -> None:
    async with asyncio.timeout(30):
        with pytest.raises(RuntimeError, match="StopIteration"):
            await Threads().run(lambda: next(iter([])))


async def test_calls_that_hang_use_up_their_own_places_and_not_those_of_the_loop() -> None:
    threads, gate, begun = Threads(most=1), threading.Event(), threading.Event()

    def hang() -> None:
        begun.set()
        gate.wait(5)

    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.01):
            await threads.run(hang)
    with pytest.raises(ToolUnavailable, match="too many calls"):
        await threads.run(int)
    assert await asyncio.to_thread(begun.is_set)
    gate.set()
    async with asyncio.timeout(30):
        while True:
            try:
                assert await threads.run(int) == 0
                break
            except ToolUnavailable:
                await asyncio.sleep(0)


async def test_progress_adds_to_details_of_any_kind() -> None:
    heard: list[ToolResult] = []
    context = replace(tool_context(), reports=Progress(heard.append))
    context.progress(ToolResult("half", details=["a"]), percent=50)
    context.progress(ToolResult("half", details={"a": 1}), percent=50)
    context.progress(ToolResult("half", details="words"))
    assert [each.details for each in heard] == [{"details": ["a"], "percent": 50}, {"a": 1, "percent": 50}, "words"]
