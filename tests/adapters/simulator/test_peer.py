"""One socket, with a bot at its other end."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest
from websockets.asyncio.client import ClientConnection, connect
from websockets.asyncio.server import ServerConnection, serve
from websockets.exceptions import ConnectionClosed

from adapters.simulator.sockets import ConnectedBot
from adapters.simulator.world import World


async def receive(bot: ClientConnection) -> dict[str, Any]:
    async with asyncio.timeout(30):
        frame: dict[str, Any] = json.loads(await bot.recv())
        return frame


@asynccontextmanager
async def bot_of(
    world: World, play: Callable[[ConnectedBot], Awaitable[None]], *, hears: bool = True, heartbeat: float = 0.0
) -> AsyncIterator[ClientConnection]:
    async def attend(connection: ServerConnection) -> None:
        await play(ConnectedBot(connection, world, hears=hears, heartbeat=heartbeat))

    async with serve(attend, "127.0.0.1", 0) as server:
        port = next(iter(server.sockets)).getsockname()[1]
        async with connect(f"ws://127.0.0.1:{port}/", proxy=None) as bot:
            yield bot


async def test_heartbeats_follow_the_greeting_and_tell_the_state(world: World) -> None:
    async def play(peer: ConnectedBot) -> None:
        await peer.greet()
        await peer.run(ignore)

    world.online = False
    async with bot_of(world, play, heartbeat=0.01) as bot:
        assert (await receive(bot))["meta_event_type"] == "lifecycle"
        for _ in range(2):
            beat = await receive(bot)
            assert (beat["meta_event_type"], beat["interval"], beat["status"]["online"]) == ("heartbeat", 10, False)


async def test_a_socket_for_calls_alone_hears_nothing(world: World) -> None:
    async def play(peer: ConnectedBot) -> None:
        await peer.greet()
        await peer.run(echo)

    async with bot_of(world, play, hears=False, heartbeat=0.001) as bot:
        await bot.send("call")
        assert await receive(bot) == {"call": "call"}


async def test_a_slow_call_does_not_hold_up_the_next_one(world: World) -> None:
    second = asyncio.Event()

    async def take(peer: ConnectedBot, frame: str | bytes) -> None:
        if frame == "first":
            await second.wait()
        await peer.send({"call": frame})
        second.set()

    async with bot_of(world, lambda peer: peer.run(take)) as bot:
        await bot.send("first")
        await bot.send("second")
        assert [(await receive(bot))["call"] for _ in range(2)] == ["second", "first"]


async def test_a_refused_bot_gets_one_frame_and_a_close_without_a_code(
    world: World, recorded: Callable[[str], dict[str, Any]]
) -> None:
    async with bot_of(world, ConnectedBot.refuse) as bot:
        assert await receive(bot) == recorded("api_error__nc_bad_token_frame")
        with pytest.raises(ConnectionClosed):
            await receive(bot)
        assert bot.close_code == 1005


async def test_a_frame_for_a_bot_that_is_gone_is_lost(world: World) -> None:
    lost = asyncio.Event()

    async def play(peer: ConnectedBot) -> None:
        await peer.run(ignore)
        await peer.send({"too": "late"})
        lost.set()

    async with bot_of(world, play) as bot:
        await bot.close()
        async with asyncio.timeout(30):
            await lost.wait()


@pytest.mark.parametrize(("end", "code"), [(ConnectedBot.close, 1001), (ConnectedBot.cut, 1006)])
async def test_a_peer_goes_with_or_without_a_goodbye(
    world: World, end: Callable[[ConnectedBot], Awaitable[None]], code: int
) -> None:
    gone = asyncio.Event()

    async def play(peer: ConnectedBot) -> None:
        await peer.send({"last": "words"})
        await end(peer)
        gone.set()

    async with bot_of(world, play) as bot:
        assert await receive(bot) == {"last": "words"}
        with pytest.raises(ConnectionClosed):
            await receive(bot)
        assert bot.close_code == code
        async with asyncio.timeout(30):
            await gone.wait()


async def test_a_heartbeat_may_come_out_of_turn(world: World) -> None:
    async def play(peer: ConnectedBot) -> None:
        await peer.beat()

    async with bot_of(world, play, heartbeat=60) as bot:
        assert (await receive(bot))["meta_event_type"] == "heartbeat"
    async with bot_of(world, play) as bot:
        with pytest.raises(ConnectionClosed):
            await receive(bot)


async def ignore(peer: ConnectedBot, frame: str | bytes) -> None:
    """Say nothing."""


async def echo(peer: ConnectedBot, frame: str | bytes) -> None:
    await peer.send({"call": frame})
