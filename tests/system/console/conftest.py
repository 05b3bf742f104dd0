"""One Chromium a worker and one console, which all tests of this folder share."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from functools import partial
from pathlib import Path
from typing import Any

import pytest_asyncio

from tests.adapters.console.visiting import SAME, Place, visiting
from tests.system.console.desks import Opening, open_desk
from tests.system.console.sights import fill
from tests.tiers import CHROMIUM


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
