"""Signs beside what is said: made when they are due, asked for in vain once, and never in anybody's way."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from bot.core.actions import Gesture, React, ShowTyping
from bot.core.conversation import Conversation
from bot.core.errors import ActionUnsupported, NotConnected
from bot.outbox.gestures import NOT_NOW, WORKING, Gestures
from tests.cases import each_case
from tests.fakes import BOT, GROUP, PRIVATE, RecordingTransport, SteppedClock, said, until

QUESTION = said("how is the weather?", message_id="7")

LONG = 3.0  # seconds


class Server(RecordingTransport):
    """A OneBot server that refuses a sign as it is told to; `asked` is all it was asked for."""

    def __init__(self, refusal: Exception | None = None) -> None:
        super().__init__()
        self.asked: list[Gesture] = []
        self.refusal = refusal

    async def gesture(self, gesture: Gesture) -> None:
        self.asked.append(gesture)
        if self.refusal is not None:
            raise self.refusal
        await super().gesture(gesture)


@asynccontextmanager
async def at(
    server: Server, unseen: Callable[[Conversation], bool] = lambda _: False
) -> AsyncIterator[tuple[Gestures, SteppedClock]]:
    clock = SteppedClock()
    gestures = Gestures(transport=server, clock=clock, unseen=unseen)
    async with asyncio.timeout(30), gestures.open():
        yield gestures, clock


async def test_a_question_that_takes_long_gets_a_sign_and_a_private_one_sees_typing() -> None:
    server, letter = Server(), said("hi", where=PRIVATE)
    async with at(server) as (gestures, clock):
        with gestures.while_working(QUESTION), gestures.while_working(letter):
            await clock.advance(LONG - 0.1)
            assert not server.gestures
            await clock.advance(0.2)
            assert server.gestures == [React(GROUP, "7", WORKING), ShowTyping(PRIVATE)]


async def test_where_the_bot_is_a_shadow_nobody_sees_a_sign() -> None:
    server, letter = Server(), said("hi", where=PRIVATE)
    async with at(server, unseen=lambda where: where == GROUP) as (gestures, clock):
        with gestures.while_working(QUESTION), gestures.while_working(letter):
            await clock.advance(LONG + 0.1)
    assert server.gestures == [ShowTyping(PRIVATE)]


async def test_a_question_that_is_answered_soon_gets_none() -> None:
    server = Server()
    async with at(server) as (gestures, clock):
        with gestures.while_working(QUESTION):
            await clock.advance(LONG / 2)
        await clock.advance(LONG)
    assert not server.gestures


async def test_a_question_that_takes_long_gets_its_sign_though_an_earlier_one_was_answered_soon() -> None:
    server = Server()
    async with at(server) as (gestures, clock):
        with gestures.while_working(said("hi", where=PRIVATE)):
            await clock.advance(LONG / 2)
            late = gestures.while_working(QUESTION)
            late.__enter__()
        await clock.advance(LONG - 0.1)
        assert not server.gestures
        await clock.advance(0.2)
        assert server.gestures == [React(GROUP, "7", WORKING)]
        late.__exit__(None, None, None)
        with gestures.while_working(said("once more", message_id="8")):
            await clock.advance(LONG + 0.1)
        assert server.gestures[1:] == [React(GROUP, "8", WORKING)]


async def test_a_sign_that_a_server_does_not_know_is_not_asked_for_again_until_it_is_another_one() -> None:
    server = Server(ActionUnsupported("set_msg_emoji_like", retcode=1404, wording=""))
    async with at(server) as (gestures, clock):
        gestures.react(QUESTION, NOT_NOW)
        await clock.advance(0)
        gestures.react(QUESTION)
        gestures.typing(PRIVATE)
        await clock.advance(0)
        assert server.asked == [React(GROUP, "7", NOT_NOW), ShowTyping(PRIVATE)]
        gestures.connected(20002)
        gestures.react(QUESTION)
        await clock.advance(0)
        assert len(server.asked) == 2
        gestures.connected(BOT)
        gestures.react(QUESTION)
        await until(lambda: len(server.asked) == 3)


@each_case("refusal", [NotConnected("away"), RuntimeError("a bug")])
async def test_what_goes_wrong_with_a_sign_harms_nobody(refusal: Exception) -> None:
    server = Server(refusal)
    async with at(server) as (gestures, clock):
        gestures.react(QUESTION)
        await clock.advance(0)
        gestures.react(QUESTION)
        await until(lambda: len(server.asked) == 2)


async def test_no_sign_is_made_before_all_is_open_and_none_is_waited_for_at_the_end() -> None:
    server = Server()
    gestures = Gestures(transport=server, clock=SteppedClock())
    gestures.react(QUESTION)
    with gestures.while_working(QUESTION):
        pass
    async with asyncio.timeout(30):
        async with gestures.open():
            working = gestures.while_working(QUESTION)
            working.__enter__()
    assert not server.asked
