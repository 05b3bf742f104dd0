"""How items follow each other, wait until they are due, and are joined; lanes at work are in `test_lanes.py`."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from hypothesis import given
from hypothesis import strategies as st

from bot.chat.lanes import Lane, Lanes, Order
from tests.bot.chat.test_lanes import A, B
from tests.fakes import SteppedClock

Item = tuple[str, int]  # whose and what; what is negative is due after so many seconds


class Bench:
    """Lanes whose items go on until they are let go."""

    def __init__(self, *, abreast: int = 1) -> None:
        self.clock = SteppedClock()
        begun = self.clock.time
        order: Order[Item] = Order(lambda item: item[0], lambda item: begun - min(0, item[1]), abreast)
        self.lanes = Lanes[Item](clock=self.clock, order=order, max_waiting=3)
        self.begun: list[Item] = []
        self.gates: dict[Item, asyncio.Event] = {}

    async def work(self, item: Item) -> None:
        self.begun.append(item)
        gate = self.gates[item] = asyncio.Event()
        await gate.wait()

    async def after(self, seconds: float = 0.0, *, ended: Item | None = None) -> list[Item]:
        """What has begun by then, where one has come to its end."""
        if ended is not None:
            self.gates.pop(ended).set()
        await self.clock.advance(seconds)
        return self.begun


@asynccontextmanager
async def bench(*, abreast: int = 1) -> AsyncIterator[Bench]:
    made = Bench(abreast=abreast)
    async with asyncio.timeout(30), made.lanes.open(made.work):
        yield made


async def test_people_take_turns() -> None:
    async with bench() as made:
        for item in (("a", 1), ("a", 2), ("a", 3)):
            made.lanes.put(A, item)
        await made.after()
        made.lanes.put(A, ("b", 1))
        assert await made.after(ended=("a", 1)) == [("a", 1), ("b", 1)]
        assert await made.after(ended=("b", 1)) == [("a", 1), ("b", 1), ("a", 2)]
        assert await made.after(ended=("a", 2)) == [("a", 1), ("b", 1), ("a", 2), ("a", 3)]


async def test_some_people_are_answered_side_by_side_each_in_order() -> None:
    async with bench(abreast=2) as made:
        for item in (("a", 1), ("a", 2), ("b", 1)):
            made.lanes.put(A, item)
        assert await made.after() == [("a", 1), ("b", 1)]
        made.lanes.put(A, ("c", 1))
        assert (made.lanes.waiting, len(await made.after())) == (4, 2)
        assert await made.after(ended=("b", 1)) == [("a", 1), ("b", 1), ("c", 1)]
        assert await made.after(ended=("a", 1)) == [("a", 1), ("b", 1), ("c", 1), ("a", 2)]


async def test_what_is_not_due_keeps_nobody_waiting_and_begins_then() -> None:
    async with bench() as made:
        made.lanes.put(A, ("a", -3))
        made.lanes.put(A, ("b", 1))
        assert await made.after() == [("b", 1)]
        assert await made.after(2.9, ended=("b", 1)) == [("b", 1)]
        assert made.lanes.waiting == 1
        assert await made.after(0.2) == [("b", 1), ("a", -3)]


async def test_what_comes_later_may_be_due_sooner() -> None:
    async with bench() as made:
        made.lanes.put(A, ("a", -30))
        await made.after()
        made.lanes.put(A, ("b", -2))
        assert await made.after(2) == [("b", -2)]
        assert await made.after(28, ended=("b", -2)) == [("b", -2), ("a", -30)]


async def test_what_waits_may_be_joined_and_is_due_by_what_it_has_become() -> None:
    async with bench() as made:
        made.lanes.put(A, ("a", -2))
        await made.after(1)
        assert made.lanes.join(A, lambda item: (item[0], -4) if item[0] == "a" else None)
        assert not made.lanes.join(A, lambda item: None)
        assert not made.lanes.join(B, lambda item: item)
        assert await made.after(2) == []
        assert await made.after(1) == [("a", -4)]


async def test_nothing_waits_for_what_was_taken_back() -> None:
    async with bench() as made:
        made.lanes.put(A, ("a", -5))
        await made.after()
        assert made.lanes.revise(A, lambda item: None) == 1
        await made.lanes.wait_idle()
        assert await made.after(9) == []


async def test_the_end_waits_for_nothing_that_is_not_due() -> None:
    async with bench() as made:
        made.lanes.put(A, ("a", -5))
        await made.after()
        assert await made.lanes.finish(within=5) == 0


async def test_only_of_a_full_lane_the_oldest_that_may_go_is_displaced() -> None:
    async with bench() as made:
        made.lanes.hold(A)
        for number in (1, 2):
            made.lanes.put(A, ("a", number))
        assert made.lanes.displace(A, lambda item: True) is None
        made.lanes.put(A, ("a", 3))
        assert made.lanes.displace(A, lambda item: item[1] > 1) == ("a", 2)
        assert made.lanes.at(A) == (("a", 1), ("a", 3))
        assert made.lanes.displace(B, lambda item: True) is None


@given(st.lists(st.sampled_from("abcdef!!"), min_size=20, max_size=60))
async def test_nobody_waits_for_two_turns_of_anybody_elses_nor_for_who_came_after_the_next_began(happens: str) -> None:
    order: Order[Item] = Order(lambda item: item[0], lambda _: 0.0)
    lane, came = Lane[Item](), dict[Item, int]()
    task = asyncio.current_task()
    assert task is not None
    begun: list[Item] = []
    for number, what in enumerate([*happens, *"!" * len(happens)]):
        if what != "!":
            lane.add(order, (what, number))
            came[what, number] = len(begun)
        elif lane.waiting:
            lane.starting = task
            item = lane.begin_next(order, 0.0)
            assert item is not None
            mine = max((1 + place for place, (who, _) in enumerate(begun) if who == item[0]), default=0)
            goes_on = max(came[item] - 1, mine)  # in whose turn it came
            assert all(times == 1 for times in Counter(who for who, _ in begun[goes_on:]).values())
            since = max(came[item], mine)
            assert all(came[other] <= since for other in begun[since:])
            begun.append(item)
            lane.tasks = {}
