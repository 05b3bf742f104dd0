from __future__ import annotations

import asyncio

import pytest
from msgspec.structs import replace

from bot.core.journal import SendState
from bot.outbox.sends import MISSING, Send, SendJournal, Unconfirmed
from tests.bot.outbox.post import hello, own
from tests.fakes import BOT, GROUP, PRIVATE, CountingIds, ManualClock, RecordingStore


class Desk:
    """The unconfirmed sends, and the store they are rows of."""

    def __init__(self) -> None:
        self.store, self.clock = RecordingStore(), ManualClock()
        self.unconfirmed = Unconfirmed(
            journal=SendJournal(store=self.store, clock=self.clock, ids=CountingIds()), clock=self.clock
        )

    def add(self, send_id: str, text: str = "hello", *, private: bool = False) -> Send:
        action = hello(text, PRIVATE) if private else hello(text)
        send = Send(send_id, "t1", action, final=True, at=self.clock.now(), recorded=True)
        self.unconfirmed.add(send)
        return send

    def news(self) -> bool:
        return not self.unconfirmed._news.empty()


async def test_what_is_in_doubt_is_known_by_its_place_and_by_its_account() -> None:
    desk = Desk()
    one, two, other = desk.add("1"), desk.add("2", "bye"), desk.add("3", private=True)
    assert desk.unconfirmed.places(BOT) == (GROUP, PRIVATE)
    assert desk.unconfirmed.places(20002) == ()
    assert desk.unconfirmed.at(GROUP) == [one, two]
    assert desk.unconfirmed.holds(other)
    assert one.doubted == desk.clock.now()


async def test_each_doubt_is_news_at_once_and_each_place_again_after_a_connection() -> None:
    async with asyncio.timeout(30):
        desk = Desk()
        desk.add("1")
        desk.add("2", "bye")
        assert [await desk.unconfirmed.next() for _ in range(2)] == [GROUP, GROUP]
        assert not desk.news()
        desk.unconfirmed.look_again()
        assert await desk.unconfirmed.next() == GROUP
        assert not desk.news()


async def test_a_message_confirms_one_send_once() -> None:
    desk = Desk()
    one, two = desk.add("1"), desk.add("2")
    message = own("hello", "77")
    for _ in range(2):
        desk.unconfirmed.compare([message], desk.unconfirmed.at)
    assert (one.found, two.found) == ("77", None)
    assert desk.unconfirmed.at(GROUP) == [two]
    assert desk.unconfirmed.is_known(message)
    assert not desk.unconfirmed.is_known(own("hello", "78"))
    (changed,) = desk.store.of("send_changed")
    assert (getattr(changed, "state", None), getattr(changed, "message_id", None)) == (SendState.CONFIRMED, "77")


async def test_what_is_lost_is_looked_for_no_more_and_is_for_the_caller_to_write_down() -> None:
    desk = Desk()
    one, two = desk.add("1"), desk.add("2", "bye")
    (entry,) = desk.unconfirmed.lost([one])
    assert (entry.send_id, entry.state, entry.reason) == ("1", SendState.DROPPED, MISSING)
    assert desk.store.entries == []
    assert desk.unconfirmed.at(GROUP) == [two]
    with pytest.raises(ValueError, match="not in deque"):
        desk.unconfirmed.lost([one])


async def test_what_was_confirmed_lately_is_none_of_the_doubts_under_whatever_id_a_history_tells_it() -> None:
    desk = Desk()
    said, lost = desk.add("1"), desk.add("2")
    desk.unconfirmed.confirm(said, "77")
    rows = [own("hello", "-77"), own("hello", "-78"), own("bye", "-79")]
    assert desk.unconfirmed.unexplained(rows[:1]) == []
    assert desk.unconfirmed.unexplained(rows) == rows[1:]
    assert desk.unconfirmed.unexplained([]) == []
    elsewhere = replace(rows[0], conversation=PRIVATE)
    assert desk.unconfirmed.unexplained([elsewhere]) == [elsewhere]
    desk.unconfirmed.compare(desk.unconfirmed.unexplained(rows), lambda _: [lost])
    assert lost.found == "-78"
    desk.clock.time += 61
    assert desk.unconfirmed.unexplained(rows[:1]) == rows[:1]
