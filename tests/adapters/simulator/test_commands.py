"""Lines that begin with an exclamation mark."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Iterator
from types import ModuleType

from adapters.simulator import commands
from adapters.simulator.commands import EXPLAINED, OTHERS, help_text, obey
from adapters.simulator.faults import Fault
from adapters.simulator.server import Simulator
from adapters.simulator.world import World, demo_world
from tests.adapters.simulator.conftest import playing
from tests.cases import each_case


def test_every_fault_is_explained() -> None:
    assert EXPLAINED.keys() == set(Fault)
    assert all(f"  {name} " in help_text() for name in [*Fault, *OTHERS])
    assert max(map(len, help_text().splitlines())) <= 120


def understood(module: ModuleType) -> Iterator[str]:
    """The words that a line may begin with, as the cases of this module have them."""
    for node in ast.walk(ast.parse(inspect.getsource(module))):
        if isinstance(node, ast.MatchSequence) and node.patterns:
            first = node.patterns[0]
            for one in first.patterns if isinstance(first, ast.MatchOr) else [first]:
                if isinstance(one, ast.MatchValue) and isinstance(one.value, ast.Constant):
                    yield str(one.value.value)


def test_all_that_is_understood_is_explained() -> None:
    words = {*understood(commands), *understood(commands)} - {"help"}
    told = {word.strip(",") for name in OTHERS for word in name.split() if word.islower()} - {"on|off"}
    assert words == told
    assert len(words) >= 20


@each_case("line", ["!help", "!", " ! HELP "])
async def test_the_help_is_told(line: str) -> None:
    async with Simulator(demo_world()) as simulator:
        assert await obey(simulator, line) == help_text()


async def test_faults_are_armed_and_shown() -> None:
    async with Simulator(demo_world()) as simulator:
        assert await obey(simulator, "!faults") == "nothing is armed"
        assert await obey(simulator, "!timeout next") == "timeout next"
        assert await obey(simulator, "!refuse 不行 ALWAYS") == "refuse 不行 always"
        assert await obey(simulator, "!recall 2 next") == "recall 2 next"
        assert await obey(simulator, "!faults") == "timeout next\nrefuse 不行 always\nrecall 2 next"
        assert await obey(simulator, "!timeout off") == "timeout off"
        assert await obey(simulator, "!off") == "nothing is armed"
        assert simulator.faults.armed == ()


@each_case("line", ["!nonsense", "!timeout later", "!slow x", "!mute 1 2", "!mute soon", "!selfreport", "!recall"])
async def test_what_is_not_understood_or_cannot_be_done_says_so(line: str) -> None:
    async with Simulator(demo_world()) as simulator:
        told = await obey(simulator, line)
        assert told.startswith(f"{line}: ")
        assert told.endswith("Try !help")
        assert simulator.faults.armed == ()


async def test_nobody_is_muted_where_there_is_no_group() -> None:
    async with Simulator(World()) as simulator:
        assert "不存在" in await obey(simulator, "!mute")


async def test_some_things_happen_at_once() -> None:
    async with playing("forward") as (simulator, bot):
        asked = await simulator.say("oops")
        assert await obey(simulator, "!recall") == "recall: done"
        await bot.until(lambda: len(bot.events) == 2)
        assert bot.events[-1]["message_id"] == asked
        assert await obey(simulator, "!reconnect") == "reconnect: done"
        await simulator.wait_connected()
        assert await obey(simulator, "!drop 3600") == "drop: done"
        assert await obey(simulator, "!faults") == "sockets are kept away"
        assert await obey(simulator, "!back") == "sockets may come again"
        await simulator.wait_connected()


async def test_the_account_is_muted_kicked_and_told_of_itself() -> None:
    async with playing("reverse") as (simulator, bot):
        assert await obey(simulator, "!mute 60") == "muted for 60 s"
        assert await obey(simulator, "!faults") == "muted in 4242"
        assert await obey(simulator, "!lift") == "not muted any more"
        assert await obey(simulator, "!mute") == "muted for 600 s"
        await obey(simulator, "!lift")
        assert await obey(simulator, "!offline") == "the account is offline"
        assert await obey(simulator, "!selfreport ON") == "own messages are reported"
        assert await obey(simulator, "!faults") == "the account is offline\nown messages are reported"
        assert await obey(simulator, "!online") == "the account is online"
        assert await obey(simulator, "!selfreport off") == "own messages are not reported"
        assert await obey(simulator, "!faults") == "nothing is armed"
        await bot.until(lambda: len(bot.events) == 5)
        kinds = [event.get("sub_type", event["notice_type"]) for event in bot.events]
        assert kinds == ["ban", "lift_ban", "ban", "lift_ban", "bot_offline"]


async def test_a_deaf_connection_answers_and_hears_nothing_until_it_hears_again() -> None:
    async with playing("forward", heartbeat=0.02) as (simulator, bot):
        assert await obey(simulator, "!deaf") == "events do not come"
        assert await obey(simulator, "!faults") == "events do not come"
        missed = await simulator.say("hello?")
        assert simulator.missed == [missed]
        assert (await bot.send("hi"))["status"] == "ok"
        beats = len(bot.metas)
        await bot.until(lambda: len(bot.metas) > beats + 1)
        assert bot.events == []
        assert await bot.history() == ["hello?", "hi"]
        assert await obey(simulator, "!hearing") == "events come"
        await simulator.say("hello!")
        await bot.until(lambda: len(bot.events) == 1)


async def test_an_admin_recalls_what_the_bot_said_last() -> None:
    async with playing("reverse") as (simulator, bot):
        assert "has said nothing" in await obey(simulator, "!takeback")
        await bot.send("hi")
        assert await obey(simulator, "!takeback") == "recalled"
        await bot.until(lambda: bot.events)
        (event,) = bot.events
        recalled = (event["notice_type"], event["user_id"], event["operator_id"])
        assert recalled == ("group_recall", 10001, 20001)
        assert event["message_id"] == simulator.delivered[0].message_id


async def test_quotes_may_have_ids_that_there_are_not() -> None:
    async with playing("forward") as (simulator, bot):
        said = await simulator.say("hello")
        assert await obey(simulator, "!otherquotes on") == "quotes have other ids"
        assert await obey(simulator, "!otherids on") == "histories have other ids"
        assert await obey(simulator, "!faults") == "histories have other ids\nquotes have other ids"
        await simulator.say([{"type": "reply", "data": {"id": str(said)}}, {"type": "text", "data": {"text": "yes"}}])
        await bot.until(lambda: len(bot.events) == 2)
        quote = int(bot.events[-1]["message"][0]["data"]["id"])
        assert quote < 0
        assert str(quote) in bot.events[-1]["raw_message"]
        for line in ("!otherquotes off", "!otherids off"):
            assert "the same ids" in await obey(simulator, line)
        assert await obey(simulator, "!faults") == "nothing is armed"


async def test_the_time_is_put_forward_where_that_can_be_done() -> None:
    ahead: list[float] = []
    async with Simulator(demo_world(), on_travel=ahead.append) as simulator:
        assert await obey(simulator, "!time +90m") == "it is 90m later now"
        assert await obey(simulator, "!time +2d") == "it is 2d later now"
        assert "there is no fault" in await obey(simulator, "!time -1h")
        assert ahead == [5400.0, 172_800.0]
    async with Simulator(demo_world()) as simulator:
        assert "the time cannot be changed here" in await obey(simulator, "!time +1h")
