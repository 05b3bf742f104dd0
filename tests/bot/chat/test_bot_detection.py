from __future__ import annotations

import asyncio

from bot.chat.group_probe import MAX_ASKED, BotDetection
from bot.core.conversation import Conversation
from tests.fakes import GROUP, PRIVATE, said


async def test_everybody_who_wakes_in_a_group_is_asked_about_once() -> None:
    bot_detection = BotDetection()
    for message in (said("hi"), said("again"), said("hi", user=5, where=PRIVATE), said("hi", user=6)):
        bot_detection.meet(message)
    async with asyncio.timeout(30):
        assert [await bot_detection.next(), await bot_detection.next()] == [(GROUP, 777), (GROUP, 6)]


async def test_of_too_many_at_once_nobody_asks_but_another_account() -> None:
    robots, elsewhere = BotDetection(), Conversation(20002, "group", 4242)
    for user in range(1, MAX_ASKED + 2):
        robots.meet(said("hi", user=user))
    robots.meet(said("hi", user=5, where=elsewhere))
    async with asyncio.timeout(30):
        asked = [await robots.next() for _ in range(MAX_ASKED)]
        robots.meet(said("hi", user=6666))  # they are being asked about
        robots.settle(*asked[0], is_robot=False)
        robots.meet(said("hi", user=7777))
        assert [await robots.next(), await robots.next()] == [(elsewhere, 5), (GROUP, 7777)]
    assert len(set(asked)) == MAX_ASKED
    assert not robots.known


async def test_whoever_is_one_is_known() -> None:
    bot_detection = BotDetection()
    bot_detection.settle(GROUP, 5, is_robot=True)
    bot_detection.settle(GROUP, 6, is_robot=False)
    assert list(bot_detection.known) == [5]
