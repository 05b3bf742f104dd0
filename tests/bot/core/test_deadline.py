"""What is cleaned up in a cancelled task has its time, and no more."""

from __future__ import annotations

import asyncio
from contextlib import suppress

import pytest

from frostagent.cancellation import last_moments


async def in_a_cancelled_task(seconds: float, *, ready: bool = False) -> list[str]:
    """What becomes of a wait of so many seconds in the cleaning up of a task; the event it waits for may be there."""
    told: list[str] = []
    began, event = asyncio.Event(), asyncio.Event()
    if ready:
        event.set()

    async def work() -> None:
        try:
            began.set()
            await asyncio.Event().wait()
        finally:
            try:
                async with last_moments(seconds):
                    await event.wait()
                told.append("done")
            except TimeoutError:
                told.append("over")
            told.append("cleaned up")

    async with asyncio.TaskGroup() as group:
        task = group.create_task(work())
        await began.wait()
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task
        told.append("cancelled" if task.cancelled() else "went on")
    return told


async def test_a_wait_in_a_cancelled_task_ends_in_time_and_the_rest_is_cleaned_up() -> None:
    assert await in_a_cancelled_task(0.01) == ["over", "cleaned up", "cancelled"]
    assert await in_a_cancelled_task(30, ready=True) == ["done", "cleaned up", "cancelled"]


async def test_in_any_other_task_it_is_an_ordinary_time_out() -> None:
    task = asyncio.current_task()
    assert task is not None
    with pytest.raises(TimeoutError):
        async with last_moments(0.01):
            await asyncio.Event().wait()
    assert task.cancelling() == 0


async def test_a_cancellation_from_outside_stays_one() -> None:
    began = asyncio.Event()

    async def work() -> None:
        async with last_moments(30):
            began.set()
            await asyncio.Event().wait()

    async with asyncio.TaskGroup() as group:
        task = group.create_task(work())
        await began.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert task.cancelled()


async def test_its_alarm_does_not_ring_after_its_end() -> None:
    loop = asyncio.get_running_loop()
    later = loop.create_future()
    async with last_moments(0):
        loop.call_later(0, later.set_result, None)  # behind the alarm
    await later


async def test_it_is_for_tasks_only() -> None:
    told: asyncio.Future[str] = asyncio.get_running_loop().create_future()

    def in_no_task() -> None:
        try:
            last_moments(1).__aenter__().__await__().send(None)
        except RuntimeError as error:
            told.set_result(str(error))

    asyncio.get_running_loop().call_soon(in_no_task)
    assert "only a task" in await told
