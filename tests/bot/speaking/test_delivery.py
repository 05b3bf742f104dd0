from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from bot.domain.actions import Attachment, Confirmed, Refused, SendMessage, SendSegment, Unknown
from bot.domain.errors import ActionRefused, ActionUnanswered, NotConnected
from bot.domain.journal import SendQueued
from bot.domain.segments import Image, Mention, Quote, Text
from bot.memory.history import History
from bot.speaking.delivery import MAX_MESSAGES, Delivery, messages_of
from tests.bot.speaking.post import build_outbox
from tests.fakes import (
    GROUP,
    PRIVATE,
    ManualClock,
    RecordingStore,
    RecordingTransport,
    said,
    until,
)

PICTURE = Attachment("image", "base64://aaaa", "a.png")
VOICE = Attachment("record", "base64://bbbb", "b.amr")


class Mouth:
    """A delivery with its outbox."""

    def __init__(self) -> None:
        self.transport, self.store, self.clock = RecordingTransport(), RecordingStore(), ManualClock()
        self.history = History(store=self.store)
        self.outbox, _ = build_outbox(self.transport, self.store, self.clock)
        self.delivery = Delivery(outbox=self.outbox, history=self.history, clock=self.clock)


@asynccontextmanager
async def speaking() -> AsyncIterator[Mouth]:
    mouth = Mouth()
    async with asyncio.timeout(5), mouth.outbox.open():
        yield mouth


def split(*segments: SendSegment, limit: int = 1500) -> list[tuple[SendSegment, ...]]:
    return list(messages_of(segments, limit=limit))


def test_parts_stay_in_order_in_one_message_with_the_quote_first() -> None:
    assert split(Text("a"), PICTURE, Quote("7"), Mention(5)) == [(Quote("7"), Text("a"), PICTURE, Mention(5))]


def test_a_voice_is_a_message_of_its_own() -> None:
    assert split(Quote("7"), Text("a"), VOICE, Text("b")) == [(Quote("7"), Text("a")), (VOICE,), (Text("b"),)]


def test_long_text_is_sent_in_pieces_and_only_the_first_quotes() -> None:
    assert split(Quote("7"), Text("一二三四。五六七八。"), limit=6) == [
        (Quote("7"), Text("一二三四。")),
        (Text("五六七八。"),),
    ]


def test_text_that_does_not_fit_beside_earlier_text_starts_a_new_message() -> None:
    assert split(Text("abcd"), PICTURE, Text("efgh"), limit=6) == [(Text("abcd"), PICTURE), (Text("efgh"),)]


def test_blank_text_before_long_text_makes_no_message_of_its_own() -> None:
    assert split(Text("  "), Text("x" * 6), limit=6) == [(Text("x" * 6),)]


@pytest.mark.parametrize("segments", [(), (Text(""),), (Text(" \n"),), (Quote("7"),), (Quote("7"), Text(" "))])
def test_nothing_to_say_is_no_message(segments: tuple[SendSegment, ...]) -> None:
    assert split(*segments) == []


async def test_an_answer_in_a_group_quotes_the_question_and_one_in_private_does_not() -> None:
    async with speaking() as mouth:
        await mouth.delivery.answer(said("hi", message_id="55"), "hello", turn_id="t1")
        await mouth.delivery.answer(said("hi", where=PRIVATE), "hello")
        assert mouth.transport.sent == [
            SendMessage(GROUP, (Quote("55"), Text("hello"))),
            SendMessage(PRIVATE, (Text("hello"),)),
        ]
        first, _ = mouth.store.of("send_queued")
        assert isinstance(first, SendQueued)
        assert (first.turn_id, first.final) == ("t1", True)


async def test_after_a_refused_message_the_rest_is_not_sent() -> None:
    async with speaking() as mouth:
        mouth.transport.failures = [ActionRefused("send_group_msg", retcode=1200, wording="禁言")]
        (said_,) = await mouth.delivery.say(GROUP, (VOICE, Text("after")))
        assert isinstance(said_.receipt, Refused)
        assert not said_.may_be_read
        assert mouth.transport.sent == []


async def test_a_send_of_unknown_fate_stops_the_rest() -> None:
    async with speaking() as mouth:
        mouth.transport.failures = [ActionUnanswered("no answer")]
        (said_,) = await mouth.delivery.say(GROUP, (Text("a"), VOICE))
        assert isinstance(said_.receipt, Unknown)
        assert said_.may_be_read
        assert mouth.transport.sent == []


async def test_each_piece_of_a_long_answer_is_a_row_before_the_first_is_delivered() -> None:
    """Else a process that ends between two of them would have kept half an answer."""
    async with speaking() as mouth:
        mouth.transport.failures = [NotConnected("away")]
        async with asyncio.TaskGroup() as group:
            saying = group.create_task(mouth.delivery.answer(said("hi"), "长" * 4000, turn_id="t1"))
            await until(lambda: mouth.store.of("send_changed"))
            assert len(mouth.store.of("send_queued")) == 3
            mouth.outbox.connected()
        assert [type(one.receipt) for one in await saying] == [Confirmed] * 3


async def test_what_was_sent_is_known_when_somebody_quotes_it() -> None:
    async with speaking() as mouth:
        (said_,) = await mouth.delivery.say(GROUP, (Text("a"), PICTURE))
        assert isinstance(said_.receipt, Confirmed)
        known = await mouth.history.find(GROUP, said_.receipt.message_id)
        assert known is not None
        assert known.is_own
        assert known.segments == (Text("a"), Image(file="a.png"))


async def test_the_pieces_of_one_thing_said_stay_together() -> None:
    async with speaking() as mouth:
        async with asyncio.TaskGroup() as group:
            for name in "ab":
                group.create_task(mouth.delivery.say(GROUP, (Text(f"{name}1"), VOICE, Text(f"{name}2"))))
        assert mouth.transport.texts in (["a1", "", "a2", "b1", "", "b2"], ["b1", "", "b2", "a1", "", "a2"])


async def test_one_thing_said_takes_a_bounded_number_of_messages_and_says_that_it_was_cut() -> None:
    async with speaking() as mouth:
        said_ = await mouth.delivery.say(GROUP, (Text("长" * 180_000),))
        assert len(said_) == MAX_MESSAGES + 1
        assert mouth.transport.texts[-1] == "……（太长了，后面的省略了）"
