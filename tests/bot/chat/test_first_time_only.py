from __future__ import annotations

from frostagent.types.speech import Text
from tests.bot.hall import hall
from tests.fakes import BOT, GROUP, PRIVATE, said, words


async def test_an_event_delivered_twice_is_answered_once() -> None:
    async with hall(words("hello")) as house:
        message = said("hi")
        await house.take(message, message)
        await house.take(message)
        assert house.transport.texts == ["hello"]
        assert house.door.duplicates == 2


async def test_messages_without_a_usable_id_are_all_answered() -> None:
    async with hall(words("a"), words("b")) as house:
        await house.take(said("hi", message_id="0"), said("hi", user=5, message_id="0"))
        assert [action.segments for action in house.transport.sent] == [(Text("a"),), (Text("b"),)]


async def test_the_same_id_in_another_group_or_account_is_another_message() -> None:
    elsewhere = type(GROUP)(BOT, "group", 4343)
    async with hall(words("a"), words("b")) as house:
        await house.take(said("hi", message_id="5"), said("hi", message_id="5", where=elsewhere))
        assert sorted(house.transport.texts) == ["a", "b"]


async def test_an_event_repeated_long_after_the_window_is_new_again() -> None:
    async with hall(words("a"), words("b")) as house:
        message = said("hi")
        await house.take(message)
        house.clock.time += 601
        await house.take(message)
        assert house.transport.texts == ["a", "b"]


async def test_own_messages_never_wake() -> None:
    async with hall() as house:
        await house.take(said("小霜 hi", user=BOT), said("hi", user=BOT, where=PRIVATE))
        assert house.transport.sent == []
