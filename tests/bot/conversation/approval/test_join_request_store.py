from __future__ import annotations

from msgspec.structs import replace

from bot.conversation.approval.join_request_store import DAYS, MAX_OPEN, MAX_OPEN_EACH, JoinRequestStore
from bot.core.cluster_messages import SubjectErased
from bot.core.group_admin import JoinRequest
from bot.core.journal import PlaceSet
from tests.fakes import BOT, GROUP, ManualClock, RecordingStore

FRIEND = JoinRequest(account=BOT, kind="friend", user_id=5, flag="f")


def invite(user: int, group: int) -> JoinRequest:
    return JoinRequest(account=BOT, kind="invite", user_id=user, group_id=group, flag=f"{user}|{group}")


def register(store: RecordingStore, clock: ManualClock | None = None) -> JoinRequestStore:
    return JoinRequestStore(store=store, choices=store, clock=clock or ManualClock())


async def test_of_one_place_the_latest_waits_and_numbers_go_on_after_a_restart() -> None:
    store, clock = RecordingStore(), ManualClock()
    first = register(store, clock)
    assert (await first.add(replace(FRIEND, since=clock.time))).number == 1
    again = await first.add(replace(FRIEND, flag="g", since=clock.time))
    assert first.open == {2: again}
    store.put(PlaceSet(GROUP, "petition", "nonsense"))
    second = register(store, clock)
    assert await second.restore() == ()
    assert second.open == {2: again}
    assert second.is_known(again)
    assert not second.is_known(FRIEND)
    assert (await second.add(invite(6, 77))).number == 3
    clock.time += DAYS * 86_400
    third = register(store, clock)
    assert await third.restore() == ()
    assert third.open == {}
    assert await store.settings("petition") == {}


async def test_there_is_room_for_a_few_of_each_person_and_some_of_all() -> None:
    kept = register(RecordingStore())
    for group in range(1, MAX_OPEN_EACH + 1):
        await kept.add(invite(5, group))
    assert not kept.has_room(invite(5, 99))
    assert kept.has_room(invite(5, 1))  # in the place of the one before
    for user in range(100, 100 + MAX_OPEN - MAX_OPEN_EACH):
        assert kept.has_room(invite(user, user))
        await kept.add(invite(user, user))
    assert not kept.has_room(FRIEND)


async def test_what_was_answered_is_known_and_waits_no_more() -> None:
    store = RecordingStore()
    kept = register(store)
    petition = await kept.add(FRIEND)
    await kept.end(petition)
    assert (kept.open, kept.is_known(FRIEND), await store.settings("petition")) == ({}, True, {})


async def test_what_waits_cannot_be_known_while_the_journal_cannot_be_read() -> None:
    store = RecordingStore()
    store.trouble = True
    assert await register(store).restore() is None


async def test_who_is_forgotten_waits_no_more_and_is_not_written_down_again() -> None:
    store = RecordingStore()
    kept = register(store)
    friend, theirs = await kept.add(FRIEND), await kept.add(invite(5, 77))
    other, there = await kept.add(invite(6, 78)), await kept.add(replace(FRIEND, user_id=7))
    kept.forget(SubjectErased(user=5))
    assert list(kept.open.values()) == [other, there]
    kept.forget(SubjectErased(group=78))
    assert list(kept.open.values()) == [there]
    before = len(store.entries)
    await kept.wait(theirs)  # QQ was away, when an owner's word for it was just on its way
    assert len(store.entries) == before
    assert not kept.is_known(friend)
