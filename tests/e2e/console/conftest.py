"""One Chromium a worker and one console, which all tests of this folder share."""

from __future__ import annotations

import shutil
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from tests.adapters.console.visiting import SAME, Place, visiting
from tests.e2e.console.desks import Opening, open_desk
from tests.e2e.console.sights import fill

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Without a browser they are skipped."""
    for item in items:
        if "tests/e2e/console" in item.path.as_posix() and CHROMIUM is None:
            item.add_marker(pytest.mark.skip(reason="there is no Chromium here"))


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def browser() -> AsyncIterator[Any]:
    from playwright.async_api import async_playwright

    async with async_playwright() as driver:
        chromium = await driver.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield chromium
        await chromium.close()


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def place() -> AsyncIterator[Place]:
    async with visiting() as console:
        fill(console)
        await console.log_in()
        await console.ask("POST", "/health/doctor", data={"form": await console.form()}, headers=SAME)
        yield console


@pytest_asyncio.fixture(loop_scope="session")
async def desk(browser: Any, tmp_path: Path) -> AsyncIterator[Opening]:
    """Opens one, which lives as long as the test."""
    async with AsyncExitStack() as stack:
        yield partial(open_desk, stack, browser, tmp_path)
