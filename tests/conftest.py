"""For all tests: how hypothesis, the collection of garbage, signals and the number of workers are set."""

from __future__ import annotations

import gc
import os
import signal
from collections.abc import Generator

import pytest
from hypothesis import settings

from bot.runtime.collector import relax_collector

# Property tests have no deadline of their own (machines are busy), only pytest's.
settings.register_profile("default", deadline=None)
settings.load_profile("default")

# Under nohup, or in the background of a script, a process ignores these, and so would all that tests start.
for _name, _usual in (("SIGINT", signal.default_int_handler), ("SIGHUP", signal.SIG_DFL)):
    _number = getattr(signal, _name, None)  # Windows has no SIGHUP
    if _number is not None and signal.getsignal(_number) is signal.SIG_IGN:
        signal.signal(_number, _usual)


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """While tests are collected nothing becomes garbage, and looking for it is half the work; later, done seldom."""
    gc.disable()
    try:
        return (yield)
    finally:
        relax_collector()
        gc.enable()


def pytest_xdist_auto_num_workers() -> int:
    """Half as many again as there are cores: tests wait for processes and deadlines a third of their time."""
    cores = os.cpu_count() or 1
    return cores + cores // 2
