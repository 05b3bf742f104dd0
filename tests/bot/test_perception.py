from __future__ import annotations

import asyncio

import pytest

from bot.domain.errors import ActionUnanswered, NotConnected
from bot.domain.events import MessageReceived
from bot.domain.segments import Forward, Quote, Text
from bot.history import History
from bot.perception import Perception
from tests.fakes import BOT, RecordingStore, RecordingTransport, said

OWN = said("I said that", user=BOT, message_id="100", at=False)
OTHER = said("somebody else", user=5, message_id="200", at=False)


def quoting(message_id: str) -> MessageReceived:
    return said((Quote(message_id), Text("why?")), at=False)


def perception(transport: RecordingTransport, history: History | None = None) -> Perception:
    return Perception(transport=transport, history=history or History(store=RecordingStore()), patience=0.05)


async def test_a_quote_of_the_bots_own_message_is_recognised_by_asking_the_server() -> None:
    eyes = perception(RecordingTransport([OWN, OTHER]))
    assert await eyes.quotes_the_bot(quoting("100"), "100")
    assert not await eyes.quotes_the_bot(quoting("200"), "200")
    assert not await eyes.quotes_the_bot(quoting("300"), "300")


async def test_a_message_we_remember_is_not_asked_for() -> None:
    transport, history = RecordingTransport(), History(store=RecordingStore())
    history.know(OWN)
    assert await perception(transport, history).quotes_the_bot(quoting("100"), "100")
    assert transport.looked_up == []


async def test_a_question_comes_with_what_it_quotes() -> None:
    message = quoting("200")
    question = await perception(RecordingTransport([OTHER])).perceive(message)
    assert question.message is message
    assert question.quoted == OTHER
    assert question.forwarded == ()


async def test_a_question_comes_with_the_messages_it_forwards() -> None:
    transport = RecordingTransport()
    transport.forwards["f1"] = (OTHER,)
    question = await perception(transport).perceive(said((Forward("f1"), Text("sum it up"))))
    assert question.forwarded == (OTHER,)


async def test_a_quoted_forward_is_opened_too() -> None:
    transport = RecordingTransport([said((Forward("f1"),), message_id="400", at=False)])
    transport.forwards["f1"] = (OTHER,)
    question = await perception(transport).perceive(quoting("400"))
    assert question.forwarded == (OTHER,)


async def test_what_the_server_does_not_know_any_more_is_left_out() -> None:
    message = said((Forward("gone"), Text("sum it up")))
    question = await perception(RecordingTransport()).perceive(message)
    assert question.message is message
    assert question.forwarded == ()


async def test_a_forward_that_cannot_be_opened_does_not_cost_the_quote_it_is_in() -> None:
    """Refused, or not answered in time."""

    class Slow(RecordingTransport):
        async def get_forward(self, account: int, forward_id: str) -> tuple[MessageReceived, ...]:
            await asyncio.Event().wait()
            return ()

    quoted = said((Forward("gone"), Text("look")), message_id="400", at=False)
    for transport in (RecordingTransport([quoted]), Slow([quoted])):
        question = await perception(transport).perceive(quoting("400"))
        assert (question.quoted, question.forwarded) == (quoted, ())


async def test_a_server_that_does_not_answer_does_not_hold_up_the_question() -> None:
    class Mute(RecordingTransport):
        async def get_message(self, account: int, message_id: str) -> MessageReceived | None:
            await asyncio.Event().wait()
            return None

    message = quoting("1")
    assert (await perception(Mute()).perceive(message)).quoted is None
    assert not await perception(Mute()).quotes_the_bot(message, "1")


async def test_without_a_connection_a_question_has_no_quote_but_who_is_quoted_can_be_asked_later() -> None:
    class Away(RecordingTransport):
        async def get_message(self, account: int, message_id: str) -> MessageReceived | None:
            raise NotConnected("away")

    assert (await perception(Away()).perceive(quoting("1"))).quoted is None
    with pytest.raises(NotConnected):
        await perception(Away()).quotes_the_bot(quoting("1"), "1")


async def test_a_look_up_whose_connection_broke_is_made_once_more() -> None:
    class Breaking(RecordingTransport):
        async def get_message(self, account: int, message_id: str) -> MessageReceived | None:
            found = await super().get_message(account, message_id)
            if self.looked_up.count(message_id) == 1 or message_id == "2":
                raise ActionUnanswered("closed")
            return found

    transport = Breaking([said("mine", user=BOT, at=False, message_id="1")])
    assert await perception(transport).quotes_the_bot(quoting("1"), "1")
    assert not await perception(transport).quotes_the_bot(quoting("2"), "2")
    assert transport.looked_up == ["1", "1", "2", "2"]
