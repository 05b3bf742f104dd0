"""Coroutines that end when they are cancelled, and others."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Generator
from contextlib import suppress
from contextvars import ContextVar
from typing import Any, TypeVar

import pytest

from frostagent.engine.tool_execution import ForcedCancel, await_settled
from tests.cases import each_case
from tests.frostagent.toolbox import Stubborn, cancelled

T = TypeVar("T")
SOON = 0.01
WORD: ContextVar[str] = ContextVar("WORD", default="")


@pytest.fixture
def stubborn() -> Stubborn:
    return Stubborn()


def letting_go(body: Coroutine[Any, Any, T], patience: float = SOON) -> ForcedCancel[T]:
    return ForcedCancel(body, name="tool cling", patience=patience)


async def test_it_is_as_if_it_was_awaited_here() -> None:
    async def body() -> tuple[asyncio.Task[Any] | None, str]:
        before = WORD.get()
        await asyncio.sleep(0)
        WORD.set("changed")
        return asyncio.current_task(), before

    WORD.set("here")
    assert await letting_go(body()) == (asyncio.current_task(), "here")
    assert WORD.get() == "changed"


async def test_what_it_raises_or_what_it_waits_for_raises_comes_out() -> None:
    async def waits(what: asyncio.Future[str]) -> str:
        try:
            return await what
        except LookupError as error:
            raise ValueError("seen") from error

    future: asyncio.Future[str] = asyncio.get_running_loop().create_future()
    future.set_exception(LookupError())
    with pytest.raises(ValueError, match="seen"):
        await letting_go(waits(future))


async def test_its_own_time_limits_and_what_it_cancels_itself_are_its_own_business() -> None:
    later = asyncio.get_running_loop()

    async def body() -> str:
        seen = []
        for _ in range(2):
            try:
                async with asyncio.timeout(0):
                    await asyncio.Event().wait()
            except TimeoutError:
                seen.append("too long")
            gone: asyncio.Future[None] = later.create_future()
            gone.cancel()
            try:
                await gone
            except asyncio.CancelledError:
                seen.append("cancelled")
            come = asyncio.Event()
            later.call_later(3 * SOON, come.set)  # when an alarm would have rung
            await come.wait()
        return " ".join(seen)

    assert await letting_go(body()) == "too long cancelled too long cancelled"


async def test_what_begins_while_its_task_is_cancelled_has_its_own_time_limits_too() -> None:
    loop = asyncio.get_running_loop()

    async def body() -> str:
        task = asyncio.current_task()
        assert task is not None
        loop.call_soon(task.cancel)  # as `asyncio.timeout` does, from Python 3.11.4 on in a cancelled task, too
        with suppress(asyncio.CancelledError):
            await asyncio.Event().wait()
        task.uncancel()
        come = asyncio.Event()
        loop.call_later(3 * SOON, come.set)
        await come.wait()
        return "done"

    async def run() -> object:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            return await letting_go(body())
        return "never"

    assert (await cancelled(run)).result() == "done"


async def test_who_cleans_up_in_time_is_waited_for() -> None:
    seen = []

    async def tidy() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0)
            seen.append("tidied")

    async def run() -> object:
        return await letting_go(tidy(), patience=60)

    assert (await cancelled(run)).cancelled()
    assert seen == ["tidied"]


async def test_who_does_not_end_is_left_and_the_log_says_who(
    stubborn: Stubborn, caplog: pytest.LogCaptureFixture
) -> None:
    async def run() -> object:
        return await letting_go(stubborn())

    task = await cancelled(run)
    assert task.cancelled()
    assert stubborn.began > 1
    assert "tool cling does not end when it is cancelled" in caplog.text
    stubborn.released = True


async def test_a_deadline_is_one_for_it_too(stubborn: Stubborn) -> None:
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(SOON):
            await letting_go(stubborn())
    task = asyncio.current_task()
    assert task is not None
    assert task.cancelling() == 0
    stubborn.released = True


async def test_it_has_four_tenths_of_a_second(stubborn: Stubborn, monkeypatch: pytest.MonkeyPatch) -> None:
    async def run() -> object:
        return await ForcedCancel(stubborn(), name="tool cling")

    over, loop = list[bool](), asyncio.get_running_loop()
    now = loop.time()
    monkeypatch.setattr(loop, "time", lambda: now)
    async with asyncio.TaskGroup() as group:
        task = group.create_task(run())
        await asyncio.sleep(0)
        task.cancel()
        for seconds in (0.0, 0.39, 0.41):
            monkeypatch.setattr(loop, "time", lambda passed=seconds: now + passed)
            for _ in range(5):
                await asyncio.sleep(0)
            over.append(task.done())
    stubborn.released = True
    assert over == [False, False, True]


async def test_what_goes_on_inside_is_left_before_what_is_around_it(stubborn: Stubborn) -> None:
    seen = []

    async def outer() -> None:
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(inner())
        finally:
            seen.append("outer")

    async def inner() -> None:
        try:
            await letting_go(stubborn())
        finally:
            seen.append("inner")

    async def run() -> object:
        return await letting_go(outer())

    assert (await cancelled(run)).cancelled()
    assert seen == ["inner", "outer"]
    stubborn.released = True


async def test_who_is_cancelled_again_has_no_more_time(stubborn: Stubborn, monkeypatch: pytest.MonkeyPatch) -> None:
    async def run() -> object:
        return await letting_go(stubborn(), patience=60)

    over, loop = list[bool](), asyncio.get_running_loop()
    now = loop.time()
    async with asyncio.TaskGroup() as group:
        task = group.create_task(run())
        await asyncio.sleep(0)
        for seconds in (0.0, 30.0, 59.0, 61.0):
            monkeypatch.setattr(loop, "time", lambda passed=seconds: now + passed)
            task.cancel()
            for _ in range(5):
                await asyncio.sleep(0)
            over.append(task.done())
        stubborn.released = True
        task.cancel()
    assert over == [False, False, False, True]


@pytest.mark.parametrize("kind", ["a coroutine", "another awaitable"])
async def test_what_others_answered_is_awaited_where_it_is_to_be_and_has_to_let_go(
    kind: str, stubborn: Stubborn, caplog: pytest.LogCaptureFixture
) -> None:
    class Awaitable:
        def __await__(self) -> Generator[Any, Any, str]:
            return stubborn().__await__()

    answer = stubborn() if kind == "a coroutine" else Awaitable()
    assert await await_settled("at once", name="a hook") == "at once"
    task = await cancelled(lambda: await_settled(answer, name="a hook"))
    assert task.cancelled()
    assert "a hook does not end when it is cancelled" in caplog.text
    stubborn.released = True


async def test_a_body_that_is_thrown_away_with_its_loop_is_closed() -> None:
    seen = []

    async def body() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            seen.append("closed")

    driven = letting_go(body()).__await__()
    next(driven)
    driven.close()
    assert seen == ["closed"]


async def test_who_ends_after_all_has_its_result(stubborn: Stubborn, caplog: pytest.LogCaptureFixture) -> None:
    async def run() -> object:
        return await letting_go(stubborn(), patience=60)

    async with asyncio.TaskGroup() as group:
        task = group.create_task(run())
        await asyncio.sleep(0)
        stubborn.released = True
        task.cancel()
    assert task.result() == "released"
    assert caplog.record_tuples == []


@pytest.mark.parametrize("kind", ["a task", "several", "within a limit", "answered"])
async def test_who_waits_for_a_task_that_does_not_end_is_left_too(
    kind: str, stubborn: Stubborn, caplog: pytest.LogCaptureFixture
) -> None:
    async def body(inner: asyncio.Task[Any]) -> object:
        match kind:
            case "a task":
                return await inner
            case "several":
                return await asyncio.gather(inner)
            case _:
                return await asyncio.wait_for(inner, 60)

    async with asyncio.TaskGroup() as group:
        inner = group.create_task(stubborn())
        answer = inner if kind == "answered" else body(inner)
        task = await cancelled(lambda: await_settled(answer, name="a hook"))
        was_done, stubborn.released = inner.done(), True
        inner.cancel()
    assert task.cancelled()
    assert not was_done
    assert stubborn.began > 1
    assert "a hook does not end when it is cancelled" in caplog.text


@each_case("keeps", [False, True])
async def test_a_task_that_cleans_up_is_waited_for_and_what_comes_of_it_is_the_bodys(keeps: bool) -> None:
    seen = []

    async def tidy() -> str:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            await asyncio.sleep(0)
            seen.append("tidied")
            if not keeps:
                raise
        return "kept"

    async with asyncio.TaskGroup() as group:
        inner = group.create_task(tidy())

        async def body() -> str:
            try:
                return await inner
            finally:
                seen.append("body")

        async def run() -> object:
            return await letting_go(body(), patience=60)

        task = await cancelled(run)
    assert seen == ["tidied", "body"]
    assert task.cancelled() is not keeps
    assert not keeps or task.result() == "kept"


async def test_a_shielded_task_goes_on_without_who_was_cancelled() -> None:
    come = asyncio.Event()

    async def body(inner: asyncio.Task[Any]) -> object:
        return await asyncio.shield(inner)

    async with asyncio.TaskGroup() as group:
        inner = group.create_task(come.wait())

        async def run() -> object:
            return await letting_go(body(inner), patience=60)

        assert (await cancelled(run)).cancelled()
        assert not inner.done()
        come.set()
    assert inner.result() is True


async def test_what_cannot_be_awaited_is_told_as_ever() -> None:
    task = asyncio.current_task()
    assert task is not None

    class Odd:
        def __init__(self, *given: object) -> None:
            self.given = given

        def __await__(self) -> Generator[Any, Any, None]:
            yield from self.given

    async def body(what: object) -> None:
        await Odd(what)

    other = asyncio.new_event_loop()
    elsewhere: asyncio.Future[None] = other.create_future()
    other.close()
    for odd, words in ((7, "bad yield"), (task, "cannot await on itself"), (elsewhere, "different loop")):
        with pytest.raises(RuntimeError, match=words):
            await letting_go(body(odd))
