"""The sockets to the bot, whichever side opens them: they come, are cut, and come again."""

from __future__ import annotations

import asyncio
import hmac
import json
import logging
from collections.abc import Callable, Coroutine, Sequence
from contextlib import AsyncExitStack, suppress
from http import HTTPStatus
from types import TracebackType
from typing import Any, Self, TypeAlias
from urllib.parse import parse_qs, urlsplit

from websockets.asyncio.client import connect
from websockets.asyncio.connection import Connection
from websockets.asyncio.server import ServerConnection, serve
from websockets.exceptions import ConnectionClosed, InvalidHandshake
from websockets.frames import CloseCode
from websockets.http11 import Request, Response

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


log = logging.getLogger(__name__)

MAX_FRAME = 50 * 2**20  # NapCat's maxPayload
HANDSHAKE = 2.0  # seconds NapCat waits for the upgrade it asked for
GOODBYE = 2.0  # seconds we wait for a bot to close its side

Work: TypeAlias = Coroutine[Any, Any, None]


class SimulatedSockets:
    """Every socket, and whatever else runs beside them, as long as the `async with`.

    `take` gets each frame, `came` each peer that has been greeted, before its first frame;
    `changed` is called when one comes or goes. `heartbeat` and `reconnect` are in seconds.
    """

    def __init__(
        self,
        world: World,
        *,
        token: str,
        heartbeat: float,
        reconnect: float,
        take: Callable[[ConnectedBot, str | bytes], Work],
        came: Callable[[ConnectedBot], Work],
        changed: Callable[[], None],
    ) -> None:
        self.peers: set[ConnectedBot] = set()
        self.refused: list[str] = []
        self._world = world
        self._token = token
        self._heartbeat = heartbeat
        self._reconnect = reconnect
        self._take = take
        self._came = came
        self._changed = changed
        self._here = asyncio.Event()
        self._here.set()
        self._return: asyncio.TimerHandle | None = None
        self._closing = False
        self._tasks: set[asyncio.Task[None]] = set()
        self._stack = AsyncExitStack()
        self._group = asyncio.TaskGroup()

    async def __aenter__(self) -> Self:
        await self._stack.enter_async_context(self._group)
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._closing = True
        self._stop_waiting()
        for task in self._tasks:
            task.cancel()
        await self._stack.__aexit__(kind, error, trace)

    def start(self, work: Work) -> None:
        """Run something until it is done, or the sockets close."""
        if self._closing:
            work.close()
            return
        task = self._group.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    # --- coming -----------------------------------------------------------------------------------

    async def serve(self, host: str, port: int) -> str:
        """Let the bot dial us (forward mode); the url to dial."""
        server = await self._stack.enter_async_context(
            serve(
                self._attend,
                host,
                port,
                process_request=self._is_here,
                close_timeout=GOODBYE,
                max_size=MAX_FRAME,
                compression=None,
                ping_interval=None,
            )
        )
        bound = next(iter(server.sockets)).getsockname()
        return f"ws://{bound[0]}:{bound[1]}/"

    def _is_here(self, connection: ServerConnection, _request: Request) -> Response | None:
        if self._here.is_set():
            return None
        return connection.respond(HTTPStatus.SERVICE_UNAVAILABLE, "away\n")

    async def _attend(self, connection: ServerConnection) -> None:
        request = connection.request
        if request is None:  # cannot be: the upgrade is done
            return
        hears = urlsplit(request.path).path.rstrip("/") != "/api"
        peer = ConnectedBot(connection, self._world, hears=hears, heartbeat=self._heartbeat)
        if not self._admits(request):
            await peer.refuse()
            return
        await self._keep(peer)

    def _admits(self, request: Request) -> bool:
        """The query wins over the header where it is not empty; `Bearer x` and a bare `x` pass,
        `Token x` does not.
        """
        asked = parse_qs(urlsplit(request.path).query).get("access_token", [""])[0]
        shown = asked or request.headers.get("Authorization", "").rpartition("Bearer ")[2]
        return not self._token or hmac.compare_digest(shown.encode(), self._token.encode())

    def dial(
        self, url: str, token: str, *, roles: Sequence[str] = ("Universal",), says: str = ""
    ) -> None:
        """Dial the bot (reverse mode), again and again until it answers and whenever the socket
        breaks.

        One socket for each role; `says` is what X-Self-ID says, the account where it is empty.
        """
        for role in roles:
            self.start(self._keep_dialling(url, token, role, says or str(self._world.self_id)))

    async def _keep_dialling(self, url: str, token: str, role: str, says: str) -> None:
        headers = {
            "X-Self-ID": says,
            "Authorization": f"Bearer {token}",  # sent without a token too, as NapCat does
            "x-client-role": role,
        }
        while True:
            await self._here.wait()
            pause = self._reconnect
            try:
                async with connect(
                    url,
                    additional_headers=headers,
                    user_agent_header="OneBot/11",
                    open_timeout=HANDSHAKE,
                    close_timeout=GOODBYE,
                    max_size=MAX_FRAME,
                    compression=None,
                    ping_interval=None,
                    proxy=None,
                ) as connection:
                    peer = ConnectedBot(
                        connection, self._world, hears=role != "Api", heartbeat=self._heartbeat
                    )
                    await self._keep(peer)
                    pause = self._reconnect if peer.back_in is None else peer.back_in
            except (OSError, InvalidHandshake, TimeoutError) as error:
                log.info("the bot at %s does not answer: %s", url, error)
                self.refused.append(str(error))
                self._changed()
            await asyncio.sleep(pause)

    async def _keep(self, peer: ConnectedBot) -> None:
        await peer.greet()
        if self.away:  # since this one began to come
            await peer.cut()
            return
        self.peers.add(peer)
        self._changed()
        try:
            await self._came(peer)
            await peer.run(self._take)
        finally:
            self.peers.discard(peer)
            self._changed()

    # --- going ------------------------------------------------------------------------------------

    async def reconnect(self, seconds: float | None = None) -> None:
        """Close every socket; who dials us may come back at once, what we dialled is dialled again
        after so many seconds (None: as after any loss).
        """
        await self._leave(ConnectedBot.close, back_in=seconds)

    async def drop(self, seconds: float | None = None) -> None:
        """Cut every socket, and let none come for so long (None: until `come_back`)."""
        self._here.clear()
        self._stop_waiting()
        if seconds is not None:
            self._return = asyncio.get_running_loop().call_later(seconds, self.come_back)
        await self._leave(ConnectedBot.cut, back_in=0.0)

    def come_back(self) -> None:
        """Sockets may come again."""
        self._stop_waiting()
        self._here.set()
        self._changed()

    @property
    def away(self) -> bool:
        """Whether no socket may come."""
        return not self._here.is_set()

    def _stop_waiting(self) -> None:
        if self._return is not None:
            self._return.cancel()
            self._return = None

    async def _leave(self, leave: Callable[[ConnectedBot], Work], *, back_in: float | None) -> None:
        leaving = list(self.peers)
        self.peers.clear()  # from here on nothing is sent to them
        self._changed()
        for peer in leaving:
            peer.back_in = back_in
            await leave(peer)
