from __future__ import annotations

import asyncio

import pytest

from frostagent.cancellation import is_cancelled, isolate
from tests.cases import each_case


class Panic(BaseException):
    """As a library in Rust raises it."""


@each_case("error", [ValueError(), SystemExit(), Panic(), asyncio.CancelledError()])
async def test_what_foreign_code_raises_is_its_own(error: BaseException) -> None:
    isolate(error)


@each_case("error", [KeyboardInterrupt(), GeneratorExit()])
def test_what_comes_from_outside_goes_on(error: BaseException) -> None:
    with pytest.raises(type(error)):
        isolate(error)


async def test_a_cancellation_of_this_task_goes_on() -> None:
    async def wait() -> None:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError as error:
            assert is_cancelled()
            isolate(error)

    async with asyncio.TaskGroup() as tasks:
        waiting = tasks.create_task(wait())
        await asyncio.sleep(0)
        waiting.cancel()
    assert waiting.cancelled()


def test_outside_a_loop_nothing_is_cancelled() -> None:
    assert not is_cancelled()
