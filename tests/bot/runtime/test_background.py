from __future__ import annotations

import asyncio
import logging
from functools import partial

import pytest

from bot.runtime.background import RETRY, Background, StartupLoader, run_background
from tests.fakes import SteppedClock, until


async def test_loops_run_while_the_block_does_and_one_may_end_before() -> None:
    said = list[str]()

    async def short() -> None:
        said.append("short")

    async def long() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            said.append("long")

    async with run_background((Background("short", short), Background("long", long))):
        await until(lambda: said == ["short"])
    assert said == ["short", "long"]


async def test_a_loop_that_fails_is_named_and_ends_the_block(caplog: pytest.LogCaptureFixture) -> None:
    async def broken() -> None:
        raise ValueError("x")

    with caplog.at_level(logging.CRITICAL), pytest.raises(ExceptionGroup) as raised:
        async with run_background((Background("broken", broken),)):
            await asyncio.Event().wait()
    assert raised.group_contains(ValueError)
    assert caplog.messages == ["the background loop 'broken' failed"]


async def test_what_cannot_be_loaded_at_the_start_is_tried_until_it_can_and_stops_nothing_else() -> None:
    clock, tries = SteppedClock(), list[str]()
    fails = {"first": 1, "second": 3, "third": 0}

    async def load(name: str) -> bool:
        tries.append(name)
        fails[name] -= 1
        return fails[name] < 0

    loader = StartupLoader([partial(load, name) for name in fails], clock=clock)
    await loader.start()
    assert tries == ["first", "second", "third"]
    async with asyncio.TaskGroup() as group:
        running = group.create_task(loader.run())
        for _ in range(3):
            await clock.advance(RETRY)
        await running
    assert tries[3:] == ["first", "second", "second", "second"]
    await StartupLoader((), clock=clock).run()
