from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

from bot.commands import lookout
from bot.commands.daily import LOOK
from bot.wiring.daily import telling_daily
from config.settings import Settings
from tests.bot.commands.books import PaperBooks
from tests.fakes import GROUP, RecordingStore, SteppedClock


async def test_with_no_time_for_it_nothing_is_looked_at() -> None:
    nothing: Any = SimpleNamespace(books=None, answering=None, owner=SimpleNamespace(way=0, tell=None))
    nothing.stages = SimpleNamespace(petitions=None)
    clock, store = SteppedClock(), RecordingStore()
    nothing.on = SimpleNamespace(lanes=SimpleNamespace(in_progress=dict))
    async with telling_daily(Settings.model_validate({"bot_digest": ""}), nothing, nothing, store, clock):
        await clock.advance(LOOK)
    assert store.entries == []


async def test_owners_hear_of_a_turn_that_does_not_end() -> None:
    told: list[str] = []
    at: Any = SimpleNamespace(books=PaperBooks(), answering=SimpleNamespace(requests=SimpleNamespace(open={})))
    at.owner = SimpleNamespace(way=0, tell=lambda kind, _line: told.append(kind))
    at.stages = SimpleNamespace(petitions=SimpleNamespace(open=()))
    none: Any = SimpleNamespace(open={})
    lanes = SimpleNamespace(in_progress=lambda: {"a turn": GROUP})
    at.on = SimpleNamespace(lanes=lanes, modes=none, shadow=SimpleNamespace(drafts=none))
    clock = SteppedClock()
    async with telling_daily(Settings.model_validate({"bot_digest": ""}), at, at, RecordingStore(), clock):
        async with asyncio.timeout(5):
            while f"stuck in {GROUP}" not in told:
                await clock.advance(lookout.LOOK)  # more often than twice: a look waits for a thread, and the disk
