from __future__ import annotations

import asyncio
from typing import Final

import pytest

from bot.budget.limits import LIMITS
from bot.core.conversation import NOWHERE, Conversation
from bot.core.journal import PersonaChosen, PlaceSet
from bot.core.other_bots import Announcement, PlaceChanged, RowChanged
from bot.memory.modes import MODE, Mode
from bot.memory.personas import PERSONA_TEXTS
from bot.quiet.quiet_hours import QUIET, QuietOverride
from bot.settings_store import PERSONA, SettingsStore, TableSetting
from tests.fakes import GROUP, PRIVATE, ManualClock, RecordingStore
from tests.settings import kept_settings

MUTE: Final = QuietOverride(is_mute=True)
THERE: Final = Conversation(1000, "group", 77)
COUNTS: Final = TableSetting[int, int]("counts", dict[str, int], key=int, lasts=lambda value, _: bool(value))


class Ear:
    can_alarm = False

    def __init__(self) -> None:
        self.notes: list[Announcement] = []

    def tell(self, note: Announcement, /) -> None:
        self.notes.append(note)


def counts_in(store: RecordingStore) -> SettingsStore:
    return SettingsStore((COUNTS,), store=store, choices=store, clock=ManualClock())


async def add(counts: SettingsStore, key: int, more: int | None) -> bool:
    return await counts.update(COUNTS, key, lambda value: None if more is None else (value or 0) + more)


# --- of places ------------------------------------------------------------------------------------


async def test_what_is_set_before_the_journal_could_be_read_is_newer_than_what_it_holds() -> None:
    store = RecordingStore()
    store.put(PlaceSet(GROUP, "mode", "off"), PlaceSet(GROUP, "hush", "mute"), PlaceSet(THERE, "hush", "mute"))
    store.put(PersonaChosen(GROUP, "fox"), PersonaChosen(THERE, "owl"))
    kept = kept_settings(store)
    store.trouble = True
    assert not await kept.load()
    store.trouble = False
    kept.put(MODE, GROUP, Mode.LIVE)
    assert await kept.set(QUIET, GROUP, None)
    assert await kept.set(PERSONA, GROUP, "")
    assert await kept.load()
    assert kept.get(MODE, GROUP) is Mode.LIVE
    assert dict(kept.all(QUIET)) == {THERE: MUTE}
    assert dict(kept.all(PERSONA)) == {GROUP: "", THERE: "owl"}


async def test_what_nobody_understands_any_more_is_not_set() -> None:
    store = RecordingStore()
    store.put(PlaceSet(GROUP, "hush", "mute"), PlaceSet(PRIVATE, "hush", "whisper"), PlaceSet(GROUP, "mode", "x"))
    kept = kept_settings(store)
    assert await kept.load(QUIET, MODE)
    assert (dict(kept.all(QUIET)), dict(kept.all(MODE))) == ({GROUP: MUTE}, {})


async def test_what_cannot_be_written_down_is_not_so() -> None:
    store, ear = RecordingStore(), Ear()
    kept = kept_settings(store, announcer=ear)
    store.trouble = True
    assert not await kept.set(QUIET, GROUP, MUTE)
    assert kept.get(QUIET, GROUP) is None
    store.trouble = False
    assert await kept.set(QUIET, GROUP, MUTE)
    store.trouble = True
    assert not await kept.set(QUIET, GROUP, None)
    assert kept.get(QUIET, GROUP) == MUTE
    assert len(ear.notes) == 1


async def test_read_once_more_it_is_what_the_journal_says_unless_that_cannot_be_read() -> None:
    store = RecordingStore()
    kept = kept_settings(store)
    store.put(PlaceSet(GROUP, "hush", "mute"))
    assert await kept.load()
    for where, value in ((GROUP, ""), (THERE, "mute"), (Conversation(1000, "group", 78), "no such wish")):
        store.put(PlaceSet(where, "hush", value))
    store.trouble = True
    await kept.reload()
    assert dict(kept.all(QUIET)) == {GROUP: MUTE}
    store.trouble = False
    await kept.reload()
    assert dict(kept.all(QUIET)) == {THERE: MUTE}


async def test_what_was_not_read_yet_is_taken_from_the_journal_where_messages_may_have_been_missed() -> None:
    store = RecordingStore()
    kept = kept_settings(store)
    kept.apply(PlaceChanged(GROUP, "hush", "mute"))
    store.put(PlaceSet(THERE, "hush", "mute"))
    await kept.reload()
    assert dict(kept.all(QUIET)) == {THERE: MUTE}
    store.put(PlaceSet(GROUP, "hush", "mute"))
    assert await kept.load()
    assert dict(kept.all(QUIET)) == {THERE: MUTE, GROUP: MUTE}


async def test_what_is_set_on_a_page_of_another_bot_holds_here_until_it_is_ended_there() -> None:
    store, ear = RecordingStore(), Ear()
    here, there = kept_settings(store, announcer=ear), kept_settings(store)
    held = []
    for value in (MUTE, None):
        assert await here.set(QUIET, GROUP, value)
        (*_, note) = ear.notes
        assert isinstance(note, PlaceChanged)
        there.apply(note)
        held.append(there.get(QUIET, GROUP))
    assert held == [MUTE, None]
    assert await here.set(MODE, GROUP, Mode.OFF)  # the bot that has the account is the only one to know
    assert len(ear.notes) == 2


async def test_a_setting_of_another_version_or_of_one_bot_alone_is_not_taken_over() -> None:
    kept = kept_settings(RecordingStore())
    for note in (PlaceChanged(GROUP, "mode", "off"), PlaceChanged(GROUP, "limits", "{}"), RowChanged("colours", "{}")):
        kept.apply(note)
    assert kept.get(MODE, GROUP) is None


# --- in a table -----------------------------------------------------------------------------------


async def test_values_that_are_changed_at_once_are_all_in_the_row_and_read_again_after_a_restart() -> None:
    store = RecordingStore()
    counts = counts_in(store)
    assert not await add(counts, 1, 1)  # nobody knows yet what else there is
    assert await counts.load()
    assert all(await asyncio.gather(*(add(counts, key % 3, 1) for key in range(9))))
    assert await add(counts, 2, -3)  # lasts no longer
    assert not await add(counts, 1, None)
    assert counts.all(COUNTS) == {0: 3, 1: 3}
    assert await store.settings("counts") == {NOWHERE: '{"0":3,"1":3}'}
    again = counts_in(store)
    assert await again.load()
    assert again.all(COUNTS) == counts.all(COUNTS)
    assert await add(again, 1, 1)
    assert again.all(COUNTS) == {0: 3, 1: 4}
    store.trouble = True
    assert await again.load()  # it was read before


async def test_a_table_that_cannot_be_read_or_written_down_is_not_changed() -> None:
    store = RecordingStore()
    counts = counts_in(store)
    assert await counts.load()
    store.trouble = True
    assert not await add(counts, 1, 1)
    assert counts.all(COUNTS) == {}
    assert not await counts_in(store).load()


async def test_what_another_bot_has_set_in_a_table_is_known_once_it_tells_and_stays_though_nobody_did() -> None:
    store, ear = RecordingStore(), Ear()
    here, there = kept_settings(store, announcer=ear), kept_settings(store)
    store.put(PlaceSet(NOWHERE, "persona_texts", '{"owl":["white"]}'))
    await here.reload()
    assert here.all(PERSONA_TEXTS) == {}  # what is not read yet, is not read again
    store.put(PlaceSet(NOWHERE, "persona_texts", ""))
    for one in (here, there):
        assert await one.load()
    assert await here.update(PERSONA_TEXTS, "fox", lambda _: ("red",))
    assert there.get(PERSONA_TEXTS, "fox") is None
    (note,) = ear.notes
    assert isinstance(note, RowChanged)
    there.apply(note)
    assert there.get(PERSONA_TEXTS, "fox") == ("red",)
    assert await here.update(PERSONA_TEXTS, "", lambda _: ("usual",))
    assert await there.update(PERSONA_TEXTS, "owl", lambda _: ("grey",))  # nobody told it of the usual one
    await here.reload()
    assert here.all(PERSONA_TEXTS) == there.all(PERSONA_TEXTS) == {"fox": ("red",), "": ("usual",), "owl": ("grey",)}


async def test_a_row_that_was_read_late_does_not_undo_what_was_set_meanwhile(monkeypatch: pytest.MonkeyPatch) -> None:
    store = RecordingStore()
    counts = counts_in(store)
    read = store.settings
    goes_on = asyncio.Event()

    async def late(name: str) -> object:
        found = await read(name)
        await goes_on.wait()
        return found

    async with asyncio.TaskGroup() as group:
        with monkeypatch.context() as slow:
            slow.setattr(store, "settings", late)
            loading = group.create_task(counts.load())
            await asyncio.sleep(0)
        assert await counts.load()
        assert await add(counts, 1, 1)
        goes_on.set()
        assert await loading
    assert counts.all(COUNTS) == {1: 1}


async def test_a_shared_value_that_is_put_is_announced_too() -> None:
    ear = Ear()
    kept = kept_settings(RecordingStore(), announcer=ear)
    kept.put(QUIET, GROUP, MUTE)
    kept.put(MODE, GROUP, Mode.OFF)
    assert ear.notes == [PlaceChanged(GROUP, "hush", "mute")]


# --- who follows ----------------------------------------------------------------------------------


async def test_who_follows_a_setting_is_told_of_each_change_of_it() -> None:
    store, told = RecordingStore(), list[str]()
    kept = kept_settings(store)
    kept.follow(QUIET, lambda: told.append("quiet"))
    kept.follow(LIMITS, lambda: told.append("limits"))
    assert await kept.load()
    assert told == ["limits", "quiet"]
    await kept.set(QUIET, GROUP, MUTE)
    kept.put(MODE, GROUP, Mode.OFF)
    kept.apply(RowChanged("limits", "{}"))
    assert told[2:] == ["quiet", "limits"]
