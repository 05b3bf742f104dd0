from __future__ import annotations

import asyncio

from msgspec import structs

from bot.chat.deduplicator import Past, SeenMessages
from bot.core.conversation import Conversation
from tests.cases import each_case
from tests.fakes import GROUP, PRIVATE, ManualClock, said


def test_a_message_is_new_once_and_again_long_after() -> None:
    clock = ManualClock()
    seen, message = SeenMessages(clock=clock), said("hi")
    assert not seen.knows(message)
    assert [seen.claim(message) for _ in range(3)] == [True, False, False]
    assert seen.knows(message)
    clock.time += 601
    assert not seen.knows(message)
    assert seen.claim(message)


@each_case("where", [GROUP, PRIVATE])
def test_a_message_whose_recall_came_first_is_not_new(where: Conversation) -> None:
    clock = ManualClock()
    seen, message = SeenMessages(clock=clock), said("hi", where=where, message_id="7")
    older = structs.replace(message, time=clock.now() - 1)
    seen.forget(where, "7")
    assert [seen.defer(older), seen.claim(message), seen.knows(message)] == [False, False, True]
    assert seen.claim(said("hi", where=where, message_id="8"))


@each_case("message_id", ["", "0"])
def test_a_message_without_an_identity_is_always_new(message_id: str) -> None:
    seen, message = SeenMessages(clock=ManualClock()), said("hi", message_id=message_id)
    assert seen.claim(message)
    assert seen.claim(message)
    assert not seen.knows(message)


def test_of_what_is_older_than_the_process_nothing_is_known_before_the_journal_was_read() -> None:
    clock = ManualClock()
    seen = SeenMessages(clock=clock)
    older = structs.replace(said("older"), time=clock.now() - 1)
    younger = structs.replace(said("younger"), time=clock.now())
    assert [seen.past_of(older), seen.past_of(younger)] == [Past.UNREAD, Past.KNOWN]
    seen.load_earlier([older.identity], whole=True)
    assert [seen.past_of(older), seen.past_of(younger)] == [Past.KNOWN, Past.KNOWN]
    assert seen.knows(older)
    seen.load_earlier([], whole=False)
    assert [seen.past_of(older), seen.past_of(younger)] == [Past.LOST, Past.KNOWN]


def test_what_a_server_repeats_waits_until_it_is_known_who_took_it() -> None:
    clock = ManualClock()
    clock.time += 0.5
    seen = SeenMessages(clock=clock)
    older, other, now, nameless = (
        structs.replace(said(text, message_id=number), time=clock.time - 0.5 - ago)
        for text, number, ago in (("older", "1", 1), ("other", "2", 1), ("now", "3", 0), ("nameless", "0", 1))
    )
    assert [seen.defer(message) for message in (older, other, now, nameless)] == [True, True, False, False]
    assert not seen.knows(older)
    assert seen.load_earlier([older.identity], whole=True) == (older, other)
    assert not seen.defer(other)
    assert seen.load_earlier([], whole=True) == ()


def test_once_the_journal_was_read_what_a_server_repeats_waits_no_more_though_it_may_be_lost() -> None:
    clock = ManualClock()
    seen = SeenMessages(clock=clock)
    older = structs.replace(said("older"), time=clock.time - 1)
    assert seen.defer(older)
    assert seen.load_earlier([], whole=False) == (older,)
    assert not seen.defer(older)
    assert seen.past_of(older, told=True) is Past.LOST


def test_what_is_newer_than_the_end_of_a_history_was_said_since_whatever_the_servers_clock() -> None:
    clock = ManualClock()
    seen = SeenMessages(clock=clock)
    last, since = (structs.replace(said("hi"), time=clock.time - 300 + more) for more in (0, 1))
    seen.note_history(GROUP, ())
    assert seen.is_earlier(since)
    for history in ((last,), (last, since)):
        seen.note_history(GROUP, history)
        assert seen.is_earlier(last)
        assert not seen.is_earlier(since)
        assert seen.is_earlier(structs.replace(since, conversation=PRIVATE))


async def test_who_waits_for_a_message_is_told_when_it_is_taken() -> None:
    seen, message = SeenMessages(clock=ManualClock()), said("hi")
    async with asyncio.timeout(30), asyncio.TaskGroup() as group:
        waiting = group.create_task(seen.wait(message.identity))
        await asyncio.sleep(0)
        seen.claim(said("something else"))
        await asyncio.sleep(0)
        assert not waiting.done()
        seen.claim(message)
