from __future__ import annotations

from bot.memory.personas import KEPT, PersonaTexts
from tests.fakes import RecordingStore


def texts(store: RecordingStore) -> PersonaTexts:
    return PersonaTexts(store=store, choices=store)


async def test_the_latest_text_counts_over_restarts_until_somebody_goes_back() -> None:
    store = RecordingStore()
    told = texts(store)
    assert await told.start()
    for text in ("one", "two"):
        assert await told.change("fox", text)
    assert await told.change("", "usual")
    told = texts(store)
    assert await told.start()
    assert told.latest == {"fox": "two", "": "usual"}
    assert await told.go_back("fox")
    assert told.latest == {"fox": "one", "": "usual"}
    assert await told.go_back("fox")
    assert told.latest == {"": "usual"}
    assert not await told.go_back("fox")


async def test_only_the_last_texts_are_kept() -> None:
    told = texts(RecordingStore())
    await told.start()
    for number in range(KEPT + 5):
        await told.change("", str(number))
    backs = [told.latest[""] for _ in range(KEPT - 1) if await told.go_back("")]
    assert backs == [str(number) for number in range(KEPT + 3, 4, -1)]
    assert await told.go_back("")
    assert told.latest == {}


async def test_what_cannot_be_written_down_or_read_changes_nothing() -> None:
    store = RecordingStore()
    told = texts(store)
    assert not await told.change("", "before it is read")
    assert await told.start()
    store.trouble = True
    assert not await told.change("", "x")
    assert told.latest == {}
    assert not await texts(store).start()
