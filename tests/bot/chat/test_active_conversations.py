from __future__ import annotations

from msgspec.structs import replace

from bot.chat.active_conversations import ActiveConversations, Arrival
from bot.core.conversation import Conversation
from bot.policy.message_trimming import MAX_NAME
from tests.bot.chat.test_catchup import HELLO, ago, back
from tests.fakes import BOT, GROUP, PRIVATE, ManualClock, said, until


async def test_the_first_message_of_a_new_connection_hides_none_of_those_missed_before_it() -> None:
    missed = ago(said("tea time", at=False), 200)
    async with back() as house:
        house.transport.histories[GROUP] = (missed,)
        await house.dispatcher.handle(HELLO)
        await house.dispatcher.handle(said("coffee time", at=False))
        await until(lambda: len(house.store.of("message_observed")) == 2)


def test_an_account_that_comes_is_told_with_the_latest_word_of_each_of_its_places() -> None:
    arrived: list[Arrival] = []
    active_conversations = ActiveConversations(arrive=arrived.append, clock=ManualClock())
    for seconds in (100, 50, 200):
        active_conversations.note_message(ago(said("hi"), seconds))
    active_conversations.connected(BOT)
    assert arrived == [Arrival(BOT, ((GROUP, ago(said("hi"), 50).time),))]


def test_a_message_without_its_groups_name_gets_the_one_that_was_told_last() -> None:
    active_conversations = ActiveConversations(arrive=lambda _: None, clock=ManualClock())
    other = Conversation(BOT, "group", 5)
    assert active_conversations.with_group_name(said("hi")).group_name == ""
    active_conversations.name_group(GROUP, "爬山")
    active_conversations.name_group(GROUP, "")
    assert active_conversations.with_group_name(said("hi")).group_name == "爬山"
    assert active_conversations.with_group_name(replace(said("hi"), group_name="周末爬山")).group_name == "周末爬山"
    assert active_conversations.with_group_name(said("hi")).group_name == "周末爬山"
    assert active_conversations.with_group_name(said("hi", where=other)).group_name == ""
    assert active_conversations.with_group_name(said("hi", where=PRIVATE)).group_name == ""
    active_conversations.name_group(other, "长" * 1000)
    assert active_conversations.with_group_name(said("hi", where=other)).group_name == "长" * MAX_NAME
