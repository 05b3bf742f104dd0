from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from msgspec.structs import replace

from bot.domain.chat import Completion, ModelRequest, Usage, UserMessage
from bot.domain.errors import ModelTransport
from bot.domain.journal import (
    MessageErased,
    MessageObserved,
    TurnClosed,
    TurnOpened,
    UsageAdded,
)
from bot.domain.memories import MemoryKept
from bot.domain.run import Stop
from bot.memory.extraction import LINES, QUIET, ROUNDS, Extraction
from bot.memory.remembering import Remembering
from bot.memory.speakers import Speakers
from tests.bot.memory.facts import KeptFacts
from tests.fakes import BOT, GROUP, CountingIds, RecordingStore, ScriptedModel, Step, SteppedClock, said, until, words

MING, HONG = 777, 888


class Room:
    """A group in which the bot has had rounds, and a model that is asked for facts."""

    def __init__(self, *answers: Step) -> None:
        self.store, self.clock = RecordingStore(), SteppedClock()
        self.model = ScriptedModel(*answers)
        speakers = Speakers(store=self.store)
        speakers.learn(GROUP, ())
        self.facts = KeptFacts(self.store)
        book = Remembering(
            memories=self.facts, speakers=speakers, store=self.store, clock=self.clock, ids=CountingIds()
        )
        self.extraction = Extraction(
            model=self.model, remembering=book, speakers=speakers, store=self.store, clock=self.clock
        )

    @asynccontextmanager
    async def open(self) -> AsyncIterator[None]:
        with self.model:
            async with self.extraction.open():
                yield

    def hear(self, text: str, *, user: int = MING, message_id: str | None = None) -> None:
        self.extraction.see(MessageObserved(said(text, at=False, user=user, message_id=message_id), overheard=True))

    def rounds(self, number: int = ROUNDS) -> None:
        for _ in range(number):
            question = said("在吗", user=HONG)
            opened = TurnOpened(turn_id=f"t{question.message_id}", question=question, user=UserMessage("x"), at=0.0)
            self.extraction.see(opened)
            self.extraction.see(
                TurnClosed(turn_id=opened.turn_id, stop=Stop.ANSWERED, round=(), usage=Usage(), steps=1, at=0.0)
            )

    def told(self) -> str:
        """What the model was shown the last time."""
        last = self.model.requests[-1].messages[-1]
        assert isinstance(last, UserMessage)
        return last.text


def answer(*facts: tuple[str, str, int]) -> Completion:
    rows = [{"about": about, "fact": fact, "lines": [line]} for about, fact, line in facts]
    return replace(words(json.dumps(rows, ensure_ascii=False)), usage=Usage(100, 10), endpoint="cheap@x.test")


async def test_after_some_rounds_facts_are_picked_from_what_people_said_and_what_that_cost_is_written_down() -> None:
    room = Room(answer(("#1", "对花生过敏", 1)))
    async with room.open():
        for text in ("我对花生过敏", "哈哈", "好的"):
            room.hear(text)
        room.hear("我也来说一句", user=HONG)
        room.rounds(ROUNDS - 1)
        await room.clock.advance(0)
        assert room.model.requests == []
        room.rounds(1)
        await until(lambda: room.store.entries and isinstance(room.store.entries[-1], MemoryKept))
    assert room.told().splitlines() == ["1. #1: 我对花生过敏", "2. #1: 哈哈", "3. #1: 好的", "4. #2: 我也来说一句"]
    (fact,) = await room.facts.listed(scope=GROUP)
    assert (fact.subject, fact.text, len(fact.sources)) == (MING, "对花生过敏", 1)
    (cost,) = [entry for entry in room.store.entries if isinstance(entry, UsageAdded)]
    assert (cost.model, cost.usage, cost.turn_id[:1]) == ("cheap@x.test", Usage(100, 10), "t")


async def test_a_talk_that_has_ended_is_looked_at_though_it_was_short() -> None:
    room = Room(answer())
    async with room.open():
        for text in ("我对花生过敏", "哈哈", "好的"):
            room.hear(text)
        room.rounds(1)
        await room.clock.advance(QUIET - 1)
        assert room.model.requests == []
        await room.clock.advance(61)
        await until(lambda: len(room.model.requests) == 1)
        await room.clock.advance(QUIET * 2)
    assert len(room.model.requests) == 1


async def test_a_talk_without_the_bot_or_with_hardly_a_line_costs_nothing() -> None:
    room = Room()
    async with room.open():
        for number in range(50):
            room.hear(f"line {number}")
        await room.clock.advance(QUIET * 2)
        room.extraction.forget()
        room.hear("one")
        room.rounds()
        await room.clock.advance(QUIET * 2)
    assert room.model.requests == []


async def test_the_bots_own_words_and_those_of_nobody_are_no_lines_and_old_ones_go() -> None:
    room = Room(answer())
    async with room.open():
        room.hear("我是机器人，我对花生过敏", user=BOT)
        room.hear("without an id", message_id="0")
        for number in range(LINES + 5):
            room.hear(f"line {number}")
        room.rounds()
        await until(lambda: len(room.model.requests) == 1)
    assert len(room.told().splitlines()) == LINES
    assert room.told().startswith("1. #1: line 5\n")


async def test_what_is_recalled_before_is_not_shown_and_what_is_recalled_meanwhile_is_not_kept() -> None:
    asked, recalled = asyncio.Event(), asyncio.Event()

    async def slow(_request: ModelRequest) -> Completion:
        asked.set()
        await recalled.wait()
        return answer(("#1", "对花生过敏", 1), ("#1", "养了一只猫", 2))

    room = Room(slow)
    async with asyncio.timeout(5), room.open():
        room.hear("我对花生过敏", message_id="5")
        room.hear("我养了一只猫")
        room.hear("我其实喜欢她", message_id="6")
        for text in ("哈哈", "好的"):
            room.hear(text)
        room.extraction.see(MessageErased(GROUP, "6"))
        room.rounds()
        await asked.wait()
        room.extraction.see(MessageErased(GROUP, "5"))
        recalled.set()
        await until(lambda: room.store.entries and isinstance(room.store.entries[-1], MemoryKept))
        assert "喜欢她" not in room.told()
    assert [one.text for one in await room.facts.listed()] == ["养了一只猫"]


async def test_what_a_model_was_asked_before_somebody_was_forgotten_is_not_kept() -> None:
    asked, erased = asyncio.Event(), asyncio.Event()

    async def slow(_request: ModelRequest) -> Completion:
        asked.set()
        await erased.wait()
        return answer(("#1", "对花生过敏", 1))

    room = Room(slow, answer(("#1", "养了一只猫", 1)))
    async with asyncio.timeout(5), room.open():
        for text in ("我对花生过敏", "哈哈", "好的"):
            room.hear(text)
        room.rounds()
        await asked.wait()
        room.extraction.forget()
        erased.set()
        for text in ("我养了一只猫", "哈哈", "好的"):
            room.hear(text)
        room.rounds()
        await until(lambda: room.store.entries and isinstance(room.store.entries[-1], MemoryKept))
    assert [fact.text for fact in await room.facts.listed()] == ["养了一只猫"]


async def bug(_request: ModelRequest) -> Completion:
    raise ValueError("a bug")


@pytest.mark.parametrize("failure", [ModelTransport("the line is cut"), bug])
async def test_a_request_that_fails_is_not_made_again_and_the_next_talk_is(
    failure: Step, caplog: pytest.LogCaptureFixture
) -> None:
    room = Room(failure, answer(("#1", "养了一只猫", 1)))
    async with room.open():
        for text in ("我对花生过敏", "哈哈", "好的"):
            room.hear(text)
        room.rounds()
        await until(lambda: "no facts of 10001:group:4242" in caplog.text)
        for text in ("我养了一只猫", "哈哈", "好的"):
            room.hear(text)
        room.rounds()
        await until(lambda: len(room.model.requests) == 2)
        await until(lambda: isinstance(room.store.entries[-1], MemoryKept))
    assert "花生" not in room.told()
