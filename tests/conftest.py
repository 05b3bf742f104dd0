"""For all tests: two tiers, and how hypothesis, the collection of garbage, signals and workers are set."""

from __future__ import annotations

import gc
import os
import signal
from collections.abc import Generator
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings

from bot.core.engine_words import ENGINE_WORDS
from bot.runtime.garbage_collection import relax_collector
from frostagent.words import use_words
from tests import tiers
from tests.compiling import share_compiled

# Property tests have no deadline of their own (machines are busy), only pytest's.
settings.register_profile("default", deadline=None, max_examples=40)
settings.register_profile("thorough", deadline=None, max_examples=100)
settings.load_profile("default")

share_compiled()

use_words(ENGINE_WORDS)  # as the service does; the library's own tests have its own

# Under nohup, or in the background of a script, a process ignores these, and so would all that tests start.
for _name, _usual in (("SIGINT", signal.default_int_handler), ("SIGHUP", signal.SIG_DFL)):
    _number = getattr(signal, _name, None)  # Windows has no SIGHUP
    if _number is not None and signal.getsignal(_number) is signal.SIG_IGN:
        signal.signal(_number, _usual)


def pytest_addoption(parser: pytest.Parser) -> None:
    tiers.add_option(parser)


def pytest_configure(config: pytest.Config) -> None:
    if config.option.system:
        settings.load_profile("thorough")
    config.add_cleanup(tiers.start_postgres(config).close)


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    return True if tiers.is_ignored(collection_path, config) else None


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    tiers.deselect(config, items)


def pytest_runtest_setup(item: pytest.Item) -> None:
    tiers.skip_without_engine(item)


@pytest.hookimpl(wrapper=True)
def pytest_collection(session: pytest.Session) -> Generator[None, object, object]:
    """While tests are collected nothing becomes garbage, and looking for it is half the work; later, done seldom."""
    gc.disable()
    try:
        share_compiling(session.config)
        return (yield)
    finally:
        relax_collector()
        gc.enable()


def share_compiling(config: pytest.Config) -> None:
    """Each worker begins to import all tests elsewhere, and finds the bytecode of the others further on.

    In a fresh clone, compiling every assert is more than half of collecting, and each worker did it for all.
    """
    worker: dict[str, Any] | None = getattr(config, "workerinput", None)
    if worker is None or config.args_source is not pytest.Config.ArgsSource.TESTPATHS:
        return
    paths = sorted(Path(__file__).parent.glob("**/test_*.py"))
    first = len(paths) * int(worker["workerid"].removeprefix("gw")) // worker["workercount"]
    for path in paths[first:] + paths[:first]:
        with suppress(Exception):  # pytest imports it again, and tells
            import_module(".".join(path.relative_to(config.rootpath).with_suffix("").parts))


def pytest_xdist_auto_num_workers() -> int:
    """Half as many again as there are cores: tests wait for processes and deadlines a third of their time."""
    cores = os.cpu_count() or 1
    return cores + cores // 2
