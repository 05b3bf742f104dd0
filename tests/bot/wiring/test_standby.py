"""A worker waits for its turn, says so once for each reason, and lives on its pages meanwhile."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import cast

import pytest

from adapters.storage.claim import Taken
from adapters.storage.lease import Away
from adapters.storage.store import SqlStore
from bot.domain.errors import ConfigError, Problem
from bot.wiring.standby import PAUSE, first_in_line
from config.settings import Settings
from tests.fakes import ManualClock

JOURNAL = cast("SqlStore", "the journal")


async def waited(*refusals: Exception) -> tuple[SqlStore, list[float], list[str]]:
    """What is had in the end, how long was slept, and what was opened and closed."""
    left, clock, ledger = list(refusals), ManualClock(), list[str]()

    @asynccontextmanager
    async def opening() -> AsyncIterator[SqlStore]:
        if left:
            raise left.pop(0)
        ledger.append("opened")
        yield JOURNAL
        ledger.append("closed")

    async with AsyncExitStack() as stack:
        journal = await first_in_line(stack, opening, Settings(web_port=0), clock)
        assert ledger == ["opened"]
    assert ledger == ["opened", "closed"]
    return journal, clock.slept, ledger


async def test_it_is_had_at_once_where_nobody_has_it(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    journal, slept, _ = await waited()
    assert (journal, slept, caplog.messages) == (JOURNAL, [], [])


async def test_each_reason_to_wait_is_told_once(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    away, taken = Away("PostgreSQL", "refused"), Taken("PostgreSQL", " (7@a)")
    journal, slept, _ = await waited(away, away, taken, taken, taken)
    assert (journal, slept) == (JOURNAL, [PAUSE] * 5)
    assert caplog.messages == [
        "standing by: the journal cannot be reached (PostgreSQL: refused)",
        "standing by: the journal is in use (PostgreSQL) by another process (7@a)",
    ]


async def test_what_never_works_is_not_waited_for() -> None:
    with pytest.raises(ConfigError, match="of a newer version"):
        await waited(ConfigError(Problem("STORE_URL", "is of a newer version", "Start that")))
