from __future__ import annotations

from bot.core.journal import PlaceSet
from bot.memory.modes import Mode, Modes
from bot.memory.quiet_overrides import QuietOverrides
from frostagent.types.conversation import Conversation
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


async def test_read_once_more_it_is_what_the_journal_says_unless_that_cannot_be_read() -> None:
    store, there = RecordingStore(), Conversation(1000, "group", 77)
    kept = QuietOverrides(store=store, choices=store, clock=ManualClock(0.0))
    store.put(PlaceSet(GROUP, "hush", "mute"))
    await kept.start()
    for where, value in ((GROUP, ""), (there, "mute"), (Conversation(1000, "group", 78), "no such wish")):
        store.put(PlaceSet(where, "hush", value))
    store.trouble = True
    await kept.reread()
    assert kept.muted == (GROUP,)
    store.trouble = False
    await kept.reread()
    assert kept.muted == (there,)
