from __future__ import annotations

from bot.domain.actions import Attachment, SendMessage
from bot.domain.journal import PlaceSet
from bot.memory.drafts import LASTS, MEDIA, MOST, SETTING, Drafts
from tests.fakes import GROUP, ManualClock, RecordingStore


def drafts(store: RecordingStore, clock: ManualClock | None = None) -> Drafts:
    return Drafts(store=store, choices=store, clock=clock or ManualClock())


async def test_numbers_are_given_once_over_restarts_and_what_waited_still_waits() -> None:
    store = RecordingStore()
    first = drafts(store)
    for turn in ("t1", "t2"):
        _, entry = first.add(GROUP, turn)
        store.put(entry)
    store.put(first.end(2, "left"))
    second = drafts(store)
    assert await second.start()
    assert {number: one.turn_id for number, (_, one) in second.open.items()} == {1: "t1"}
    assert second.add(GROUP, "t3")[0].number == 3
    store.trouble = True
    assert not await drafts(store).start()


async def test_what_no_version_of_ours_wrote_is_no_draft() -> None:
    store = RecordingStore()
    store.put(PlaceSet(GROUP, SETTING, "[1]"))
    made = drafts(store)
    assert await made.start()
    assert not made.open


def test_the_oldest_leave_where_too_many_wait_or_their_day_is_over() -> None:
    clock = ManualClock()
    made = drafts(RecordingStore(), clock)
    for number in range(MOST + 2):
        made.add(GROUP, f"t{number}")
    assert list(made.open) == list(range(3, MOST + 3))
    clock.time += LASTS
    made.add(GROUP, "t")
    assert list(made.open) == [MOST + 3]


def test_media_are_at_hand_within_bounds_until_somebody_is_forgotten() -> None:
    made = drafts(RecordingStore())
    picture = (SendMessage(GROUP, (Attachment("image", "x" * (MEDIA // 2), "a.png"),)),)
    made.hold(1, picture)
    made.hold(2, (SendMessage(GROUP, (Attachment("file", "x" * (MEDIA + 1), "a"),)),))
    assert (made.held(1), made.held(2)) == (picture, ())
    made.hold(3, picture)
    made.hold(4, picture)
    assert made.held(1) == ()
    made.forget()
    assert made.held(4) == ()
