"""One socket to the bot, whichever side opened it: hello, heartbeats, events out, calls in and
their answers out.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import Any

from websockets.asyncio.connection import Connection
from websockets.exceptions import ConnectionClosed
from websockets.frames import CloseCode

from adapters.simulator import wire
from adapters.simulator.wire import Json
from adapters.simulator.world import World

UNREAD = 10.0  # seconds we wait for a bot that does not read its socket


class ConnectedBot:
    """A connected bot. `heartbeat` is in seconds, 0 for none; a peer that does not hear events gets
    none of either.

    `back_in` says after how many seconds we dial again once it is gone; None: as always.
    """

    def __init__(
        self, connection: Connection, world: World, *, hears: bool, heartbeat: float
    ) -> None:
        self.hears = hears
        self.back_in: float | None = None
        self._connection = connection
        self._world = world
        self._heartbeat = heartbeat

    async def send(self, frame: Json) -> None:
        """Write one frame; on a socket that is gone, or is not read, it is lost: NapCat keeps no
        queue either.
        """
        with suppress(ConnectionClosed, TimeoutError):
            async with asyncio.timeout(UNREAD):
                await self._connection.send(json.dumps(frame))

    async def greet(self) -> None:
        """The first frame of all."""
        if self.hears:
            await self.send(wire.lifecycle(self._world.self_id, self._world.now()))

    async def run(
        self, take: Callable[[ConnectedBot, str | bytes], Coroutine[Any, Any, None]]
    ) -> None:
        """Give every frame to `take` until the socket closes; frames are taken concurrently.

        Two calls sent back to back may be answered in either order, as with NapCat.
        """
        async with asyncio.TaskGroup() as group:
            beating = group.create_task(self._keep_beating())
            try:
                async for frame in self._connection:
                    group.create_task(take(self, frame))
            except ConnectionClosed:
                pass  # however it ended, the bot is gone
            finally:
                beating.cancel()

    async def _keep_beating(self) -> None:
        while self.hears and self._heartbeat:
            await asyncio.sleep(self._heartbeat)
            await self.beat()

    async def beat(self) -> None:
        """One heartbeat now, unless this peer gets none."""
        world = self._world
        if self.hears and self._heartbeat:
            await self.send(
                wire.heartbeat(
                    world.self_id, world.now(), online=world.online, interval=self._heartbeat
                )
            )

    async def close(self) -> None:
        """Close as a server does that restarts: with a goodbye (1001), so that everything sent
        before is read.
        """
        await self._connection.close(CloseCode.GOING_AWAY)

    async def cut(self) -> None:
        """Break the connection as a dead network does: without a goodbye (the bot sees 1006)."""
        self._connection.transport.abort()
        await self._connection.wait_closed()

    async def refuse(self) -> None:
        """Turn a bot with a wrong token away as NapCat does: one frame, then a close frame without
        a code.
        """
        await self.send(wire.failed(wire.BAD_TOKEN, "token验证失败", None))
        with suppress(ConnectionClosed):
            async with self._connection.send_context():
                self._connection.protocol.send_close()
