"""Talks that an earlier process had not looked through for facts."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from msgspec.structs import replace

from bot.core.conversation import Conversation
from bot.core.journal import Entry, MessageErased, MessageObserved, PlaceSet
from bot.core.memories import MemoriesForgotten
from bot.memory import extraction
from bot.memory.extraction import LOOK, OPEN_TALK, RECENT, OpenTalk, OpenTalks
from bot.runtime.background import RETRY as READ_AGAIN
from frostagent.types.messages import Completion, ModelRequest
from tests.bot.memory.talks import HONG, MING, QUIET, ROUNDS, Room, answer
from tests.cases import each_case
from tests.fakes import BOT, GROUP, ManualClock, RecordingStore, said, until
from tests.settings import kept_settings

TALK = ("我对花生过敏", "哈哈", "好的")


class Kept(Room):
    """One whose journal has all that was said, as the next process finds it."""

    def see(self, entry: Entry) -> None:
        super().see(entry)
        self.store.put(entry)

    def talk(self, *lines: str, user: int = MING) -> None:
        for line in lines:
            self.hear(line, user=user)

    async def is_quiet(self) -> None:
        for _ in range(int(QUIET / LOOK) + 1):
            await self.clock.advance(LOOK)


def read(room: Room) -> list[str]:
    """The words of the latest request."""
    return [line.partition(": ")[2] for line in room.told().splitlines()]


async def test_a_talk_of_an_earlier_process_is_looked_through_once() -> None:
    first = Kept()
    async with first.open():
        first.talk(*TALK)
        first.rounds(2)
        first.talk("还有一句", user=HONG)
    second = Kept(answer(), before=first.store)
    async with second.open():
        second.hear("又来一句")  # before the others are found, and it is in the journal, too
        await second.is_quiet()
        assert read(second) == [*TALK, "还有一句", "又来一句"]
    third = Kept(before=first.store)
    async with third.open():
        await third.is_quiet()
        assert third.model.requests == []


async def test_what_was_looked_through_is_not_found_again_and_what_came_behind_it_is() -> None:
    first = Kept(answer())
    async with first.open():
        first.talk(*TALK)
        first.rounds()
        await until(lambda: first.model.requests)
        first.store.put(MessageObserved(said("我说的", user=BOT), overheard=False))
        for number, line in enumerate(("养了猫", "叫年糕", "很乖", "收回")):
            message = said(line, at=False, user=MING, message_id=f"m{number}")
            first.see(MessageObserved(replace(message, time=message.time + 10), overheard=True))
        first.rounds(1)
    second = Kept(answer(), before=first.store)
    second.extraction.see(MessageErased(GROUP, "m3"))  # which the journal is yet to hear of
    async with second.open():
        await second.clock.advance(0)
        second.rounds(ROUNDS - 1)
        await until(lambda: second.model.requests)
        assert read(second) == ["养了猫", "叫年糕", "很乖"]


GONE = MemoriesForgotten(("m1",), ((GROUP, MING),))


@each_case("how", ["a fact", "somebody", "soon"])
async def test_what_is_forgotten_is_in_no_talk_that_is_found(how: str) -> None:
    first = Kept()
    async with first.open():
        first.talk(*TALK)
        first.talk("我也来", user=HONG)
        first.rounds(1)
        if how == "a fact":
            first.see(GONE)
            first.rounds(1)
        elif how == "somebody":
            first.extraction.forget()
    second = Kept(before=first.store)
    async with second.open():
        if how == "soon":
            second.see(GONE)
        await second.is_quiet()
        assert second.model.requests == []


@pytest.mark.parametrize("reading", ["settings", "search"])
async def test_what_is_forgotten_while_talks_are_read_is_not_found(
    reading: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = Kept()
    async with first.open():
        first.talk(*TALK)
        first.rounds(1)
    second, began, may_end = Kept(before=first.store), asyncio.Event(), asyncio.Event()
    read_at_once = getattr(first.store, reading)

    async def read(asked: Any) -> Any:
        found = await read_at_once(asked)
        began.set()
        await may_end.wait()
        return found

    monkeypatch.setattr(first.store, reading, read)
    async with second.open():
        await began.wait()
        second.see(GONE)
        may_end.set()
        await second.is_quiet()
        assert second.model.requests == []


async def test_a_talk_of_yesterday_is_over() -> None:
    first = Kept()
    async with first.open():
        first.talk(*TALK)
        first.rounds(1)
    second = Kept(before=first.store)
    second.clock.time += RECENT + 1
    async with second.open():
        await second.is_quiet()
        assert second.model.requests == []
    assert first.store.of("place_set")[-1] == PlaceSet(GROUP, OPEN_TALK.name, "")


async def test_where_the_journal_cannot_be_read_at_the_start_they_are_found_later() -> None:
    first = Kept()
    async with first.open():
        first.talk(*TALK)
        first.rounds(1)
    second = Kept(answer(), before=first.store)
    second.store.trouble = True
    async with second.open():
        await second.clock.advance(READ_AGAIN)
        second.store.trouble = False
        await second.is_quiet()
        await until(lambda: second.model.requests)
        assert read(second) == list(TALK)


async def test_what_is_no_talk_is_none_and_one_begins_where_it_began() -> None:
    store, other = RecordingStore(), Conversation(BOT, "group", 4343)
    store.put(PlaceSet(GROUP, OPEN_TALK.name, "soon t1"), PlaceSet(other, OPEN_TALK.name, "17"))
    talks = OpenTalks(settings=kept_settings(store), clock=ManualClock(1000.0))
    await talks.load()
    assert talks.recent(9) == {}
    talks.begin(GROUP, OpenTalk("t1", 900.0))
    talks.begin(GROUP, OpenTalk("t2", 950.0))
    assert talks.recent(9) == {GROUP: OpenTalk("t1", 900.0)}
    talks.begin(other, OpenTalk("t3", 850.0))
    assert list(talks.recent(9)) == [other, GROUP]
    assert list(talks.recent(1)) == [GROUP]
    talks.end_all()
    assert talks.of(GROUP) is None


@each_case("goes_on", [False, True])
@each_case("is_forgotten", [False, True])
async def test_a_talk_whose_request_a_stop_cuts_off_is_found_again_unless_somebody_was_forgotten(
    *,
    is_forgotten: bool,
    goes_on: bool,
) -> None:
    asked = asyncio.Event()

    async def hang(_request: ModelRequest) -> Completion:
        asked.set()
        await asyncio.Event().wait()
        raise AssertionError

    room = Room(hang)
    async with room.open():
        room.due()
        known = room.extraction._open.of(GROUP)
        await asked.wait()
        assert room.extraction._open.of(GROUP) is None
        if is_forgotten:
            room.extraction.forget()
        if goes_on:
            room.hear("还有一句")
            room.rounds(1)
            assert room.extraction._open.of(GROUP) not in (None, known)
    assert (room.extraction._open.of(GROUP) == known) is not is_forgotten


async def test_a_talk_that_made_room_while_questions_went_first_is_open_after_a_restart(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(extraction, "PLACES", 2)
    room = Room()
    async with room.open():
        room.quiet.clear()
        room.due()
        await room.clock.advance(0)
        for number in range(3):
            room.hear("哈哈", where=Conversation(BOT, "group", number))
        room.quiet.set()
        await room.clock.advance(0)
        assert GROUP not in room.extraction._talks  # and takes no room from another again
    assert room.extraction._open.of(GROUP) is not None
    assert room.model.requests == []


async def test_what_is_said_after_all_was_forgotten_while_questions_went_first_is_a_talk_of_its_own() -> None:
    room = Room()
    async with room.open():
        room.quiet.clear()
        room.due()
        await room.clock.advance(0)
        room.extraction.forget()
        room.hear("哈哈")
        room.rounds(1)
        begun = room.extraction._open.of(GROUP)
        room.quiet.set()
        await room.clock.advance(0)
        assert room.extraction._open.of(GROUP) is begun is not None
    assert room.model.requests == []
