from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from bot.commands.daily import LOOK
from bot.wiring.daily import telling_daily
from config.settings import Settings
from tests.fakes import RecordingStore, SteppedClock


async def test_with_no_time_for_it_nothing_is_looked_at() -> None:
    nothing: Any = SimpleNamespace(books=None, answering=None, owner=SimpleNamespace(tell=None))
    nothing.stages = SimpleNamespace(petitions=None)
    clock, store = SteppedClock(), RecordingStore()
    nothing.on = SimpleNamespace(lanes=SimpleNamespace(in_progress=dict))
    async with telling_daily(Settings.model_validate({"bot_digest": ""}), nothing, nothing, store, clock):
        await clock.advance(LOOK)
    assert store.entries == []
