"""Messages that waited in a broker: young ones are questions as ever, of old ones people see that nobody answers."""

from __future__ import annotations

import asyncio

from msgspec import structs

from bot.chat.backfill import WAITED
from bot.chat.tasks import YOUNG
from bot.core.actions import React
from bot.core.conversation import Conversation
from bot.core.events import MessageLost, MessageWaited
from bot.core.journal import MessageObserved
from bot.outbox.gestures import NOT_NOW
from bot.policy.wake import Silence
from frostagent.cancellation import background
from tests.bot.hall import hall
from tests.fakes import BOT, GROUP, said, until, words

ELSEWHERE = Conversation(BOT, "group", 5)


def waited(
    number: int, seconds: float, *, where: Conversation = GROUP, text: str = "在吗", at: bool = True
) -> MessageWaited:
    message = said(text, at=at, where=where, message_id=str(number))
    return MessageWaited(self_id=BOT, time=message.time, message=message, seconds=seconds)


async def test_one_that_waited_for_less_than_anybody_waits_for_an_answer_is_answered() -> None:
    async with hall(words("here")) as house:
        await house.take(waited(1, YOUNG - 1))
        assert house.transport.texts == ["here"]


async def test_of_older_ones_people_see_it_once_a_minute_in_each_place_and_the_owners_hear_once() -> None:
    async with hall() as house, house.gestures.open():
        house.owner.connected(BOT)
        await house.take(
            waited(1, YOUNG), waited(2, 300), waited(3, 300, where=ELSEWHERE), waited(4, 300, text="嗯", at=False)
        )
        house.clock.time += 60
        await house.take(waited(5, 300), waited(2, 300))
        await until(lambda: len(house.transport.gestures) == 3)
        await house.outbox.wait_idle()
        observed = [one.message.message_id for one in house.store.entries if isinstance(one, MessageObserved)]
        assert (observed, house.rate_limiter.overflow) == (["1", "2", "3", "4", "5"], 4)
        assert house.transport.gestures == [
            React(where, number, NOT_NOW) for where, number in ((GROUP, "1"), (ELSEWHERE, "3"), (GROUP, "5"))
        ]
        assert [judged.reason for judged in house.verdicts] == [Silence.LATE] * 4
        assert house.transport.texts == [WAITED.zh.format(minutes=2)]


async def test_of_what_was_lost_people_see_that_it_was_and_nothing_else_comes_of_it() -> None:
    def lost(number: int, *, where: Conversation = GROUP, at: bool = True) -> MessageLost:
        message = said("在吗", at=at, where=where, message_id=str(number))
        return MessageLost(self_id=BOT, time=message.time, message=message)

    async with hall() as house, house.gestures.open():
        house.owner.connected(BOT)
        await house.take(lost(1, at=False), lost(2), lost(3), lost(4, where=ELSEWHERE))
        house.clock.time += 60
        await house.take(lost(5))
        await until(lambda: len(house.transport.gestures) == 3)
        await house.outbox.wait_idle()
        assert house.transport.gestures == [
            React(where, number, NOT_NOW) for where, number in ((GROUP, "2"), (ELSEWHERE, "4"), (GROUP, "5"))
        ]
        assert house.rate_limiter.overflow == 4
        assert (house.store.entries, house.transport.texts) == ([], [])


async def test_a_server_whose_messages_are_lost_is_not_deaf() -> None:
    async with hall() as house:
        house.owner.connected(BOT)
        for _ in range(13):
            await house.take(structs.replace(said("hot", at=False), time=house.clock.now()))
            house.clock.time += 5
        message = structs.replace(said("hot", at=False), time=house.clock.now())
        await house.take(MessageLost(self_id=BOT, time=message.time, message=message))
        house.transport.histories[GROUP] = (message,)
        async with background(house.deafness.run()):
            await until(lambda: house.transport.histories_asked)
            for _ in range(20):
                await asyncio.sleep(0)
        await house.outbox.wait_idle()
        assert (house.arrived, house.transport.texts) == ([], [])


async def test_a_message_that_came_and_whose_second_copy_was_lost_is_answered_and_has_no_sign() -> None:
    message = said("在吗", message_id="1")
    async with hall(words("here")) as house, house.gestures.open():
        await house.take(message, MessageLost(self_id=BOT, time=message.time, message=message))
        assert (house.transport.texts, house.rate_limiter.overflow) == (["here"], 0)
