from __future__ import annotations

import asyncio

import pytest

from bot.delivery import Delivery, messages_of
from bot.domain.actions import Attachment, Confirmed, Refused, SendMessage, SendSegment, Unknown
from bot.domain.errors import ActionRefused, ActionUnanswered, NotConnected
from bot.domain.events import Conversation
from bot.domain.segments import Mention, Quote, Text
from bot.history import History
from tests.fakes import GROUP, PRIVATE, ManualClock, RecordingTransport, said

PICTURE = Attachment("image", "base64://aaaa", "a.png")
VOICE = Attachment("record", "base64://bbbb", "b.amr")


def delivery(transport: RecordingTransport, history: History | None = None, limit: int = 1500) -> Delivery:
    return Delivery(transport=transport, history=history or History(), clock=ManualClock(), limit=limit)


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


@pytest.mark.parametrize("segments", [(), (Text(""),), (Text(" \n"),), (Quote("7"),), (Quote("7"), Text(" "))])
def test_nothing_to_say_is_no_message(segments: tuple[SendSegment, ...]) -> None:
    assert split(*segments) == []


async def test_an_answer_in_a_group_quotes_the_question_and_one_in_private_does_not() -> None:
    transport = RecordingTransport()
    await delivery(transport).answer(said("hi", message_id="55"), "hello")
    await delivery(transport).answer(said("hi", where=PRIVATE), "hello")
    assert transport.sent == [
        SendMessage(GROUP, (Quote("55"), Text("hello"))),
        SendMessage(PRIVATE, (Text("hello"),)),
    ]


@pytest.mark.parametrize(
    ("failure", "receipt"),
    [
        (NotConnected("no connection"), Refused("QQ is not connected right now (no connection)")),
        (ActionRefused("send_group_msg", retcode=1200, wording="禁言"), Refused("禁言")),
        (ActionRefused("send_group_msg", retcode=9000, wording=""), Refused("refused with code 9000")),
        (ActionUnanswered("no answer in 30 s"), Unknown("no answer in 30 s")),
    ],
)
async def test_each_failure_has_its_receipt(failure: NotConnected, receipt: Refused | Unknown) -> None:
    transport = RecordingTransport()
    transport.failures = [failure]
    assert await delivery(transport).say(GROUP, (Text("a"),)) == (receipt,)


async def test_after_an_unconfirmed_message_the_rest_is_not_sent() -> None:
    transport = RecordingTransport()
    transport.failures = [ActionUnanswered("?")]
    assert await delivery(transport).say(GROUP, (VOICE, Text("after"))) == (Unknown("?"),)
    assert transport.sent == []


async def test_what_was_sent_is_known_when_somebody_quotes_it() -> None:
    transport, history = RecordingTransport(), History()
    (receipt,) = await delivery(transport, history).say(GROUP, (Text("a"), PICTURE))
    assert isinstance(receipt, Confirmed)
    known = history.known(GROUP, receipt.message_id)
    assert known is not None
    assert known.is_own
    assert known.segments == (Text("a"),)


async def test_one_conversation_has_one_unanswered_send_at_a_time_and_others_do_not_wait() -> None:
    class SlowTransport(RecordingTransport):
        def __init__(self) -> None:
            super().__init__()
            self.open: dict[Conversation, int] = {}
            self.most: dict[Conversation, int] = {}
            self.together = 0

        async def send(self, action: SendMessage) -> str:
            where = action.conversation
            self.open[where] = self.open.get(where, 0) + 1
            self.most[where] = max(self.most.get(where, 0), self.open[where])
            self.together = max(self.together, sum(self.open.values()))
            for _ in range(5):
                await asyncio.sleep(0)
            self.open[where] -= 1
            return await super().send(action)

    transport = SlowTransport()
    mouth = delivery(transport)
    async with asyncio.timeout(5), asyncio.TaskGroup() as group:
        for number in range(3):
            group.create_task(mouth.say(GROUP, (Text(str(number)),)))
            group.create_task(mouth.say(PRIVATE, (Text(str(number)),)))
    assert transport.most == {GROUP: 1, PRIVATE: 1}
    assert transport.together == 2
    in_group = [action.segments for action in transport.sent if action.conversation == GROUP]
    assert in_group == [(Text("0"),), (Text("1"),), (Text("2"),)]
