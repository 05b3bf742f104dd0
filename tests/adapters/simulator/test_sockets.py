"""Sockets that come, go and come again, in both directions."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from websockets.asyncio.client import connect
from websockets.asyncio.server import ServerConnection, serve
from websockets.datastructures import Headers
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.http11 import Request, Response

from adapters.simulator.faults import Fault
from adapters.simulator.server import Simulator
from adapters.simulator.world import demo_world
from tests.adapters.simulator.conftest import both_directions, call, playing, receive
from tests.cases import each_case


async def test_the_simulator_dials_the_bot_and_dials_again() -> None:
    seen: asyncio.Queue[tuple[Request | None, list[dict[str, Any]]]] = asyncio.Queue()

    async def bot(connection: ServerConnection) -> None:
        frames = [await receive(connection)]
        answer = await call(connection, "get_login_info")
        await seen.put((connection.request, [*frames, answer]))

    async with serve(bot, "127.0.0.1", 0) as server, Simulator(demo_world(), reconnect=0.01) as simulator:
        port = next(iter(server.sockets)).getsockname()[1]
        simulator.dial(f"ws://127.0.0.1:{port}/onebot/v11/ws", token="secret")
        for _ in range(2):
            async with asyncio.timeout(30):
                request, (hello, answer) = await seen.get()
            assert request is not None
            assert request.path == "/onebot/v11/ws"
            assert {name: request.headers[name] for name in HEADERS} == HEADERS
            assert (hello["sub_type"], answer["data"]["user_id"]) == ("connect", 10001)


HEADERS = {
    "X-Self-ID": "10001",
    "x-client-role": "Universal",
    "Authorization": "Bearer secret",
    "User-Agent": "OneBot/11",
}


async def test_a_bot_that_refuses_the_upgrade_is_dialled_again() -> None:
    def refuse(_connection: ServerConnection, _request: Request) -> Response:
        return Response(401, "Unauthorized", Headers({"Content-Length": "0"}), b"")

    async def bot(_connection: ServerConnection) -> None:
        """Nobody comes this far."""

    async with (
        serve(bot, "127.0.0.1", 0, process_request=refuse) as server,
        Simulator(demo_world(), reconnect=0.01) as simulator,
    ):
        port = next(iter(server.sockets)).getsockname()[1]
        simulator.dial(f"ws://127.0.0.1:{port}/")
        await simulator.wait_until(lambda: len(simulator.sockets.refused) >= 2)
        assert "401" in simulator.sockets.refused[0]


async def test_a_bot_that_is_not_there_yet_is_dialled_again(unused_tcp_port: int) -> None:
    arrived = asyncio.Event()

    async def bot(connection: ServerConnection) -> None:
        arrived.set()
        await connection.wait_closed()

    async with Simulator(demo_world(), reconnect=0.01) as simulator:
        simulator.dial(f"ws://127.0.0.1:{unused_tcp_port}/")
        await simulator.wait_until(lambda: bool(simulator.sockets.refused))
        async with serve(bot, "127.0.0.1", unused_tcp_port), asyncio.timeout(30):
            await arrived.wait()


@each_case(
    ("path", "header"),
    [
        ("", "Bearer secret"),
        ("", "secret"),
        ("?access_token=secret", None),
        ("?access_token=secret", "Bearer wrong"),
        ("?access_token=", "Bearer secret"),
    ],
)
async def test_a_token_is_shown_in_the_header_or_the_query(path: str, header: str | None) -> None:
    headers = {"Authorization": header} if header else {}
    async with Simulator(demo_world(), token="secret") as simulator:
        url = await simulator.serve() + path
        async with connect(url, additional_headers=headers, proxy=None) as bot:
            assert (await receive(bot))["post_type"] == "meta_event"


@each_case(
    ("path", "header"),
    [("", None), ("", "Token secret"), ("", "Bearer wrong"), ("?access_token=wrong", "Bearer secret")],
)
async def test_a_wrong_token_fails_after_the_upgrade(path: str, header: str | None) -> None:
    headers = {"Authorization": header} if header else {}
    async with Simulator(demo_world(), token="secret") as simulator:
        url = await simulator.serve() + path
        async with connect(url, additional_headers=headers, proxy=None) as bot:
            assert (await receive(bot))["retcode"] == 1403
            with pytest.raises(ConnectionClosed):
                await receive(bot)
            assert simulator.connected == 0


# --- going and coming back ------------------------------------------------------------------------


@both_directions
async def test_a_reconnect_says_goodbye_and_comes_back(direction: str) -> None:
    async with playing(direction, reconnect=3600) as (simulator, bot):
        await simulator.sockets.reconnect(0.01)
        assert simulator.connected == 0
        await simulator.wait_connected()
        await bot.until(lambda: len(bot.metas) == 2)
        assert bot.closed == [1001]
        assert (await bot.send())["status"] == "ok"


@both_directions
async def test_a_drop_keeps_everybody_away_while_people_talk(direction: str) -> None:
    async with playing(direction) as (simulator, bot):
        await simulator.sockets.drop()
        missed = [await simulator.say("one"), await simulator.say("two")]
        await bot.until(lambda: bot.closed)
        assert (simulator.connected, simulator.sockets.away) == (0, True)
        assert simulator.missed == missed
        simulator.sockets.come_back()
        await simulator.wait_connected()
        heard = await simulator.say("three")
        await bot.until(lambda: bot.events)
        assert bot.closed == [1006]
        assert [event["message_id"] for event in bot.events] == [heard]


@both_directions
async def test_a_drop_ends_by_itself(direction: str) -> None:
    async with playing(direction) as (simulator, bot):
        await simulator.sockets.drop(0.03)
        assert simulator.sockets.away
        await simulator.wait_connected()
        assert not simulator.sockets.away
        await bot.until(lambda: len(bot.metas) == 2)


@both_directions
@pytest.mark.parametrize("fault", [Fault.RECONNECT, Fault.DROP])
async def test_the_connection_is_lost_as_soon_as_a_question_is_heard(direction: str, fault: Fault) -> None:
    async with playing(direction) as (simulator, bot):
        simulator.faults.arm(fault, value=0.02)
        asked = await simulator.say("@bot hi")
        await simulator.wait_connected()
        await bot.until(lambda: bot.connections == 2)
        assert [event["message_id"] for event in bot.events] == [asked]
        assert simulator.missed == []


async def test_a_later_drop_is_not_ended_by_an_earlier_one() -> None:
    async with playing("reverse") as (simulator, _):
        await simulator.sockets.drop(0.01)
        await simulator.sockets.drop(3600)
        with pytest.raises(TimeoutError):
            await simulator.wait_connected(timeout=0.05)
        assert simulator.sockets.away


async def test_whoever_dials_during_a_drop_is_sent_away() -> None:
    async with Simulator(demo_world()) as simulator:
        url = await simulator.serve()
        await simulator.sockets.drop()
        with pytest.raises(InvalidStatus, match="503"):
            await connect(url, proxy=None)


async def test_work_that_is_begun_at_the_end_is_dropped() -> None:
    async def endless() -> None:
        await asyncio.Event().wait()

    async with Simulator(demo_world()) as simulator:
        sockets = simulator.sockets
        sockets.start(endless())
    sockets.start(endless())
