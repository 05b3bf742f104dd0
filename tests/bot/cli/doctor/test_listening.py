"""The doctor in the bot's place: it listens, and the simulator dials."""

from __future__ import annotations

import asyncio

from aiohttp import web
from pydantic import SecretStr

from adapters.simulator.server import Simulator
from adapters.simulator.world import demo_world
from bot.cli.checks import Check, Outcome
from bot.cli.doctor.onebot import check_reverse, listen
from config.settings import Settings
from frostagent.clock import RandomIds, SystemClock
from tests.bot.cli.doctor.surroundings import TOKEN, answering, told
from tests.ports import free_port

CLOCK, IDS = SystemClock(), RandomIds()


def settings(port: int) -> Settings:
    given = {"onebot_host": "127.0.0.1", "onebot_port": str(port), "onebot_access_token": TOKEN, "web_port": "0"}
    return Settings.model_validate(given | {"bot_owners": "20001"})


async def test_a_server_that_dials_is_asked_and_sends_the_picture() -> None:
    port = free_port()
    async with asyncio.timeout(20), Simulator(demo_world(), reconnect=0.05) as simulator:
        simulator.dial(f"ws://127.0.0.1:{port}/", token=TOKEN)
        checks = await check_reverse(settings(port), clock=CLOCK, ids=IDS)
        (sent,) = simulator.sent
    assert [(check.name, check.outcome) for check in checks] == [
        ("onebot port", Outcome.OK),
        ("onebot", Outcome.OK),
        ("account", Outcome.OK),
        ("picture", Outcome.OK),
    ]
    assert sent.user_id == 20001


async def test_a_server_with_the_token_of_its_account_is_asked_too() -> None:
    port = free_port()
    own = settings(port).model_copy(update={"onebot_access_token": SecretStr(f"10001:{TOKEN},everybodys-token")})
    async with asyncio.timeout(20), Simulator(demo_world(), reconnect=0.05) as simulator:
        simulator.dial(f"ws://127.0.0.1:{port}/", token=TOKEN)
        checks = await listen(own, clock=CLOCK, ids=IDS)
    assert {check.outcome for check in checks} == {Outcome.OK}


async def test_nobody_who_comes_is_one_problem() -> None:
    checks = await listen(settings(free_port()), clock=CLOCK, ids=IDS, within=0.05)
    assert "websocket client" in told(checks)


async def test_a_server_with_another_token_does_not_count() -> None:
    port = free_port()
    async with asyncio.timeout(20), Simulator(demo_world(), reconnect=0.02) as simulator:
        simulator.dial(f"ws://127.0.0.1:{port}/", token=TOKEN[::-1])
        line = told(await listen(settings(port), clock=CLOCK, ids=IDS, within=0.5))
        assert simulator.sent == []
    assert "ONEBOT_ACCESS_TOKEN" in line


async def test_where_a_bot_has_the_port_it_is_to_be_stopped_first() -> None:
    async with answering(lambda _: web.Response()) as other:
        checks: list[Check] = await check_reverse(settings(int(other.rpartition(":")[2])), clock=CLOCK, ids=IDS)
    assert checks[-1].name == "picture"
    assert checks[-1].outcome is Outcome.WARNING
    assert "docker compose stop bot" in checks[-1].fix


async def test_a_port_taken_in_the_meantime_is_one_problem() -> None:
    async with answering(lambda _: web.Response()) as other:
        assert "ONEBOT_PORT" in told(await listen(settings(int(other.rpartition(":")[2])), clock=CLOCK, ids=IDS))
