"""A worker has its part of the partitions at work, gives away what is too much, and takes over."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import cast

import pytest

from adapters.broker.partitions import ClusterPartition
from adapters.metrics.work import Work
from adapters.storage.claim import Away, JournalTaken
from adapters.storage.leases import SECONDS, Board, Roster, name_of
from bot.cluster import partition_manager as module
from bot.cluster.partition_manager import PATIENCE, PAUSE, STEPS_BACK, UNREACHED, PartitionManager
from frostagent.types.errors import ConfigError, Problem
from tests.fakes import ManualClock, until

TAKEN = JournalTaken("PostgreSQL", " (7@x)")
ALONE = Board(1, {})


@dataclass
class Office:
    """A roster that says what it is told to, and bots that only note that they were opened and closed."""

    board: Board = ALONE
    holder: str = "1@a"
    ledger: list[str] = field(default_factory=list)
    refusals: dict[int, list[Exception]] = field(default_factory=dict)
    busy: set[int] = field(default_factory=set)
    away: bool = False
    up: bool = True
    signs: bool = True
    looks: int = 0
    clock: ManualClock = field(default_factory=ManualClock)
    work: Work = field(default_factory=lambda: Work(4))

    def look(self, *, signs: bool = True) -> Board:
        self.looks += 1
        self.signs = signs
        if self.away:
            raise Away("PostgreSQL", "nobody is there")
        return self.board

    def leave(self) -> None:
        self.ledger.append("left")
        if self.away:
            raise Away("PostgreSQL", "nobody is there")

    @asynccontextmanager
    async def opening(self, share: ClusterPartition) -> AsyncIterator[Bot]:
        number = share.partition
        if refusals := self.refusals.get(number):
            raise refusals.pop()
        self.ledger.append(f"+{number}")
        try:
            yield Bot(self, number)
        finally:
            self.ledger.append(f"-{number}")

    async def until_looked(self, times: int = 2) -> None:
        there = self.looks + times
        await until(lambda: self.looks >= there)


@dataclass(frozen=True)
class Bot:
    office: Office
    number: int

    @property
    def is_idle(self) -> bool:
        return self.number not in self.office.busy


@asynccontextmanager
async def at_work(office: Office, partitions: int = 4) -> AsyncIterator[PartitionManager[Bot]]:
    office.work.partitions = partitions
    with ThreadPoolExecutor(1) as thread:
        manager = PartitionManager(
            office.opening,
            cast("Roster", office),
            is_idle=lambda bot: bot.is_idle,
            is_connected=lambda: office.up,
            work=office.work,
            thread=thread,
            clock=office.clock,
        )
        async with asyncio.TaskGroup() as group:
            task = group.create_task(manager.run())
            try:
                yield manager
            finally:
                task.cancel()


async def test_alone_it_has_all_of_them_and_at_its_end_none() -> None:
    office = Office()
    async with at_work(office) as manager:
        await until(lambda: manager.partitions == (0, 1, 2, 3))
        await office.until_looked()
        assert [one.number for one in manager.services] == [0, 1, 2, 3]
        assert (office.work.held, office.work.workers, office.work.taken) == ({0, 1, 2, 3}, 1, 4)
    assert sorted(office.ledger[:4]) == ["+0", "+1", "+2", "+3"]
    assert sorted(office.ledger[4:8]) == ["-0", "-1", "-2", "-3"]
    assert office.ledger[8:] == ["left"]
    assert office.work.held == set()


async def test_what_others_have_is_left_to_them_until_nobody_has_it() -> None:
    office = Office(Board(2, {name_of(1): "2@b", name_of(2): "2@b"}))
    async with at_work(office) as manager:
        await until(lambda: manager.partitions == (0, 3))
        await office.until_looked()
        assert sorted(office.ledger) == ["+0", "+3"]
        office.board = Board(1, {name_of(0): "1@a", name_of(3): "1@a"})
        await until(lambda: manager.partitions == (0, 1, 2, 3))
    assert sorted(office.ledger[:4]) == ["+0", "+1", "+2", "+3"]


async def test_it_gives_away_what_is_too_much_but_nothing_that_is_busy() -> None:
    office, had = Office(busy={0, 1, 2}), list[tuple[int, ...]]()
    async with at_work(office) as manager:
        await until(lambda: len(manager.partitions) == 4)
        office.board = Board(2, {name_of(number): "1@a" for number in range(4)})
        await until(lambda: len(manager.partitions) == 3)
        await office.until_looked()
        had.append(manager.partitions)
        office.busy.discard(1)
        await until(lambda: len(manager.partitions) == 2)
        await office.until_looked()
        had.append(manager.partitions)
    assert had == [(0, 1, 2), (0, 2)]
    assert office.ledger[4:6] == ["-3", "-1"]


async def test_after_a_minute_what_is_busy_is_given_away_too() -> None:
    office = Office(busy={0, 1})
    async with at_work(office, partitions=2) as manager:
        await until(lambda: len(manager.partitions) == 2)
        office.board, begun = Board(2, {name_of(0): "1@a", name_of(1): "1@a"}), office.clock.time
        await until(lambda: len(manager.partitions) == 1)
        assert office.clock.time - begun > PATIENCE


async def test_one_that_another_worker_was_quicker_to_take_is_wanted_again() -> None:
    office = Office(refusals={0: [TAKEN, Away("PostgreSQL", "refused"), TAKEN]})
    async with at_work(office, partitions=2) as manager:
        await until(lambda: manager.partitions == (0, 1))
    assert office.refusals == {0: []}


async def test_what_no_other_worker_could_do_either_ends_it() -> None:
    wrong = ConfigError(Problem("BROKER_PARTITIONS", "is 4", "Set what it was"))
    office = Office(refusals={1: [wrong]})
    with pytest.raises(BaseExceptionGroup) as caught:
        async with at_work(office, partitions=2) as manager:
            await asyncio.Event().wait()
    assert caught.group_contains(ConfigError, match="BROKER_PARTITIONS")
    assert manager.services == ()


async def test_without_a_journal_it_goes_on_with_what_it_has_and_says_why_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO, module.__name__)
    office = Office(away=True)
    async with at_work(office, partitions=1) as manager:
        await office.until_looked(3)
        assert caplog.messages == ["standing by: the journal cannot be reached (PostgreSQL: nobody is there)"]
        office.away = False
        await until(lambda: manager.partitions == (0,))
        office.away = True
        await office.until_looked(3)
        assert manager.partitions == (0,)
    assert caplog.messages[1:] == ["ready: over the broker, partition 0 of 1"]
    assert office.ledger == ["+0", "-0", "left"]


async def test_after_an_outage_of_the_journal_those_who_had_a_lease_have_the_time_to_renew_it() -> None:
    office = Office(away=True)
    async with at_work(office, partitions=1) as manager:
        await office.until_looked()
        office.away, begun = False, office.clock.time
        await until(lambda: manager.partitions == (0,))
        assert office.clock.time - begun >= SECONDS - PAUSE


async def test_where_others_have_all_of_them_it_stands_by_and_says_so_once(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, module.__name__)
    office = Office(Board(2, {name_of(0): "2@b"}))
    async with at_work(office, partitions=1) as manager:
        await office.until_looked(4)
        assert manager.services == ()
    assert caplog.messages == ["standing by: other workers have all accounts"]
    assert office.ledger == ["left"]


async def test_who_stands_by_again_after_he_was_at_work_says_so_again(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, module.__name__)
    others = Board(2, {name_of(0): "2@b"})
    office = Office(others)
    async with at_work(office, partitions=1) as manager:
        await office.until_looked()
        office.board = ALONE
        await until(lambda: manager.partitions == (0,))
        office.board = others
        await until(lambda: manager.partitions == ())
        await office.until_looked()
    standing = [line for line in caplog.messages if "standing" in line]
    assert standing == ["standing by: other workers have all accounts"] * 2
    assert office.ledger == ["+0", "-0", "left"]


async def test_who_cannot_reach_the_broker_leaves_all_to_others_that_can(caplog: pytest.LogCaptureFixture) -> None:
    office = Office(busy={0, 1, 2, 3})
    with caplog.at_level(logging.INFO):
        async with at_work(office) as manager:
            await until(lambda: len(manager.partitions) == 4)
            assert office.signs
            office.board, office.up, begun = Board(1, {}), False, office.clock.time
            await until(lambda: not office.signs)
            assert UNREACHED <= office.clock.time - begun < STEPS_BACK
            await until(lambda: not manager.partitions)
            assert office.clock.time - begun >= UNREACHED + STEPS_BACK - PAUSE
            await office.until_looked()
            assert len(office.ledger) == 8
            office.up = True
            await until(lambda: len(manager.partitions) == 4)
            assert office.signs
    assert [one.message for one in caplog.records if "standing by" in one.message] == [
        "standing by: the broker cannot be reached from here"
    ]


async def test_where_nobody_can_reach_the_broker_everybody_keeps_what_he_has() -> None:
    office = Office()
    async with at_work(office) as manager:
        await until(lambda: len(manager.partitions) == 4)
        office.board, office.up, begun = Board(1, {}), False, office.clock.time
        await until(lambda: office.clock.time - begun > UNREACHED + STEPS_BACK / 2)  # others have not noticed yet
        office.board, begun = Board(0, {}), office.clock.time
        await until(lambda: office.clock.time - begun > 3 * STEPS_BACK)
        office.board, begun = Board(1, {}), office.clock.time  # somebody found it again a little earlier
        await until(lambda: office.clock.time - begun > STEPS_BACK / 2)
        office.up = True
        await until(lambda: office.signs)
        await office.until_looked()
        assert sorted(office.ledger) == ["+0", "+1", "+2", "+3"]


async def test_who_begins_without_a_broker_takes_nothing_that_others_could() -> None:
    office = Office(Board(1, {name_of(number): "2@b" for number in range(4)}), up=False)
    async with at_work(office) as manager:
        await until(lambda: not office.signs)
        office.board = Board(1, {})
        await office.until_looked(4)
        assert (manager.partitions, office.ledger) == ((), [])
        office.board = Board(0, {})
        await until(lambda: len(manager.partitions) == 4)
