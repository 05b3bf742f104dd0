from __future__ import annotations

import asyncio

from bot.conversation.intake.robots import MAX_ASKED, Robots
from tests.fakes import GROUP, PRIVATE, said


async def test_everybody_who_wakes_in_a_group_is_asked_about_once() -> None:
    robots = Robots()
    for message in (said("hi"), said("again"), said("hi", user=5, where=PRIVATE), said("hi", user=6)):
        robots.meet(message)
    async with asyncio.timeout(5):
        assert [await robots.next(), await robots.next()] == [(GROUP, 777), (GROUP, 6)]


async def test_of_too_many_at_once_nobody_asks() -> None:
    robots = Robots()
    for user in range(1, MAX_ASKED + 2):
        robots.meet(said("hi", user=user))
    async with asyncio.timeout(5):
        asked = [await robots.next() for _ in range(MAX_ASKED)]
        robots.meet(said("hi", user=7777))
        assert await robots.next() == (GROUP, 7777)
    assert len(asked) == MAX_ASKED
