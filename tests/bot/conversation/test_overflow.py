from __future__ import annotations

from bot.conversation.overflow import Overflow
from bot.domain.events import Conversation
from bot.domain.segments import Quote, Text
from bot.policy.apologies import BUSY
from bot.speaking.queues import MAX_WAITING
from tests.bot.speaking.post import hello, office
from tests.fakes import BOT, GROUP, ManualClock, said


async def test_a_conversation_is_told_once_a_minute_and_every_question_is_counted() -> None:
    clock = ManualClock()
    async with office(clock=clock) as post:
        overflow = Overflow(outbox=post.outbox, clock=clock)
        for name in ("1", "2", "3"):
            overflow.take(said("?", message_id=name))
        await post.outbox.wait_idle()
        clock.time += 59
        overflow.take(said("?", message_id="4"))
        await post.outbox.wait_idle()
        assert [action.segments for action in post.transport.sent] == [(Quote("1"), Text(BUSY))]
        clock.time += 2
        overflow.take(said("?", message_id="5"))
        await post.outbox.wait_idle()
        assert [action.segments[0] for action in post.transport.sent] == [Quote("1"), Quote("5")]
        assert overflow.count == 5


async def test_each_conversation_is_told() -> None:
    other = Conversation(BOT, "group", 1)
    async with office() as post:
        overflow = Overflow(outbox=post.outbox, clock=post.clock)
        overflow.take(said("?"))
        overflow.take(said("?", where=other))
        await post.outbox.wait_idle()
        assert {action.conversation for action in post.transport.sent} == {GROUP, other}


async def test_where_nothing_more_can_be_said_the_next_one_is_told() -> None:
    async with office() as post:
        overflow = Overflow(outbox=post.outbox, clock=post.clock)
        for number in range(MAX_WAITING):
            assert post.outbox.post(hello(str(number))) is not None
        overflow.take(said("?", message_id="1"))
        await post.outbox.wait_idle()
        overflow.take(said("?", message_id="2"))
        await post.outbox.wait_idle()
        assert post.transport.sent[-1].segments == (Quote("2"), Text(BUSY))
        assert post.transport.texts.count(BUSY) == 1
