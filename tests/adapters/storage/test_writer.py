"""The queue: when it is written, what is promised, what is dropped, what is told. The database is a script."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing as closing_it
from pathlib import Path
from typing import Any

import pytest

from adapters.storage import writer as module
from adapters.storage.ahead import FEW
from adapters.storage.writer import BUSY, ENOUGH, MANY, QUIET, Writer
from bot.core.journal import Entry, RunResumed
from frostagent.clock import SystemClock
from tests.adapters.storage.desk import Desk, ScriptedBatches, desk, ready
from tests.adapters.storage.entries import heard
from tests.fakes import ManualClock, until
from tests.owners import read


def entries(count: int, make: Callable[[str], Entry] = RunResumed) -> list[Entry]:
    return [make(str(number)) for number in range(count)]


# --- when -----------------------------------------------------------------------------------------


async def test_what_nobody_waits_for_is_written_soon_and_together() -> None:
    async with desk() as at:
        given = entries(20)
        for entry in given:
            at.writer.put(entry)
        assert at.batches.attempts == 0
        async with asyncio.timeout(0.1):
            await until(lambda: at.batches.written == given)
        assert at.batches.sizes == [20]


async def test_many_entries_do_not_wait_for_the_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "GATHER", 60.0)
    async with desk() as at:
        at.writer.put(*entries(ENOUGH - 1))
        await asyncio.sleep(0)
        assert at.batches.attempts == 0
        at.writer.put(*entries(1))
        await until(lambda: len(at.batches.written) == ENOUGH)


async def test_a_commit_is_written_at_once_with_all_that_was_put_before(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "GATHER", 60.0)
    async with desk() as at:
        first, second, third = entries(3)
        at.writer.put(first)
        assert await at.writer.commit(second, third)
        assert at.batches.written == [first, second, third]
        assert at.batches.sizes == [3]


async def test_nothing_is_written_ahead_beside_a_batch(tmp_path: Path) -> None:
    """Whether that will be written, and whether it is in order, is not known yet."""
    with closing_it(ready(tmp_path)) as ahead:
        async with desk(ahead=ahead) as at, asyncio.TaskGroup() as group:
            assert await at.writer.commit(RunResumed("first"))
            at.batches.going_on.clear()
            at.writer.put(*entries(ENOUGH))
            await until(lambda: at.batches.attempts > 0)
            last = group.create_task(at.writer.commit(RunResumed("last")))
            await asyncio.sleep(0)
            assert [put.entry for put in ahead.left(0)] == [RunResumed("first")]
            at.batches.going_on.set()
            assert await last


async def test_nothing_is_written_ahead_of_what_somebody_waits_for(tmp_path: Path) -> None:
    with closing_it(ready(tmp_path)) as ahead:
        async with desk(ahead=ahead) as at, asyncio.TaskGroup() as group:
            group.create_task(at.writer.commit(*entries(FEW + 1)))
            group.create_task(at.writer.commit(RunResumed("last")))
        assert ahead.left(0) == []
        assert at.batches.written == [*entries(FEW + 1), RunResumed("last")]


async def test_what_was_promised_is_never_dropped(tmp_path: Path) -> None:
    with closing_it(ready(tmp_path)) as ahead:
        async with desk(ahead=ahead, limit=10) as at:
            at.batches.failure = "disk full"
            promised = heard(message_id="promised")
            assert await at.writer.commit(promised)
            at.writer.put(*[heard(message_id=str(number)) for number in range(30)])
            at.batches.failure = ""
            await until(lambda: promised in at.batches.written)


async def test_what_was_written_ahead_is_not_told_as_lost_at_the_end(tmp_path: Path) -> None:
    with closing_it(ready(tmp_path)) as ahead:
        async with desk(ahead=ahead) as at:
            at.batches.failure = "disk full"
            assert await at.writer.commit(RunResumed("kept"))
            at.writer.put(RunResumed("lost"))
        assert at.told[-1] == "The journal could not be written before the end (frost.db): 1 entries are lost."
        assert [put.entry for put in ahead.left(0)] == [RunResumed("kept")]


async def test_commits_at_the_same_time_share_a_transaction() -> None:
    async with desk() as at:
        given = entries(10)
        async with asyncio.TaskGroup() as group:
            kept = [group.create_task(at.writer.commit(entry)) for entry in given]
        assert all(task.result() for task in kept)
        assert at.batches.written == given
        assert len(at.batches.sizes) <= 2


async def test_after_a_large_batch_the_next_gathers_while_more_comes() -> None:
    async with desk(ManualClock()) as at:  # whose time stands still
        assert await at.writer.commit(*entries(MANY))
        async with asyncio.TaskGroup() as group:
            for entry in entries(30):
                group.create_task(at.writer.commit(entry))
                for _ in range(QUIET - 1):
                    await asyncio.sleep(0)
        assert at.batches.sizes == [MANY, 30]


async def test_it_gathers_no_longer_than_a_moment_however_much_comes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "LONGEST", 0.001)
    monkeypatch.setattr(module, "BUSY", 60.0)
    async with asyncio.timeout(30), desk() as at:
        assert await at.writer.commit(*entries(MANY))
        while len(at.batches.sizes) < 3:
            at.writer.put(*entries(MANY))
            await asyncio.sleep(0)


async def test_only_a_large_batch_makes_the_next_gather_and_the_end_does_not_wait() -> None:
    clock = ManualClock()
    async with desk(clock) as at:
        for few in (1, MANY - 1, MANY):
            assert await at.writer.commit(*entries(few))
        assert clock.slept == []
        at.writer.put(*entries(1))
    assert at.batches.sizes == [1, MANY - 1, MANY, 1]
    assert clock.slept == []


async def test_after_a_quiet_time_nothing_is_gathered_any_more() -> None:
    clock = ManualClock()
    async with desk(clock) as at:
        assert await at.writer.commit(*entries(MANY))
        assert await at.writer.commit(*entries(1))
        assert clock.slept == [0] * QUIET
        clock.time += BUSY
        assert await at.writer.commit(*entries(1))
    assert len(clock.slept) == QUIET


async def test_a_commit_of_nothing_waits_for_what_is_on_its_way_and_for_nothing_else() -> None:
    async with desk() as at:
        assert await at.writer.commit()
        assert at.batches.attempts == 0
        at.writer.put(*entries(3))
        assert await at.writer.commit()
        assert len(at.batches.written) == 3


async def test_a_slow_disk_slows_those_down_who_wait() -> None:
    async with desk() as at:
        at.batches.going_on.clear()
        async with asyncio.TaskGroup() as group:
            first = group.create_task(at.writer.commit(*entries(1)))
            await until(lambda: at.batches.attempts == 1)
            second = group.create_task(at.writer.commit(*entries(2)))
            await asyncio.sleep(0)
            assert not first.done()
            at.batches.going_on.set()
        assert (first.result(), second.result()) == (True, True)
        assert at.batches.sizes == [1, 2]
        assert at.told == []


async def test_who_stops_waiting_has_still_said_it() -> None:
    async with desk() as at:
        at.batches.going_on.clear()
        async with asyncio.TaskGroup() as group:
            waiting = group.create_task(at.writer.commit(*entries(1)))
            await until(lambda: at.batches.attempts == 1)
            waiting.cancel()
        at.batches.going_on.set()
        assert await at.writer.commit(RunResumed("x"))
        assert at.batches.written == [*entries(1), RunResumed("x")]


async def test_what_is_left_is_written_at_the_end() -> None:
    async with desk() as at:
        at.writer.put(*entries(5))
    assert at.batches.written == entries(5)
    assert at.told == []


# --- trouble --------------------------------------------------------------------------------------


async def test_an_outage_is_told_once_and_so_is_its_end() -> None:
    async with desk() as at:
        assert await at.writer.commit(RunResumed("lucky"))
        await at.fail()
        given = entries(10)
        at.writer.put(*given[:5])
        for entry in given[5:]:
            assert not await at.writer.commit(entry)
        await until(lambda: at.batches.attempts >= 3)
        await at.recover()
        assert at.batches.written == [RunResumed("lucky"), RunResumed("unlucky"), *given]
        assert at.told[0].startswith("The journal cannot be written (frost.db: disk full).")
        assert at.told[1] == "The journal is written again (frost.db): 11 entries caught up, 0 lost."
        assert await at.writer.commit(RunResumed("again"))
        assert len(at.told) == 2


async def test_everybody_who_waits_learns_of_the_outage() -> None:
    async with desk() as at:
        at.batches.going_on.clear()
        at.batches.failure = "disk full"
        async with asyncio.TaskGroup() as group:
            first = group.create_task(at.writer.commit(RunResumed("1")))
            await until(lambda: at.batches.attempts == 1)
            second = group.create_task(at.writer.commit(RunResumed("2")))
            await asyncio.sleep(0)
            at.batches.going_on.set()
        assert (first.result(), second.result()) == (False, False)
        await at.recover()
        assert at.batches.written == [RunResumed("1"), RunResumed("2")]


async def test_a_disk_that_does_not_answer_is_an_outage_until_it_does(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "PATIENCE", 0.05)
    async with desk() as at:
        at.batches.going_on.clear()
        assert not await at.writer.commit(RunResumed("1"))
        assert "no answer for 0.05 s" in at.told[0]
        assert not await at.writer.commit(RunResumed("2"))
        at.batches.going_on.set()
        await until(lambda: len(at.told) == 2)
        assert at.told[1].endswith("2 entries caught up, 0 lost.") or at.told[1].endswith(
            "1 entries caught up, 0 lost."
        )
        assert await at.writer.commit(RunResumed("3"))
        assert at.batches.written == [RunResumed("1"), RunResumed("2"), RunResumed("3")]


async def test_once_an_outage_is_over_who_commits_waits_until_all_that_gathered_is_written() -> None:
    """Whoever spoke before that and died would find the question open, and its answer nowhere."""
    async with desk() as at, asyncio.TaskGroup() as group:
        await at.fail()
        gathered = entries(30)
        at.writer.put(*gathered)
        last = await catching_up(at, group)
        assert at.batches.written == [RunResumed("unlucky")]
        at.batches.going_on.set()
        assert await last
        assert at.batches.written == [RunResumed("unlucky"), *gathered, RunResumed("last")]
    assert at.told[1:] == ["The journal is written again (frost.db): 31 entries caught up, 0 lost."]


async def test_nobody_waits_for_what_gathered_where_that_cannot_be_written_either() -> None:
    async with desk() as at, asyncio.TaskGroup() as group:
        await at.fail()
        at.writer.put(*entries(30))
        last = await catching_up(at, group)
        at.batches.failure = "disk full again"
        at.batches.going_on.set()
        assert not await last
        assert not await at.writer.commit(RunResumed("later"))
        await at.recover()
        assert at.batches.written == [RunResumed("unlucky"), *entries(30), RunResumed("last"), RunResumed("later")]
    assert [line.partition(":")[2] for line in at.told[1:]] == [" 33 entries caught up, 0 lost."]


async def test_what_gathered_and_takes_too_long_to_write_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    async with desk() as at, asyncio.TaskGroup() as group:
        await at.fail()
        at.writer.put(*entries(30))
        monkeypatch.setattr(module, "PATIENCE", 0.05)
        last = await catching_up(at, group)
        assert not await last
        at.batches.going_on.set()
        await until(lambda: len(at.told) == 2)
        assert await at.writer.commit(RunResumed("later"))
    assert len(at.told) == 2


async def catching_up(at: Desk, group: asyncio.TaskGroup) -> asyncio.Task[bool]:
    """Somebody who commits while what gathered in an outage, which has just ended, is on its way."""
    attempts = at.batches.attempts
    at.batches.holds_next = True
    at.batches.failure = ""
    await until(lambda: len(at.batches.written) == 1 and at.batches.attempts >= attempts + 2)
    last = group.create_task(at.writer.commit(RunResumed("last")))
    await asyncio.sleep(0)
    return last


async def test_an_entry_that_can_never_be_written_is_only_its_own_loss() -> None:
    async with desk() as at:
        bad = RunResumed("bad")
        at.batches.bad = {bad}
        at.batches.going_on.clear()
        async with asyncio.TaskGroup() as group:
            held = group.create_task(at.writer.commit(RunResumed("first")))
            await until(lambda: at.batches.attempts == 1)
            others = [group.create_task(at.writer.commit(*some)) for some in (entries(2), [bad], entries(1))]
            await asyncio.sleep(0)
            at.batches.going_on.set()
        assert held.result()
        assert [task.result() for task in others] == [True, False, True]
        assert at.told == []


async def test_a_store_that_begins_in_trouble_recovers_though_nothing_is_put() -> None:
    batches = ScriptedBatches()
    told: list[str] = []
    with ThreadPoolExecutor(1) as thread:
        scripted: Any = batches
        writer = Writer(batches=scripted, thread=thread, clock=SystemClock(), trouble=read(told), place="x")
        writer.fail("no such folder")
        assert not await writer.commit(RunResumed("1"))
        async with asyncio.TaskGroup() as group:
            task = group.create_task(writer.run())
            await until(lambda: len(told) == 2)
            assert batches.written == [RunResumed("1")]
            await writer.close(task)


async def test_a_retry_is_an_attempt_though_nothing_is_put() -> None:
    async with desk() as at:
        at.writer.retry()
        await until(lambda: at.batches.attempts == 1)


async def test_the_end_does_not_wait_for_a_database_that_is_gone() -> None:
    async with desk() as at:
        await at.fail()
        at.writer.put(*entries(4))
    assert at.told[-1] == "The journal could not be written before the end (frost.db): 5 entries are lost."
    assert at.batches.written == []


async def test_at_the_end_it_is_tried_once_more() -> None:
    async with desk() as at:
        await at.fail()
        at.batches.failure = ""
    assert at.batches.written == [RunResumed("unlucky")]


async def test_a_database_that_is_far_too_slow_is_in_trouble() -> None:
    async with desk(limit=100) as at:
        at.batches.going_on.clear()
        at.writer.put(*[heard(str(number)) for number in range(150)])
        assert "it is too slow, 150 entries wait" in at.told[0]
        at.batches.going_on.set()
        await until(lambda: len(at.told) == 2)
        assert await at.writer.commit(RunResumed("x"))
