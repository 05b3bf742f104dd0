"""The OneBot server in forward mode: the simulator, and what is none."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from aiohttp import web
from websockets.asyncio.server import ServerConnection, serve

from adapters.simulator.server import Simulator
from adapters.simulator.world import World
from bot.cli.checks import Check, Outcome
from bot.cli.doctor.onebot import check_forward, check_name
from config.settings import Settings
from frostagent.clock import RandomIds, SystemClock
from tests.bot.cli.doctor.surroundings import BOT, TOKEN, answering, told


async def look(url: str, token: str = TOKEN) -> list[Check]:
    settings = Settings.model_validate({"onebot_mode": "forward", "onebot_url": url, "onebot_access_token": token})
    return await check_forward(settings, clock=SystemClock(), ids=RandomIds())


@asynccontextmanager
async def simulator() -> AsyncIterator[tuple[Simulator, str]]:
    async with Simulator(World(self_id=BOT), token=TOKEN) as onebot:
        yield onebot, await onebot.serve()


async def test_a_server_with_an_account_online_is_well() -> None:
    async with simulator() as (_, url):
        checks = await look(url)
    assert [(check.name, check.outcome) for check in checks] == [
        ("onebot host", Outcome.OK),
        ("onebot", Outcome.OK),
        ("account", Outcome.OK),
    ]
    assert str(BOT) in checks[-1].said


async def test_the_token_of_one_account_is_shown_without_the_account() -> None:
    async with simulator() as (_, url):
        checks = await look(url, f"{BOT}:{TOKEN}")
    assert {check.outcome for check in checks} == {Outcome.OK}


async def test_an_account_offline_is_one_problem() -> None:
    async with simulator() as (onebot, url):
        onebot.world.online = False
        assert "Log the account in again" in told(await look(url))


async def test_a_wrong_token_is_one_problem_that_does_not_repeat_it() -> None:
    async with asyncio.timeout(30), simulator() as (_, url):
        line = told(await look(url, "another-token-42"))
    assert "does not accept our token" in line
    assert "ONEBOT_ACCESS_TOKEN" in line
    assert "another-token-42" not in line


async def test_a_token_refused_before_the_upgrade_is_told_the_same() -> None:
    async with answering(lambda _: web.Response(status=403)) as root:
        assert "does not accept our token (HTTP 403)" in told(await look(root.replace("http", "ws")))


async def test_a_server_that_hangs_up_at_once_may_not_take_the_token() -> None:
    async def hang_up(socket: ServerConnection) -> None:
        await socket.close(1002)

    async with serve(hang_up, "127.0.0.1", 0) as server:
        port = next(iter(server.sockets)).getsockname()[1]
        line = told(await look(f"ws://127.0.0.1:{port}"))
    assert "our token may be wrong" in line
    assert "ONEBOT_ACCESS_TOKEN" in line


async def test_something_else_at_the_address_is_one_problem() -> None:
    async with answering(lambda _: web.Response(status=404)) as root:
        assert "is not a websocket server (HTTP 404)" in told(await look(root.replace("http", "ws")))


async def test_nobody_at_the_address_is_one_problem() -> None:
    line = told(await look("ws://127.0.0.1:9"))
    assert "cannot be reached" in line
    assert "ONEBOT_URL" in line


async def test_a_name_that_nobody_knows_is_one_problem() -> None:
    line = told(await look("ws://napcat.invalid:3001"))
    assert line.startswith("onebot host: napcat.invalid")
    assert "name of the service" in line


async def test_a_name_that_is_known_is_told_with_its_address() -> None:
    check = await check_name("ws://localhost:3001")
    assert check.outcome is Outcome.OK
    assert check.said in {f"the address of localhost is {one}" for one in ("127.0.0.1", "::1")}


@asynccontextmanager
async def answering_calls(answer: dict[str, Any] | None) -> AsyncIterator[str]:
    """A websocket server that says the same to every call; hangs up at the first where it is to say nothing."""

    async def attend(connection: ServerConnection) -> None:
        async for frame in connection:
            if answer is None:
                return
            echo = str(frame).partition('"echo":"')[2].partition('"')[0]
            await connection.send(str(answer | {"echo": echo}).replace("'", '"'))

    async with serve(attend, "127.0.0.1", 0) as server:
        yield f"ws://127.0.0.1:{next(iter(server.sockets)).getsockname()[1]}"


async def test_a_server_that_knows_none_of_the_questions_is_a_warning() -> None:
    async with answering_calls({"status": "failed", "retcode": 1404}) as url:
        checks = await look(url)
    assert checks[-1].outcome is Outcome.WARNING
    assert "a OneBot server at" in checks[-2].said


async def test_a_server_that_hangs_up_is_one_problem() -> None:
    async with answering_calls(None) as url:
        assert "answers nothing" in told(await look(url))
