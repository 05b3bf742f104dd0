from __future__ import annotations

from bot.core.actions import React
from bot.core.conversation import Conversation
from bot.core.errors import ActionRefused, NotConnected
from bot.core.events import Connected
from bot.outbox.gestures import WORKING
from frostagent.cancellation import background
from tests.bot.hall import hall, muted
from tests.fakes import BOT, GROUP, said, until, words

REMOVED = ActionRefused("send_group_msg", retcode=1200, wording='EventRet:{"result":110}')


async def test_who_waited_for_a_connection_hears_of_it_and_what_was_believed_of_its_server_is_not_any_more() -> None:
    async with hall(words("a"), words("b")) as house:
        house.transport.failures.append(NotConnected("away"))
        house.owner.tell("disk", "the disk is full")
        await house.dispatcher.handle(said("hi"))
        await until(lambda: house.store.of("send_changed"))
        await house.dispatcher.handle(muted(-1, user_id=0))
        await house.take(Connected(self_id=BOT, time=0.0), said("hi again"))
        await house.outbox.wait_idle()
        assert sorted(house.transport.texts) == ["a", "b", "the disk is full"]


async def test_where_the_bot_was_removed_it_may_be_again_on_a_connection_of_that_account() -> None:
    told = list[Conversation]()
    others = Conversation(20002, "group", 4242)
    async with hall(words("a"), words("b"), words("c")) as house:
        unreachable = house.outbox.unreachable
        unreachable.follow(lambda where, _reason: told.append(where))
        unreachable.begin(others, "not in the group")
        house.transport.failures = [REMOVED]
        await house.take(said("hi"), said("hi?"))
        house.transport.failures = [REMOVED]  # and it still is
        await house.take(Connected(self_id=BOT, time=0.0), said("back?"))
        await house.take(Connected(self_id=BOT, time=0.0), said("now?"))
        await house.outbox.wait_idle()
        assert (house.transport.texts, told, unreachable.holds_in(others)) == (["c"], [GROUP], True)


async def test_the_time_without_a_connection_was_no_pause_of_a_group() -> None:
    async with hall() as house:
        for number in range(14):
            if number == 12:
                house.clock.time += 7200
                await house.dispatcher.handle(Connected(self_id=BOT, time=0.0))
            await house.dispatcher.handle(said("hot", at=False))
            house.clock.time += 5
        async with background(house.deafness.run()):
            await until(lambda: house.transport.histories_asked)
        assert house.transport.histories_asked == [GROUP]


async def test_a_new_connection_may_make_signs_that_the_one_before_could_not() -> None:
    async with hall() as house, house.gestures.open():
        house.transport.unsupported = True
        house.gestures.react(said("hi", message_id="7"))
        await house.patience.advance(0)
        house.transport.unsupported = False
        house.gestures.react(said("hi", message_id="8"))
        await house.take(Connected(self_id=BOT, time=0.0))
        house.gestures.react(said("hi", message_id="9"))
        await until(lambda: house.transport.gestures)
        assert house.transport.gestures == [React(GROUP, "9", WORKING)]
