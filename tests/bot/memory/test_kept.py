from __future__ import annotations

from bot.domain.journal import PlaceSet
from bot.memory.modes import Modes
from bot.policy.new_groups import Mode
from tests.fakes import GROUP, ManualClock, RecordingStore


async def test_what_is_set_before_the_journal_could_be_read_is_newer_than_what_it_holds() -> None:
    store = RecordingStore()
    store.put(PlaceSet(GROUP, "mode", "off"))
    kept = Modes(store=store, choices=store, clock=ManualClock(0.0))
    store.trouble = True
    assert not await kept.start()
    store.trouble = False
    kept.put(GROUP, Mode.LIVE)
    await kept.run()
    assert kept.of(GROUP) is Mode.LIVE
