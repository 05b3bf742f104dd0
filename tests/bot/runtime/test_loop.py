"""What can be asked of these without ending the process; the rest is in test_cli.py and tests/system/processes."""

from __future__ import annotations

import asyncio
import os
import signal
from contextvars import ContextVar

import pytest

from bot.runtime.loop import fast_loop, leaf_exceptions, on_signal


def test_the_exceptions_of_a_group_are_told_one_by_one_however_deep() -> None:
    one, two, three = ValueError("1"), KeyError("2"), OSError("3")
    group = ExceptionGroup("all", [one, ExceptionGroup("inner", [two, ExceptionGroup("innermost", [three])])])
    assert list(leaf_exceptions(group)) == [one, two, three]


async def test_something_is_done_whenever_a_signal_comes() -> None:
    came = asyncio.Event()
    on_signal(signal.SIGUSR1, came.set)
    try:
        os.kill(os.getpid(), signal.SIGUSR1)
        async with asyncio.timeout(30):
            await came.wait()
    finally:
        asyncio.get_running_loop().remove_signal_handler(signal.SIGUSR1)


async def test_what_a_signal_does_has_nothing_of_the_run_that_it_interrupts(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise NotImplementedError  # as on Windows

    monkeypatch.setattr(type(asyncio.get_running_loop()), "add_signal_handler", refuse, raising=False)
    run: ContextVar[str] = ContextVar("run", default="")
    came: asyncio.Future[str] = asyncio.get_running_loop().create_future()
    before = signal.getsignal(signal.SIGUSR1)
    on_signal(signal.SIGUSR1, lambda: came.set_result(run.get()))
    try:
        run.set("r1")
        signal.raise_signal(signal.SIGUSR1)
        async with asyncio.timeout(30):
            assert await came == ""
    finally:
        signal.signal(signal.SIGUSR1, before)


def test_the_loop_is_one_that_runs() -> None:
    async def work() -> int:
        return 42

    with asyncio.Runner(loop_factory=fast_loop()) as runner:
        assert runner.run(work()) == 42
