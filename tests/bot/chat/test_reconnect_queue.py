from __future__ import annotations

from bot.chat.active_conversations import Arrival
from bot.core.conversation import Conversation
from tests.bot.chat.test_catchup import HELLO, ago, back
from tests.fakes import BOT, GROUP, PRIVATE, said, until, words


async def test_a_young_question_is_found_though_something_later_was_heard() -> None:
    """As after a process that heard the group again, and ended before it had caught up with it."""
    async with back(words("yes")) as house:
        house.late.preload([], [(GROUP, house.clock.now() - 5)])
        house.transport.histories[GROUP] = (ago(said("still there?"), 60),)
        await house.dispatcher.handle(HELLO)
        await until(lambda: house.transport.sent)
        assert house.transport.texts == ["yes"]


async def test_places_of_another_account_and_places_not_in_use_are_left_alone() -> None:
    async with back() as house:
        now, day = house.clock.now(), 24 * 3600
        places = (GROUP, now - 5), (PRIVATE, now - day - 1), (Conversation(20002, "group", 4242), now)
        house.arrivals.take(Arrival(BOT, places))
        round_ = await house.arrivals.next()
        assert round_.since == {GROUP: now - 120}
        assert [house.lanes.is_held(where) for where, _ in places] == [True, False, False]
