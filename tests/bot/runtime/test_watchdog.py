"""A loop that stands still is noticed, with what it was doing; one that turns is not."""

from __future__ import annotations

import asyncio
import linecache
import threading
import time
from collections.abc import Callable

import pytest

from bot.runtime import watchdog
from bot.runtime.watchdog import Watchdog, doing
from frostagent.clock import SystemClock
from tests.fakes import until


class LateClock(SystemClock):
    """Each wait takes as much longer as the test says."""

    def __init__(self, *late: float) -> None:
        self._late = list(late)
        self._now = 0.0

    def monotonic(self) -> float:
        return self._now

    async def sleep(self, seconds: float) -> None:
        if not self._late:
            await asyncio.Event().wait()
        self._now += seconds + self._late.pop(0)
        await asyncio.sleep(0)


async def watched(*late: float) -> list[float]:
    """What is told of a loop whose ticks come so late."""
    told: list[float] = []
    clock = LateClock(*late)
    dog = Watchdog(clock=clock, stalled=told.append)
    async with asyncio.TaskGroup() as group:
        task = group.create_task(dog.run())
        await until(lambda: not clock._late)
        for _ in range(3):
            await asyncio.sleep(0)
        task.cancel()
    return told


async def test_a_stall_of_more_than_a_second_is_told_and_counted_and_no_shorter_one(
    caplog: pytest.LogCaptureFixture,
) -> None:
    assert await watched(0.0, 0.9, 1.0, 2.5, 0.0, 1.5) == pytest.approx([2.5, 1.5])
    told = [record.getMessage() for record in caplog.records]
    assert [line.partition(",")[0] for line in told] == [
        "the event loop stood still for 2.5 s",
        "the event loop stood still for 1.5 s",
    ]


async def test_it_says_what_the_loop_was_doing(caplog: pytest.LogCaptureFixture) -> None:
    told: list[float] = []
    dog = Watchdog(clock=SystemClock(), stalled=told.append, stall=0.05)

    def ponder(until: Callable[[], object]) -> None:
        while not until():
            pass

    async with asyncio.TaskGroup() as group:
        task = group.create_task(dog.run())
        await asyncio.sleep(0)
        ponder(lambda: dog._seen)  # holds the loop until the other thread has looked
        await until(lambda: told)
        task.cancel()
    assert "test_watchdog.py" in caplog.text
    assert " ponder" in caplog.text


class CountingClock(SystemClock):
    """Counts how often the thread has looked."""

    def __init__(self) -> None:
        self.looks = 0

    def monotonic(self) -> float:
        self.looks += threading.current_thread().name == "watchdog"
        return time.monotonic()


async def test_one_that_does_not_end_is_told_once_while_it_lasts(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watchdog, "TICK", 0.01)
    clock = CountingClock()
    dog = Watchdog(clock=clock, stalled=lambda _: None, stall=0.01)
    async with asyncio.TaskGroup() as group:
        task = group.create_task(dog.run())
        await asyncio.sleep(0)
        while "the event loop stands still for" not in caplog.text:
            pass
        looks = clock.looks
        while clock.looks < looks + 5:
            pass
        task.cancel()
    assert caplog.text.count("the event loop stands still for") == 1


def is_watched() -> bool:
    return "watchdog" in {thread.name for thread in threading.enumerate()}


async def test_its_thread_ends_with_it() -> None:
    await until(lambda: not is_watched())  # that of the test before may just be ending
    await watched(0.0)
    await until(lambda: not is_watched())


def test_a_thread_that_is_gone_does_nothing() -> None:
    assert doing(-1) == ""
    assert doing(threading.get_ident()).endswith("doing")


def test_looking_at_what_a_thread_does_keeps_no_source_in_memory() -> None:
    linecache.clearcache()
    assert doing(threading.get_ident()).endswith("doing")
    assert not linecache.cache
