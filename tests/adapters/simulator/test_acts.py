"""What user1 does at the chat beside speaking."""

from __future__ import annotations

from adapters.simulator.commands import obey
from adapters.simulator.server import Simulator
from adapters.simulator.world import demo_world
from tests.adapters.simulator.conftest import playing
from tests.cases import each_case


async def test_gestures_reach_the_bot() -> None:
    async with playing("forward") as (simulator, bot):
        assert "has said nothing" in await obey(simulator, "!react")
        sent = await bot.send("hello")
        for line in ("!poke", "!typing", "!react 66"):
            await obey(simulator, line)
        await bot.until(lambda: len(bot.events) == 3)
        poke, typing, reaction = bot.events
        assert (poke["sub_type"], poke["user_id"], poke["group_id"]) == ("poke", 20001, 4242)
        assert (typing["sub_type"], typing["user_id"]) == ("input_status", 20001)
        assert reaction["message_id"] == sent["data"]["message_id"]
        assert reaction["likes"] == [{"emoji_id": "66", "count": 1}]


@each_case(
    ("line", "kind", "told"),
    [
        ("!voice 明天 下雨", "record", "voice.amr"),
        ("!file 作业.txt 第一题 第二题", "file", "作业.txt"),
        ("!card 香山 https://example.com", "json", "https://example.com"),
        ("!forward 3", "forward", "700000"),
    ],
)
async def test_things_are_shared(line: str, kind: str, told: str) -> None:
    async with Simulator(demo_world()) as simulator:
        assert await obey(simulator, line) == "shared"
        (segment,) = simulator.world.messages.find(simulator.last_said).segments
        assert segment["type"] == kind
        assert told in str(segment["data"])


async def test_a_shared_file_has_its_words_and_a_forward_its_depth() -> None:
    async with Simulator(demo_world()) as simulator:
        await obey(simulator, "!file 作业.txt 第一题 第二题")
        assert simulator.world.contents["作业.txt"].decode() == "第一题 第二题"
        await obey(simulator, "!forward 99")
        (messages,) = simulator.world.forwards.values()
        assert str(messages).count("周六去爬山吗") == 9 * 2  # in the segments and as raw_message


async def test_everybody_is_muted_and_a_robot_comes() -> None:
    async with Simulator(demo_world()) as simulator:
        assert await obey(simulator, "!muteall") == "everybody is muted"
        assert await obey(simulator, "!faults") == "muted in 4242"
        assert await obey(simulator, "!liftall") == "nobody is muted any more"
        assert await obey(simulator, "!faults") == "nothing is armed"
        assert await obey(simulator, "!robot 3") == "robot2 answers 3 times"
