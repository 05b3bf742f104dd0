from __future__ import annotations

from bot.core.cluster_messages import PlaceChanged
from bot.core.journal import PlaceSet
from bot.memory.quiet_overrides import QuietOverride, QuietOverrides
from tests.bot.memory.test_row import Ear
from tests.fakes import GROUP, PRIVATE, ManualClock, RecordingStore

MUTE = QuietOverride(is_mute=True)


def wishes(store: RecordingStore) -> QuietOverrides:
    return QuietOverrides(store=store, choices=store, clock=ManualClock(1000.0))


async def test_what_somebody_wished_outlives_the_process_until_its_time_or_its_end() -> None:
    store = RecordingStore()
    first = wishes(store)
    assert await first.keep(GROUP, QuietOverride(is_mute=False, until=1600.4))
    assert await first.keep(PRIVATE, MUTE)
    assert (first.of(GROUP), first.of(PRIVATE)) == (QuietOverride(is_mute=False, until=1600.4), MUTE)
    second = wishes(store)
    assert second.of(GROUP) is None
    assert await second.start()
    assert (second.of(GROUP), second.of(PRIVATE)) == (QuietOverride(is_mute=False, until=1600.0), MUTE)
    assert await second.end(PRIVATE)
    third = wishes(store)
    third._clock = ManualClock(1600.0)
    assert await third.start()
    assert (third.of(GROUP), third.of(PRIVATE)) == (None, None)


async def test_what_cannot_be_written_down_is_not_so() -> None:
    store = RecordingStore()
    kept = wishes(store)
    store.trouble = True
    assert not await kept.keep(GROUP, MUTE)
    assert kept.of(GROUP) is None
    store.trouble = False
    assert await kept.keep(GROUP, MUTE)
    store.trouble = True
    assert not await kept.end(GROUP)
    assert kept.of(GROUP) == MUTE


async def test_what_was_said_before_the_journal_could_be_read_is_newer_and_what_nobody_understands_is_nothing() -> None:
    store = RecordingStore()
    store.put(PlaceSet(GROUP, "hush", "mute"), PlaceSet(PRIVATE, "hush", "whisper"))
    kept = wishes(store)
    store.trouble = True
    assert not await kept.start()
    store.trouble = False
    assert await kept.end(GROUP)
    await kept.run()
    assert (kept.of(GROUP), kept.of(PRIVATE)) == (None, None)


async def test_what_is_wished_on_a_page_of_another_bot_holds_here_until_it_is_ended_there() -> None:
    store, clock, ear = RecordingStore(), ManualClock(), Ear()
    here = QuietOverrides(store=store, choices=store, clock=clock, neighbours=ear)
    there = QuietOverrides(store=store, choices=store, clock=clock)
    assert await here.keep(GROUP, QuietOverride(is_mute=True))
    for note in ear.notes:
        assert isinstance(note, PlaceChanged)
        there.hear(note.where, note.value)
    held = [there.of(GROUP)]
    assert await here.end(GROUP)
    (*_, note) = ear.notes
    assert isinstance(note, PlaceChanged)
    there.hear(note.where, note.value)
    held.append(there.of(GROUP))
    assert held == [QuietOverride(is_mute=True), None]
    store.trouble = True
    assert not await here.keep(GROUP, QuietOverride(is_mute=True))
    assert len(ear.notes) == 2
