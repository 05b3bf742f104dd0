"""What several workers take in a day stands one behind the other, and the totals are the sums of the rows."""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from threading import Barrier

import pytest
from msgspec.structs import replace
from sqlalchemy import Connection, Engine, create_engine, select, text

from adapters.broker.partitions import ClusterPartition
from adapters.storage.batches import EntryBatches, Written
from adapters.storage.claim import JournalTaken
from adapters.storage.database import Database
from adapters.storage.day_totals import ALL, CountingTransactions, counting
from adapters.storage.leases import Lease, name_of
from adapters.storage.migrations import migrate
from adapters.storage.retention import LONGEST_DAY, Retention
from adapters.storage.tables import day_totals, usage
from adapters.storage.url import read_url
from bot.budget.limits import Cap, DayLimits, OwnLimits
from bot.budget.meter import Meter
from bot.budget.shared_spending import SharedSpending
from bot.core.calendar_days import midnight
from bot.core.journal import DayStanding, Entry, Found, UsageAdded, UsageReleased, UsageReserved
from bot.core.other_bots import Announcement
from bot.core.task_context import early_payer
from bot.memory.journal_observers import ObservedStore
from frostagent.types.errors import DaySpent
from frostagent.types.messages import Usage
from tests.adapters.storage.conftest import opened
from tests.adapters.storage.entries import NOW, beside, opening, step
from tests.adapters.storage.test_batches import put
from tests.adapters.storage.test_crossed import wait_for_waiting
from tests.adapters.storage.test_transactions import LostAnswer
from tests.bot.budget.till import traffic
from tests.fakes import PRIVATE, CountingIds, SteppedClock
from tests.settings import kept_settings

TODAY = midnight(NOW)
PATIENCE = 20.0  # seconds

LOCKED = "LOCK TABLE usage IN EXCLUSIVE MODE"


class Keeper:
    """Has limits of everybody, and keeps what reservations found."""

    def __init__(self, *, together: bool = True, people: bool = True) -> None:
        self.counts = together, people
        self.found: list[DayStanding] = []
        self.now = NOW

    def find(self, found: Found) -> None:
        self.found += found

    def stood(self) -> dict[int, tuple[float, float]]:
        """By number the tokens that were taken before: in all, and by whom it was for."""
        return {one.number: (one.all[0], one.theirs[0]) for one in self.found}


Worker = tuple[EntryBatches, Keeper]


@contextmanager
def worker(url: str, partition: int = 0, **counts: bool) -> Iterator[Worker]:
    """One of several, with a lease of its own."""
    keeper = Keeper(**counts)
    database = Database(url, migrate=migrate, owner=True, lease=Lease(name_of(partition)))
    batches = EntryBatches(database, stamp=str)
    batches.write_by(partial(CountingTransactions, keeper=keeper, now=lambda: keeper.now, tell=keeper.find))
    assert batches.open() == ""
    yield batches, keeper
    batches.close()
    database.close()
    database.release()


@pytest.fixture
def engine(postgres: str) -> Iterator[Engine]:
    engine = create_engine(read_url(postgres))
    yield engine
    engine.dispose()


def reserved(number: int, tokens: int = 30, who: int = 5, at: float = NOW, cost: float | None = None) -> UsageReserved:
    usage, payer = Usage(tokens, cost=cost), (PRIVATE, who)
    return UsageReserved(turn_id=f"t{number}", number=number, model="m", usage=usage, at=at, payer=payer)


def settled(of: UsageReserved, tokens: int, at: float = NOW) -> UsageAdded:
    usage = Usage(tokens, reserved=of.number)
    return UsageAdded(turn_id=of.turn_id, model="m", usage=usage, at=at, payer=of.payer)


def totals(engine: Engine, day: float = TODAY) -> dict[int, float]:
    with engine.connect() as connection:
        rows = connection.execute(select(day_totals.c.who, day_totals.c.tokens).where(day_totals.c.day == day))
        return {row.who: row.tokens for row in rows}


def compare(engine: Engine, begin: float) -> None:
    """The totals of that day are the sums of its rows."""
    tokens, costs = Counter[int](), dict[int, float]()
    with engine.connect() as connection:
        columns = usage.c.asker, usage.c.prompt + usage.c.completion, usage.c.cost
        for who, taken, cost in connection.execute(select(*columns).where(usage.c.at >= begin)):
            for key in {ALL, who}:
                tokens[key] += taken
                costs[key] = costs.get(key, 0.0) + (cost or 0.0)
        rows = connection.execute(select(day_totals).where(day_totals.c.day == begin, day_totals.c.tokens != 0)).all()
    assert {row.who: row.tokens for row in rows} == +tokens
    assert {row.who: row.cost for row in rows} == pytest.approx({key: costs[key] for key in +tokens})


# --- at once --------------------------------------------------------------------------------------


def test_what_workers_reserve_at_once_stands_one_behind_the_other(postgres: str, engine: Engine) -> None:
    start, rounds = Barrier(2), 10

    def work(of: Worker, first: int) -> None:
        for number in range(first, first + rounds):
            start.wait(PATIENCE)
            assert of[0].write(put(reserved(number))) == Written(1)

    with worker(postgres, 0) as one, worker(postgres, 1) as other, ThreadPoolExecutor(2) as pool:
        done = [pool.submit(work, one, 100), pool.submit(work, other, 200)]
        for each in done:
            each.result(PATIENCE)
        stood = [*one[1].stood().values(), *other[1].stood().values()]
    assert sorted(stood) == [(30.0 * before, 30.0 * before) for before in range(2 * rounds)]
    assert totals(engine) == {ALL: 600, 5: 600}


class Unheard:
    """Neighbours whom nothing reaches in time."""

    can_alarm = False

    def tell(self, note: Announcement, /) -> None:
        pass


@pytest.mark.parametrize(
    ("limits", "fit"),
    [
        (DayLimits(all=Cap(tokens=100)), 4),  # the fourth finds 90
        (DayLimits(all=Cap(tokens=90)), 3),
        (DayLimits(user=Cap(tokens=31)), 2),
        (DayLimits(user=Cap(cost=0.5)), 5),
        (DayLimits(group=Cap(tokens=1)), 12),  # which nobody else takes of
    ],
)
async def test_of_requests_at_once_at_two_workers_those_are_made_that_fit(
    postgres: str, engine: Engine, limits: DayLimits, fit: int
) -> None:
    async def ask(meter: Meter) -> bool:
        try:
            return bool(await meter.reserve("m", lambda: Usage(30, cost=0.1)))
        except DaySpent:
            return False

    clock = SteppedClock()
    early_payer.set((PRIVATE, 5))
    async with (
        opened(postgres, clock=clock, lease=Lease(name_of(0)), scope=ClusterPartition(0, 2)) as first,
        opened(postgres, clock=clock, lease=Lease(name_of(1)), scope=ClusterPartition(1, 2)) as second,
    ):
        meters = list[Meter]()
        for store, ids in ((first.store, CountingIds(0.1)), (second.store, CountingIds(0.9))):
            own = OwnLimits(settings=kept_settings(store, store.books, clock=clock), clock=clock)
            spending = SharedSpending(
                limits,
                own=own,
                book=store.books,
                owners=frozenset({999}),
                clock=clock,
                tell=lambda _: None,
                announcer=Unheard(),
            )
            assert await spending.load()
            store.write_by(counting(spending, clock.now))
            kept = ObservedStore(store, [spending])
            meters.append(Meter(kept, spending=spending, clock=clock, ids=ids))
            meters[-1].release(await meters[-1].reserve("m", Usage))  # it counts from now on
            assert await store.commit()
        with engine.connect() as barrier:
            barrier.execute(text(LOCKED))
            async with asyncio.TaskGroup() as group:
                asking = [group.create_task(ask(meter)) for meter in meters for _ in range(6)]
                await asyncio.to_thread(wait_for_waiting, barrier, 2)  # each has seen nothing of the other
                barrier.rollback()
        assert [task.result() for task in asking].count(True) == fit
        for store in (first.store, second.store):
            assert await store.commit()
    with engine.connect() as connection:
        assert connection.execute(select(usage.c.prompt)).scalars().all() == [30] * fit
    if limits.all.tokens:
        assert totals(engine)[ALL] == 30 * fit


def test_totals_are_locked_in_one_order_whatever_that_of_a_batch_is(postgres: str, engine: Engine) -> None:
    row = text("SELECT 1 FROM day_totals WHERE who = :who FOR UPDATE NOWAIT")
    with worker(postgres, together=False) as (batches, keeper), ThreadPoolExecutor(1) as pool:
        batches.write(put(reserved(1, who=5), reserved(2, who=9)))
        with engine.connect() as other:
            other.execute(row, {"who": 5})
            done = pool.submit(batches.write, put(reserved(3, who=9), reserved(4, who=5)))
            wait_for_waiting(other, 1)
            other.execute(row, {"who": 9})  # it has not got that far
            other.rollback()
        assert done.result(PATIENCE) == Written(2)
    assert keeper.stood() == {1: (0, 0), 2: (0, 0), 3: (0, 30), 4: (0, 30)}


# --- the sums are those of the rows ---------------------------------------------------------------


@pytest.mark.parametrize("seed", range(4))
def test_over_random_traffic_and_deaths_the_totals_are_the_sums_of_the_rows(
    postgres: str, engine: Engine, seed: int
) -> None:
    chance, now = random.Random(seed), TODAY - 7200.0
    for life in range(3):  # what is under way at the end of one is never settled
        with worker(postgres, 0) as one, worker(postgres, 1) as other:
            under_way: list[list[UsageReserved]] = [[], []]
            for number in range(40):
                now += chance.choice((0.0, 1.0, 60.0, 400.0))
                whose = chance.randrange(2)
                batches, keeper = (one, other)[whose]
                keeper.now = now
                entries = [
                    entry
                    for more in range(chance.randrange(1, 4))
                    for entry in traffic(chance, f"{seed}-{life}-{number}-{more}", under_way[whose], now)
                ]
                assert not batches.write(put(*entries)).failure
                compare(engine, midnight(now))
    assert now > TODAY


def test_a_day_that_goes_on_is_added_up_from_its_rows_by_whoever_counts_first(postgres: str, engine: Engine) -> None:
    database = Database(postgres, migrate=migrate)
    plain = EntryBatches(database, stamp=str)
    plain.write(put(reserved(1, 10, at=TODAY - 1), reserved(2, 20, at=TODAY), reserved(3, 40, who=0), opening("t9")))
    plain.write(put(step("t9"), reserved(4, 80, at=midnight(NOW, later=1))))
    plain.close()
    database.close()
    with worker(postgres, 0) as (first, found), worker(postgres, 1) as (second, also):
        bad = replace(beside("t9"), step=2**64)  # for its sake they are written one by one
        assert first.write(put(reserved(5), reserved(6, who=777), bad)) == Written(3, bad=(2,))
        second.write(put(reserved(7)))
    assert found.stood() == {5: (75, 20), 6: (105, 15)}
    assert also.stood() == {7: (135, 50)}
    assert totals(engine) == {ALL: 165, 5: 80, 777: 45}


def test_what_another_was_just_writing_when_somebody_first_counts_is_not_lost(postgres: str, engine: Engine) -> None:
    with worker(postgres, 0) as (first, _), worker(postgres, 1) as (second, also), ThreadPoolExecutor(1) as pool:
        first.write(put(reserved(1)))
        with engine.connect() as other:
            row = "INSERT INTO usage (turn_id, step, asker, prompt, at) VALUES ('t2', 1, 5, 70, :now)"
            other.execute(text(row), {"now": NOW})
            other.execute(text("UPDATE day_totals SET tokens = tokens + 70"))
            done = pool.submit(second.write, put(reserved(3)))
            wait_for_waiting(other, 1)
            other.commit()
        assert done.result(PATIENCE) == Written(1)
    assert also.stood() == {3: (100, 100)}
    compare(engine, TODAY)


def test_each_in_a_batch_finds_what_stands_before_it_there(postgres: str, engine: Engine) -> None:
    one, two, three = reserved(1, 30, cost=0.5), reserved(2, 50, who=9), reserved(3, 70, who=0)
    with worker(postgres) as (batches, keeper):
        batches.write(put(one, two, settled(one, 7), three, UsageReleased(turn_id="t2", number=2), reserved(4, 1, 9)))
        assert keeper.stood() == {1: (0, 0), 2: (30, 0), 3: (57, 0), 4: (77, 0)}
        assert len(keeper.found) == 4
        assert {stood.number: stood.all[1] for stood in keeper.found} == pytest.approx({1: 0, 2: 0.5, 3: 0, 4: 0})
    assert totals(engine) == {ALL: 78, 5: 7, 9: 1}


def test_at_midnight_a_day_begins_of_which_nothing_is_taken(postgres: str, engine: Engine) -> None:
    late, tomorrow = reserved(1, at=NOW), midnight(NOW, later=1)
    with worker(postgres) as (batches, keeper):
        batches.write(put(late))
        keeper.now = tomorrow + 1
        before = reserved(3, at=tomorrow - 1)
        batches.write(put(reserved(2, 40, at=keeper.now), settled(late, 3, at=keeper.now), before))
        batches.write(put(reserved(4, at=keeper.now)))
        assert keeper.stood() == {1: (0, 0), 2: (0, 0), 4: (43, 43)}
        assert totals(engine, tomorrow) == {ALL: 73, 5: 73}
        for now, left in ((TODAY + LONGEST_DAY, 2), (TODAY + LONGEST_DAY + 1, 0)):
            while batches.run(partial(Retention(0, 0).sweep, now=now, surplus=0.0)):
                pass
            assert len(totals(engine)) == left  # whose they were is known no longer than that
    assert totals(engine, tomorrow) == {ALL: 73, 5: 73}


# --- what is counted, and when --------------------------------------------------------------------


def test_only_what_has_a_limit_is_counted_and_from_when_it_has_one(postgres: str, engine: Engine) -> None:
    with worker(postgres, together=False, people=False) as (batches, keeper):
        batches.write(put(reserved(1)))
        assert (keeper.found, totals(engine)) == ([], {})
        for number, counts, expected in (
            (2, (True, False), {ALL: 60}),
            (3, (False, True), {ALL: 60, 5: 90}),
            (4, (True, False), {ALL: 120, 5: 90}),
            (5, (False, False), {ALL: 120, 5: 90}),
            (6, (True, True), {ALL: 180, 5: 180}),
        ):
            keeper.counts = counts
            batches.write(put(reserved(number)))
            assert totals(engine) == expected
        assert keeper.stood() == {2: (30, 0), 3: (0, 60), 4: (90, 0), 6: (150, 150)}


@pytest.mark.parametrize("again", [0, 1])
def test_what_was_taken_while_a_limit_was_lifted_counts_once_it_is_set_again(
    postgres: str, engine: Engine, again: int
) -> None:
    """Whoever counts first again, and whatever became of what was reserved before."""
    with worker(postgres, 0, together=False) as one, worker(postgres, 1, together=False) as other:
        first, gone = reserved(1), reserved(2, 50, who=777)
        one[0].write(put(first, gone))
        other[0].write(put(reserved(3)))
        for _, keeper in (one, other):
            keeper.counts = False, False
        one[0].write(put(settled(first, 70), UsageReleased(turn_id="t2", number=2), reserved(4, 9, who=9)))
        other[0].write(put(reserved(5)))
        for _, keeper in (one, other):
            keeper.counts = False, True
        batches, keeper = (one, other)[again]
        batches.write(put(reserved(6), reserved(7, who=9), reserved(8, who=777)))
        assert keeper.stood().items() >= {6: (0, 130), 7: (0, 9), 8: (0, 0)}.items()
    assert totals(engine) == {5: 160, 9: 39, 777: 30}


def test_whoever_counts_again_waits_for_what_others_are_just_counting(postgres: str, engine: Engine) -> None:
    """Of people of whom there is no total yet: what they took was written where nobody counted."""
    used = text("INSERT INTO usage (turn_id, step, asker, prompt, at) VALUES ('t9', 1, :who, 70, :now)")
    total = text("INSERT INTO day_totals (day, who, tokens, cost) VALUES (:day, :who, 70, 0)")
    with worker(postgres, 0) as (batches, keeper), ThreadPoolExecutor(1) as pool:
        keeper.counts = False, False
        batches.write(put(reserved(1, who=5), reserved(2, who=9)))
        keeper.counts = False, True
        with engine.connect() as second, engine.connect() as third:
            for other, who in ((second, 5), (third, 9)):
                other.execute(used, {"who": who, "now": NOW})
                other.execute(total, {"who": who, "day": TODAY})
            done = pool.submit(batches.write, put(reserved(3)))
            for other in (second, third):
                wait_for_waiting(other, 1)
                other.commit()
        assert done.result(PATIENCE) == Written(1)
    assert keeper.stood() == {3: (0, 100)}
    assert totals(engine) == {5: 130, 9: 100}


def test_what_is_not_committed_is_neither_counted_nor_told(postgres: str, engine: Engine) -> None:
    with worker(postgres) as (batches, keeper):
        batches.write(put(reserved(1)))
        with engine.begin() as another:
            another.execute(text("UPDATE leases SET epoch = epoch + 1"))
        with pytest.raises(JournalTaken):
            batches.write(put(reserved(2)))
    assert (keeper.stood(), totals(engine)) == ({1: (0, 0)}, {ALL: 30, 5: 30})


@pytest.mark.parametrize("committed", [True, False])
def test_after_a_commit_without_an_answer_each_is_told_once_what_it_found(
    postgres: str, engine: Engine, monkeypatch: pytest.MonkeyPatch, committed: bool
) -> None:
    with worker(postgres) as (batches, keeper):
        batches.write(put(reserved(1)))
        entries: list[Entry] = [reserved(2), reserved(3)]
        with monkeypatch.context() as patch:
            whole = Connection.connection.fget  # type: ignore[attr-defined]  # it is a property
            patch.setattr(Connection, "connection", property(lambda self: LostAnswer(whole(self), committed=committed)))
            assert batches.write(put(*entries)).failure == "the connection was lost"
        assert keeper.stood() == {1: (0, 0)}
        assert batches.write(put(*entries, reserved(4))) == Written(3)
        assert len(keeper.found) == 4
    assert keeper.stood() == {1: (0, 0), 2: (30, 30), 3: (60, 60), 4: (90, 90)}
    assert totals(engine) == {ALL: 120, 5: 120}
