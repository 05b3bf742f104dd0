"""Answers kept for a while, and equal requests in flight."""

from __future__ import annotations

import asyncio

import pytest

from adapters.fetching.client import Answers
from bot.core.ports import WebResponse
from frostagent.types.errors import ToolFailed
from tests.adapters.fetching.replay import StoppedClock


class Fetch:
    """Brings numbered answers, one for each time it is asked; waits at its gate when it is closed."""

    def __init__(self, *, status: int = 200, body: bytes = b"answer ", error: str = "") -> None:
        self.status, self.body, self.error = status, body, error
        self.times = 0
        self.open = asyncio.Event()
        self.open.set()
        self.begun = asyncio.Event()

    async def __call__(self) -> WebResponse:
        self.times += 1
        number = self.times
        self.begun.set()
        await self.open.wait()
        if self.error:
            raise ToolFailed(f"{self.error} {number}")
        return WebResponse(self.status, self.body and self.body + str(number).encode(), "https://x.example/")


async def ask(answers: Answers, fetch: Fetch, *, key: str = "key", fresh: float = 600) -> bytes:
    return (await answers.get(key, fetch, fresh=fresh, keep=None)).body


async def test_an_answer_is_served_again_while_it_is_fresh(clock: StoppedClock) -> None:
    answers, fetch = Answers(clock=clock), Fetch()
    assert await ask(answers, fetch) == b"answer 1"
    clock.time += 599
    assert await ask(answers, fetch) == b"answer 1"
    clock.time += 1
    assert await ask(answers, fetch) == b"answer 2"


async def test_freshness_is_the_askers_wish(clock: StoppedClock) -> None:
    answers, fetch = Answers(clock=clock), Fetch()
    await ask(answers, fetch)
    clock.time += 30
    assert await ask(answers, fetch, fresh=10) == b"answer 2"
    assert await ask(answers, fetch, fresh=600) == b"answer 2"


async def test_different_requests_have_different_answers(clock: StoppedClock) -> None:
    answers, fetch = Answers(clock=clock), Fetch()
    assert await ask(answers, fetch, key="a") == b"answer 1"
    assert await ask(answers, fetch, key="b") == b"answer 2"


@pytest.mark.parametrize("fetch", [Fetch(status=503), Fetch(status=429), Fetch(status=404), Fetch(body=b"")])
async def test_a_failure_is_not_kept(clock: StoppedClock, fetch: Fetch) -> None:
    answers = Answers(clock=clock)
    await ask(answers, fetch)
    await ask(answers, fetch)
    assert fetch.times == 2


async def test_what_the_asker_cannot_read_is_not_kept(clock: StoppedClock) -> None:
    answers, fetch = Answers(clock=clock), Fetch()
    for _ in range(3):
        await answers.get("key", fetch, fresh=600, keep=lambda response: response.body == b"answer 2")
    assert fetch.times == 2


async def test_an_answer_too_large_to_keep_is_still_an_answer(clock: StoppedClock) -> None:
    answers, fetch = Answers(clock=clock, max_bytes=1025), Fetch()
    assert await ask(answers, fetch) == b"answer 1"
    assert await ask(answers, fetch) == b"answer 2"


async def test_the_oldest_answers_make_room(clock: StoppedClock) -> None:
    answers, fetch = Answers(clock=clock, max_bytes=2 * 1100), Fetch()
    for key in "abc":
        await ask(answers, fetch, key=key)
    assert await ask(answers, fetch, key="c") == b"answer 3"
    assert await ask(answers, fetch, key="a") == b"answer 4"


async def test_equal_requests_in_flight_are_one(clock: StoppedClock) -> None:
    answers, fetch = Answers(clock=clock), Fetch(status=503)
    fetch.open.clear()
    async with asyncio.timeout(30), asyncio.TaskGroup() as group:
        tasks = [group.create_task(ask(answers, fetch)) for _ in range(5)]
        await fetch.begun.wait()
        fetch.open.set()
    assert {task.result() for task in tasks} == {b"answer 1"}
    assert fetch.times == 1


async def test_a_failure_in_flight_is_everybodys(clock: StoppedClock) -> None:
    answers, fetch = Answers(clock=clock), Fetch(error="no answer")
    fetch.open.clear()
    async with asyncio.timeout(30), asyncio.TaskGroup() as group:
        tasks = [group.create_task(told(answers, fetch)) for _ in range(3)]
        await fetch.begun.wait()
        fetch.open.set()
    assert [task.result() for task in tasks] == ["no answer 1"] * 3


async def test_when_the_first_asker_leaves_the_next_one_asks(clock: StoppedClock) -> None:
    answers, fetch = Answers(clock=clock), Fetch()
    fetch.open.clear()
    async with asyncio.timeout(30), asyncio.TaskGroup() as group:
        first = group.create_task(ask(answers, fetch))
        await fetch.begun.wait()
        others = [group.create_task(ask(answers, fetch)) for _ in range(3)]
        fetch.begun.clear()
        first.cancel()
        await fetch.begun.wait()
        fetch.open.set()
    assert first.cancelled()
    assert [task.result() for task in others] == [b"answer 2"] * 3


async def test_a_waiter_that_leaves_disturbs_nobody(clock: StoppedClock) -> None:
    answers, fetch = Answers(clock=clock), Fetch()
    fetch.open.clear()
    async with asyncio.timeout(30), asyncio.TaskGroup() as group:
        first = group.create_task(ask(answers, fetch))
        await fetch.begun.wait()
        waiter = group.create_task(ask(answers, fetch))
        await asyncio.wait({waiter}, timeout=0)
        waiter.cancel()
        await asyncio.wait({waiter})
        fetch.open.set()
    assert waiter.cancelled()
    assert first.result() == b"answer 1"


async def told(answers: Answers, fetch: Fetch) -> str:
    try:
        await ask(answers, fetch)
    except ToolFailed as error:
        return str(error)
    return "answered"
