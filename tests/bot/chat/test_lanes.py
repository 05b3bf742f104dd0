from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

from bot.chat.lanes import Lanes, Order
from bot.core.conversation import Conversation
from tests.fakes import ManualClock

A = Conversation(1, "group", 1)
B = Conversation(1, "group", 2)
IN_TURN: Order[str] = Order(lambda _: None, lambda _: 0.0)


@asynccontextmanager
async def running(work: Callable[[str], Awaitable[None]], max_waiting: int = 50) -> AsyncIterator[Lanes[str]]:
    lanes: Lanes[str] = Lanes(clock=ManualClock(), order=IN_TURN, max_waiting=max_waiting)
    async with asyncio.timeout(30), lanes.open(work):
        yield lanes


async def test_a_lane_works_in_order_of_arrival() -> None:
    done: list[str] = []

    async def work(item: str) -> None:
        await asyncio.sleep(0)
        done.append(item)

    async with running(work) as lanes:
        for item in "abcdef":
            assert lanes.put(A, item)
        await lanes.wait_idle()
    assert done == [*"abcdef"]


async def test_lanes_do_not_wait_for_each_other() -> None:
    gate, done = asyncio.Event(), asyncio.Event()

    async def work(item: str) -> None:
        if item == "blocked":
            await gate.wait()
        if item == "free":
            done.set()

    async with running(work) as lanes:
        lanes.put(A, "blocked")
        lanes.put(B, "free")
        await done.wait()
        await asyncio.sleep(0)
        assert lanes.waiting >= 1
        assert lanes.active >= 1
        assert [*lanes.in_progress().values()] == [A]
        gate.set()
        await lanes.wait_idle()
        assert lanes.active == 0


async def test_what_is_done_is_not_in_progress_any_more_though_it_still_has_its_place() -> None:
    seen = []

    def look() -> None:
        seen.append((lanes.has(A), lanes.at(A), lanes.drop_current(A, lambda _: True)))

    async def work(_: str) -> None:
        asyncio.get_running_loop().call_soon(look)  # just before anybody hears that it is done

    async with running(work) as lanes:
        lanes.put(A, "a")
        await lanes.wait_idle()
    assert seen == [(True, (), 0)]


async def test_a_full_lane_takes_no_more() -> None:
    gate = asyncio.Event()

    async def work(item: str) -> None:
        await gate.wait()

    async with running(work, max_waiting=2) as lanes:
        taken = [lanes.put(A, item) for item in "abcd"]  # the worker has not had the time to take one yet
        assert taken == [True, True, False, False]
        assert lanes.put(B, "other lanes do")
        gate.set()
        await lanes.wait_idle()


async def test_a_waiting_item_can_be_taken_back() -> None:
    gate, done = asyncio.Event(), list[str]()

    async def work(item: str) -> None:
        if item == "a":
            await gate.wait()
        done.append(item)

    async with running(work) as lanes:
        for item in "abc":
            lanes.put(A, item)
        assert lanes.drop_waiting(A, lambda item: item == "b") == 1
        gate.set()
        await lanes.wait_idle()
    assert done == ["a", "c"]


async def test_the_item_in_progress_is_cancelled_and_the_lane_goes_on() -> None:
    started, cancelled, done = asyncio.Event(), asyncio.Event(), list[str]()

    async def work(item: str) -> None:
        if item == "a":
            started.set()
            try:
                await asyncio.Event().wait()
            finally:
                cancelled.set()
        done.append(item)

    async with running(work) as lanes:
        lanes.put(A, "a")
        lanes.put(A, "b")
        await started.wait()
        assert lanes.drop_current(A, lambda item: item == "a") == 1
        await lanes.wait_idle()
    assert cancelled.is_set()
    assert done == ["b"]


async def test_a_failure_does_not_stop_its_lane() -> None:
    done: list[str] = []

    async def work(item: str) -> None:
        if item == "bad":
            raise ValueError(item)
        done.append(item)

    async with running(work) as lanes:
        lanes.put(A, "bad")
        lanes.put(A, "good")
        await lanes.wait_idle()
    assert done == ["good"]


async def test_stopping_cancels_what_is_in_progress_and_takes_nothing_more() -> None:
    started, ended = asyncio.Event(), asyncio.Event()

    async def work(item: str) -> None:
        started.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()

    async with running(work) as lanes:
        lanes.put(A, "endless")
        await started.wait()
    assert ended.is_set()
    assert not lanes.put(A, "late")


async def test_dropping_from_a_lane_nobody_uses_drops_nothing() -> None:
    async def work(item: str) -> None: ...

    async with running(work) as lanes:
        assert lanes.drop_current(B, lambda item: True) == 0


async def test_finishing_lets_what_is_in_progress_end_and_begins_nothing_more() -> None:
    started, gate, done = asyncio.Event(), asyncio.Event(), list[str]()

    async def work(item: str) -> None:
        started.set()
        await gate.wait()
        done.append(item)

    async with running(work) as lanes, asyncio.TaskGroup() as group:
        lanes.put(A, "in progress")
        await started.wait()
        lanes.put(A, "waiting")
        finishing = group.create_task(lanes.finish(within=5))
        await asyncio.sleep(0)
        assert not lanes.put(A, "late")
        assert not lanes.put(B, "late")
        assert (lanes.active, lanes.waiting) == (1, 1)
        gate.set()
        assert await finishing == 0
    assert done == ["in progress"]


async def test_what_does_not_finish_in_time_is_cancelled_and_waited_for() -> None:
    started, ended = asyncio.Event(), list[str]()

    async def work(item: str) -> None:
        started.set()
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0)
            ended.append(item)

    async with running(work) as lanes:
        lanes.put(A, "endless")
        await started.wait()
        lanes.put(B, "not begun")
        assert await lanes.finish(within=0) == 1
        assert ended == ["endless"]
        assert lanes.active == 0


async def test_not_even_a_panic_ends_more_than_its_own_work() -> None:
    class Panic(BaseException):
        """As a library in Rust raises it."""

    done: list[str] = []

    async def work(item: str) -> None:
        if item == "bad":
            raise Panic
        done.append(item)

    async with running(work) as lanes:
        for key, item in ((A, "bad"), (A, "good"), (B, "good")):
            lanes.put(key, item)
        await lanes.wait_idle()
    assert done == ["good", "good"]


# --- lanes that are held --------------------------------------------------------------------------


@asynccontextmanager
async def noting(max_waiting: int = 50) -> AsyncIterator[tuple[Lanes[str], list[str]]]:
    done: list[str] = []

    async def work(item: str) -> None:
        await asyncio.sleep(0)
        done.append(item)

    async with running(work, max_waiting) as lanes:
        yield lanes, done


async def turns_of_the_loop() -> None:
    for _ in range(20):
        await asyncio.sleep(0)


async def test_a_lane_that_is_held_begins_with_nothing_new_and_others_go_on() -> None:
    async with noting() as (lanes, done):
        lanes.put(A, "in progress")
        await asyncio.sleep(0)
        lanes.hold(A)
        for item in "ab":
            assert lanes.put(A, item)
        lanes.put(B, "elsewhere")
        await turns_of_the_loop()
        assert done == ["in progress", "elsewhere"]
        assert (lanes.active, lanes.waiting, lanes.has(A), lanes.has(B)) == (1, 2, True, False)
        lanes.release(A)
        await lanes.wait_idle()
        assert done[2:] == ["a", "b"]
        lanes.put(A, "later")
        await lanes.wait_idle()
        assert done[4:] == ["later"]


async def test_a_lane_goes_on_in_the_order_it_is_given_and_as_it_came_where_that_is_equal() -> None:
    async with noting() as (lanes, done):
        lanes.hold(A)
        for item in ("b2", "a1", "b1", "a2"):
            lanes.put(A, item)
        lanes.release(A, order=lambda item: float(ord(item[0])))
        await lanes.wait_idle()
        assert done == ["a1", "a2", "b2", "b1"]


async def test_a_lane_that_is_held_twice_is_released_twice() -> None:
    async with noting() as (lanes, done):
        lanes.hold(A)
        lanes.hold(A)
        lanes.put(A, "a")
        lanes.release(A)
        await turns_of_the_loop()
        assert done == []
        lanes.release(A)
        await lanes.wait_idle()
        assert done == ["a"]


async def test_a_lane_that_was_held_for_nothing_is_none() -> None:
    async with noting() as (lanes, done):
        lanes.hold(A)
        await lanes.wait_idle()
        lanes.release(A)
        assert lanes.active == 0
        lanes.put(A, "a")
        await lanes.wait_idle()
        assert done == ["a"]


async def test_a_held_lane_has_its_limit_too() -> None:
    async with noting(max_waiting=2) as (lanes, done):
        lanes.hold(A)
        assert [lanes.put(A, item) for item in "abc"] == [True, True, False]
        lanes.release(A)
        await lanes.wait_idle()
        assert done == ["a", "b"]


async def test_what_is_taken_back_from_a_held_lane_keeps_nobody_waiting() -> None:
    async with noting() as (lanes, done):
        lanes.hold(A)
        lanes.put(A, "a")
        lanes.put(A, "b")
        assert lanes.drop_waiting(A, lambda item: item == "a") == 1
        assert lanes.drop_waiting(A, lambda item: item == "b") == 1
        assert lanes.drop_waiting(B, lambda _: True) == 0
        await lanes.wait_idle()
        assert done == []


async def test_what_is_in_progress_is_none_that_waits() -> None:
    async with noting() as (lanes, done):
        lanes.put(A, "a")
        await asyncio.sleep(0)
        assert lanes.drop_waiting(A, lambda item: item == "a") == 0
        await lanes.wait_idle()
        assert done == ["a"]


async def test_the_end_waits_for_no_lane_that_is_held() -> None:
    async with noting() as (lanes, done):
        lanes.hold(A)
        lanes.put(A, "a")
        assert await lanes.finish(within=5) == 0
        assert done == []
