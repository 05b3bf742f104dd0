from __future__ import annotations

from bot.cluster.handlers import Suspects
from bot.core.conversation import NOWHERE
from bot.core.journal import PlaceSet
from tests.fakes import RecordingStore


def next_life(store: RecordingStore, partition: int = 3) -> Suspects:
    return Suspects(partition, store=store, choices=store)


async def test_who_takes_over_knows_how_often_an_event_was_begun_and_not_ended() -> None:
    store = RecordingStore()
    for before in range(3):
        assert await next_life(store).begin("a") == before
    assert await next_life(store).begin("b") == 0
    assert await next_life(store, partition=4).begin("a") == 0
    assert store.durable == len(store.entries) == 5


async def test_what_was_ended_is_known_no_more_and_the_others_are() -> None:
    store = RecordingStore()
    suspects = next_life(store)
    assert [await suspects.begin(event) for event in ("a", "b", "a")] == [0, 0, 1]
    suspects.end("a")
    after = next_life(store)
    assert [await after.begin(event) for event in ("a", "b")] == [0, 1]
    for event in ("a", "b", "unknown"):
        after.end(event)
    assert await store.settings("begun 3") == {}
    assert len(store.entries) == 8


async def test_while_the_journal_is_away_nobody_is_suspected() -> None:
    store = RecordingStore()
    assert await next_life(store).begin("a") == 0
    began = next_life(store)
    assert await began.begin("b") == 0
    store.trouble = True
    assert [await next_life(store).begin("a"), await began.begin("b")] == [0, 0]
    next_life(store).end("a")
    store.trouble = False
    assert await next_life(store).begin("a") == 1


async def test_what_another_version_wrote_otherwise_is_begun_anew_and_ends_nobody() -> None:
    store = RecordingStore()
    store.put(PlaceSet(NOWHERE, "begun 3", '["a"]'))
    began = next_life(store)
    assert [await began.begin("a"), await next_life(store).begin("a")] == [0, 1]
