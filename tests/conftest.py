"""For all tests: how hypothesis, the collection of garbage and the number of workers are set."""

from __future__ import annotations

import gc
import os
from collections.abc import Generator

import pytest
from hypothesis import settings

from bot.runtime.collector import relax_collector

# Property tests have no deadline of their own (machines are busy), only pytest's.
settings.register_profile("default", deadline=None)
settings.load_profile("default")


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
