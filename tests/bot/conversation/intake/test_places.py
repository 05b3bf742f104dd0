from __future__ import annotations

from bot.conversation.intake.places import Arrival, Places
from tests.bot.conversation.recovery.test_catchup import HELLO, ago, back
from tests.fakes import BOT, GROUP, ManualClock, said, until


async def test_the_first_message_of_a_new_connection_hides_none_of_those_missed_before_it() -> None:
    missed = ago(said("tea time", at=False), 200)
    async with back() as house:
        house.transport.histories[GROUP] = (missed,)
        await house.dispatcher.handle(HELLO)
        await house.dispatcher.handle(said("coffee time", at=False))
        await until(lambda: len(house.store.of("message_observed")) == 2)


def test_an_account_that_comes_is_told_with_the_latest_word_of_each_of_its_places() -> None:
    arrived: list[Arrival] = []
    places = Places(arrive=arrived.append, clock=ManualClock())
    for seconds in (100, 50, 200):
        places.hear(ago(said("hi"), seconds))
    places.connected(BOT)
    assert arrived == [Arrival(BOT, ((GROUP, ago(said("hi"), 50).time),))]
