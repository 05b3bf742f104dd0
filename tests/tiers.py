"""Which tests `make test` leaves to `make check`, and what is skipped there for want of an engine.

The second tier is `tests/system`, single tests elsewhere that are marked `system`, and whatever asks for an engine by
its fixture. `pytest --system` runs both tiers, and so does a file that the command line names.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable, Mapping
from contextlib import ExitStack, suppress
from pathlib import Path

import pytest

from tests import postgres, rabbit

SYSTEM = Path(__file__).parent / "system"
CONSOLE = SYSTEM / "console"
POSTGRES = "FROST_TEST_POSTGRES"
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")


def no_postgres() -> str:
    named = f"{POSTGRES} names no server, and --system starts one only if it is installed (Debian: postgresql)"
    return "" if os.environ.get(POSTGRES) else named


def no_chromium() -> str:
    return "" if CHROMIUM else "Chromium is not installed (Debian: chromium)"


ENGINES: Mapping[str, Callable[[], str]] = {
    "schemas": no_postgres,
    "postgres": no_postgres,
    "store_url": no_postgres,
    "node": rabbit.why_not,
    "rabbit": rabbit.why_not,
    "browser": no_chromium,
}
"""Fixtures that stand for an engine, and why there is none."""


def add_option(parser: pytest.Parser) -> None:
    parser.addoption("--system", action="store_true", help="also what needs a process, a browser or an engine")


def named(config: pytest.Config) -> list[Path]:
    """The files and folders that the command line names."""
    if config.args_source is not pytest.Config.ArgsSource.ARGS:
        return []
    return [(config.invocation_params.dir / arg.partition("::")[0]).resolve() for arg in config.args]


def is_ignored(path: Path, config: pytest.Config) -> bool:
    """Whether a folder is not even collected."""
    inside = any(SYSTEM in (place, *place.parents) for place in named(config))
    return path == SYSTEM and not (config.option.system or inside)


def engines_of(item: pytest.Item) -> list[str]:
    """The engines a test needs, by their fixtures."""
    names = {*getattr(item, "fixturenames", ())}
    names.add(getattr(getattr(item, "callspec", None), "params", {}).get("url", ""))  # each database in turn
    if CONSOLE in item.path.parents:
        names.add("browser")
    return sorted(ENGINES.keys() & names)


def is_system(item: pytest.Item) -> bool:
    return SYSTEM in item.path.parents or item.get_closest_marker("system") is not None or bool(engines_of(item))


def deselect(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Take the second tier out, unless it is wanted; and keep the tests of each broker together."""
    if not config.option.system:
        places = named(config)
        left = {
            item for item in items if is_system(item) and item.path not in places and SYSTEM not in item.path.parents
        }
        config.hook.pytest_deselected(items=list(left))
        items[:] = [item for item in items if item not in left]
    for item in items:
        for broker in {"node", "rabbit"} & {*engines_of(item)}:
            item.add_marker(pytest.mark.xdist_group(broker))


def skip_without_engine(item: pytest.Item) -> None:
    """Skip here, not in a fixture, so that one line tells of all."""
    for engine in engines_of(item):
        if reason := ENGINES[engine]():
            pytest.skip(reason)


def start_postgres(config: pytest.Config) -> ExitStack:
    """One PostgreSQL for all workers, unless there is one already or none is wanted or installed. One that cannot
    start is as good as none.
    """
    stack = ExitStack()
    is_worker = hasattr(config, "workerinput")
    if config.option.system and not is_worker and not os.environ.get(POSTGRES) and not postgres.why_not():
        with suppress(OSError, subprocess.CalledProcessError, KeyError):
            os.environ[POSTGRES] = stack.enter_context(postgres.running()).url
            stack.callback(os.environ.pop, POSTGRES)
    return stack
