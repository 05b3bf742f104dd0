"""The sockets to the bot, whichever side opens them: they open, break, and reopen."""

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

UNREAD = 10.0  # seconds to wait for a bot that does not read its socket


class ConnectedBot:
    """A connected bot. `heartbeat` is in seconds, 0 for none; a peer that receives no events gets
    no heartbeats.

    `back_in` is the number of seconds until reconnecting after a loss; None: the default.
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
        """Send one frame. On a closed or unread socket it is lost: NapCat has no queue either."""
        with suppress(ConnectionClosed, TimeoutError):
            async with asyncio.timeout(UNREAD):
                await self._connection.send(json.dumps(frame))

    async def greet(self) -> None:
        if self.hears:
            await self.send(wire.lifecycle(self._world.self_id, self._world.now()))

    async def run(
        self, take: Callable[[ConnectedBot, str | bytes], Coroutine[Any, Any, None]]
    ) -> None:
        """Pass every frame to `take`, concurrently, until the socket closes.

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
        """Send a heartbeat, unless this peer gets none."""
        world = self._world
        if self.hears and self._heartbeat:
            await self.send(
                wire.heartbeat(
                    world.self_id, world.now(), online=world.online, interval=self._heartbeat
                )
            )

    async def close(self) -> None:
        """Close as a restarting server does (1001), so that everything sent before is read."""
        await self._connection.close(CloseCode.GOING_AWAY)

    async def cut(self) -> None:
        """Break the connection like a dead network: without a close frame (the bot sees 1006)."""
        self._connection.transport.abort()
        await self._connection.wait_closed()

    async def refuse(self) -> None:
        """Reject a wrong token as NapCat does: one frame, then a close frame without a code."""
        await self.send(wire.failed(wire.BAD_TOKEN, "token验证失败", None))
        with suppress(ConnectionClosed):
            async with self._connection.send_context():
                self._connection.protocol.send_close()


log = logging.getLogger(__name__)

MAX_FRAME = 50 * 2**20  # NapCat's maxPayload
HANDSHAKE = 2.0  # seconds NapCat waits for its upgrade
GOODBYE = 2.0  # seconds to wait for a bot to close its side

Work: TypeAlias = Coroutine[Any, Any, None]


class SimulatedSockets:
    """All sockets and their tasks, within the `async with`.

    `take` receives each frame, `came` each greeted peer before its first frame; `changed` is called
    when a peer comes or goes. `heartbeat` and `reconnect` are in seconds.
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
        """Run a task until it is done, or the sockets close."""
        if self._closing:
            work.close()
            return
        task = self._group.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    # --- opening
    # -----------------------------------------------------------------------------------

    async def serve(self, host: str, port: int) -> str:
        """Let the bot connect here (forward mode). Returns the URL."""
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
        if request is None:  # cannot happen after the upgrade
            return
        hears = urlsplit(request.path).path.rstrip("/") != "/api"
        peer = ConnectedBot(connection, self._world, hears=hears, heartbeat=self._heartbeat)
        if not self._admits(request):
            await peer.refuse()
            return
        await self._keep(peer)

    def _admits(self, request: Request) -> bool:
        """A non-empty query wins over the header; `Bearer x` and `x` pass, `Token x` does not."""
        asked = parse_qs(urlsplit(request.path).query).get("access_token", [""])[0]
        shown = asked or request.headers.get("Authorization", "").rpartition("Bearer ")[2]
        return not self._token or hmac.compare_digest(shown.encode(), self._token.encode())

    def dial(
        self, url: str, token: str, *, roles: Sequence[str] = ("Universal",), says: str = ""
    ) -> None:
        """Connect to the bot (reverse mode), and reconnect until it answers and whenever the socket
        breaks.

        One socket per role; `says` is the X-Self-ID, by default the account.
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
        if self.away:  # since this one started to connect
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

    # --- closing
    # -----------------------------------------------------------------------------------

    async def reconnect(self, seconds: float | None = None) -> None:
        """Close every socket. The bot may reconnect at once; connections from here are reopened
        after that many seconds (None: the default).
        """
        await self._leave(ConnectedBot.close, back_in=seconds)

    async def drop(self, seconds: float | None = None) -> None:
        """Cut every socket, and accept none for that long (None: until `come_back`)."""
        self._here.clear()
        self._stop_waiting()
        if seconds is not None:
            self._return = asyncio.get_running_loop().call_later(seconds, self.come_back)
        await self._leave(ConnectedBot.cut, back_in=0.0)

    def come_back(self) -> None:
        """Accept sockets again."""
        self._stop_waiting()
        self._here.set()
        self._changed()

    @property
    def away(self) -> bool:
        return not self._here.is_set()

    def _stop_waiting(self) -> None:
        if self._return is not None:
            self._return.cancel()
            self._return = None

    async def _leave(self, leave: Callable[[ConnectedBot], Work], *, back_in: float | None) -> None:
        leaving = list(self.peers)
        self.peers.clear()  # nothing is sent to them from here on
        self._changed()
        for peer in leaving:
            peer.back_in = back_in
            await leave(peer)
