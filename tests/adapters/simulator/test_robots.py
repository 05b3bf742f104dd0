"""Robots that answer whatever the bot says."""

from __future__ import annotations

from tests.adapters.simulator.conftest import playing


async def test_a_robot_answers_the_bot_so_often_and_nobody_else() -> None:
    async with playing("forward") as (simulator, bot):
        robot = simulator.robots.invite("小冰", times=1)
        heard: list[tuple[str, str]] = []
        simulator.robots.on_said = lambda *said: heard.append(said)
        await simulator.say("hi")
        await bot.send("one")
        await bot.until(lambda: len(bot.events) == 2)
        assert (bot.events[1]["user_id"], bot.events[1]["group_id"]) == (robot.user_id, 4242)
        assert bot.events[1]["message"][0]["data"]["qq"] == "10001"
        assert heard == [("小冰", "你说得对")]
        await bot.send("two")
        await simulator.say("hi")
        await bot.until(lambda: len(bot.events) == 3)
        assert bot.events[2]["user_id"] != robot.user_id
