"""The simulated OneBot server: its sockets in both directions, and what people and tests do with it.

async with Simulator(demo_world()) as simulator:
    url = await simulator.serve()               # the bot dials us, or
    simulator.dial("ws://127.0.0.1:6199/")      # we dial the bot
    await simulator.wait_connected()
    await simulator.say("@bot hi")
    (answer,) = await simulator.wait_sent(1)
"""

from __future__ import annotations

import asyncio
import hmac
import logging
from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack
from types import TracebackType
from typing import Self
from urllib.parse import parse_qs, urlsplit

from websockets.asyncio.client import connect
from websockets.asyncio.server import ServerConnection, serve
from websockets.exceptions import InvalidHandshake
from websockets.http11 import Request

from adapters.simulator import actions, console, wire
from adapters.simulator.call import Answer, SentMessage
from adapters.simulator.peer import Peer
from adapters.simulator.wire import Json
from adapters.simulator.world import World

log = logging.getLogger(__name__)

MAX_FRAME = 50 * 2**20  # NapCat's maxPayload
HANDSHAKE = 2.0  # seconds NapCat waits for the upgrade it asked for
DEADLINE = 5.0  # seconds a test waits for something by default


class Simulator:
    """A OneBot v11 server around one `World`; it lives as long as its `async with`.

    `token` is what a dialling bot must show; `heartbeat` and `reconnect` are in seconds (NapCat's defaults).
    `on_sent` is called with each message the bot sends, in order, before the bot hears that it was sent.
    """

    def __init__(
        self,
        world: World,
        *,
        token: str = "",
        heartbeat: float = 30.0,
        reconnect: float = 5.0,
        on_sent: Callable[[SentMessage], None] | None = None,
    ) -> None:
        self.world = world
        self.sent: list[SentMessage] = []
        self.refused: list[str] = []
        self._token = token
        self._heartbeat = heartbeat
        self._reconnect = reconnect
        self._on_sent = on_sent
        self._peers: set[Peer] = set()
        self._changed = asyncio.Event()
        self._dialling: list[asyncio.Task[None]] = []
        self._stack = AsyncExitStack()
        self._group = asyncio.TaskGroup()

    async def __aenter__(self) -> Self:
        await self._stack.enter_async_context(self._group)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for task in self._dialling:
            task.cancel()
        await self._stack.__aexit__(kind, error, trace)

    # --- sockets --------------------------------------------------------------------------------------

    async def serve(self, *, host: str = "127.0.0.1", port: int = 0) -> str:
        """Let the bot dial us (forward mode); the url to dial. Port 0 takes any that is free."""
        server = await self._stack.enter_async_context(
            serve(self._attend, host, port, max_size=MAX_FRAME, compression=None, ping_interval=None)
        )
        bound = next(iter(server.sockets)).getsockname()
        return f"ws://{bound[0]}:{bound[1]}/"

    async def _attend(self, connection: ServerConnection) -> None:
        request = connection.request
        if request is None:  # cannot be: the upgrade is done
            return
        hears = urlsplit(request.path).path.rstrip("/") != "/api"
        peer = Peer(connection, self.world, hears=hears, heartbeat=self._heartbeat)
        if not self._admits(request):
            await peer.refuse()
            return
        await self._keep(peer)

    def _admits(self, request: Request) -> bool:
        """The query wins over the header where it is not empty; `Bearer x` and a bare `x` pass, `Token x` does not."""
        asked = parse_qs(urlsplit(request.path).query).get("access_token", [""])[0]
        shown = asked or request.headers.get("Authorization", "").rpartition("Bearer ")[2]
        return not self._token or hmac.compare_digest(shown.encode(), self._token.encode())

    def dial(self, url: str, *, token: str = "") -> None:
        """Dial the bot (reverse mode), again and again until it answers and whenever the socket breaks."""
        self._dialling.append(self._group.create_task(self._keep_dialling(url, token)))

    async def _keep_dialling(self, url: str, token: str) -> None:
        headers = {
            "X-Self-ID": str(self.world.self_id),
            "Authorization": f"Bearer {token}",  # sent without a token too, as NapCat does
            "x-client-role": "Universal",
        }
        while True:
            try:
                async with connect(
                    url,
                    additional_headers=headers,
                    user_agent_header="OneBot/11",
                    open_timeout=HANDSHAKE,
                    max_size=MAX_FRAME,
                    compression=None,
                    ping_interval=None,
                    proxy=None,
                ) as connection:
                    await self._keep(Peer(connection, self.world, hears=True, heartbeat=self._heartbeat))
            except (OSError, InvalidHandshake, TimeoutError) as error:
                log.info("the bot at %s does not answer: %s", url, error)
                self.refused.append(str(error))
                self._tell()
            await asyncio.sleep(self._reconnect)

    async def _keep(self, peer: Peer) -> None:
        await peer.greet()
        self._peers.add(peer)
        self._tell()
        try:
            await peer.run(self._take)
        finally:
            self._peers.discard(peer)
            self._tell()

    async def _take(self, peer: Peer, frame: str | bytes) -> None:
        """Answer one call. Everything between a call and its answer passes here, and nowhere else."""
        answer = self._answer(frame)
        await peer.send(answer.frame)
        for event in answer.done.events:
            await self.push(event)

    def _answer(self, frame: str | bytes) -> Answer:
        answer = actions.answer(self.world, frame)
        if (sent := answer.done.sent) is not None:
            self.sent.append(sent)
            if self._on_sent is not None:
                self._on_sent(sent)
            self._tell()
        return answer

    # --- what people do -------------------------------------------------------------------------------

    async def push(self, event: Json) -> None:
        """Send an event to every socket that hears events; where there is none it is lost."""
        for peer in [peer for peer in self._peers if peer.hears]:
            await peer.send(event)

    async def say(
        self, message: str | Sequence[Json], *, group_id: int | None = None, user_id: int | None = None
    ) -> int:
        """Somebody says something in a group; the id of the message.

        In a string `@name` mentions the member of that name and `@bot` the account; segments are taken as they are.
        The group is the first one unless named, the speaker its first member beside the account; a new number joins.
        Raises Refusal for an unknown group.
        """
        group = self.world.group(next(iter(self.world.groups), 0) if group_id is None else group_id)
        if user_id is None:
            user_id = next(number for number in group.members if number != self.world.self_id)
        self.world.join(group.group_id, str(user_id), user_id=user_id)
        people = self.world.people(group.group_id)
        segments = console.parse_mentions(message, people, self.world.self_id) if isinstance(message, str) else message
        stored = self.world.post(segments, author=user_id, group_id=group.group_id)
        await self.push(self.world.event(stored))
        return stored.message_id

    async def say_private(self, message: str | Sequence[Json], *, user_id: int, via_group: int = 0) -> int:
        """A friend says something in private, or a stranger in a session through a group; the id of the message."""
        segments = [wire.text(message)] if isinstance(message, str) else message
        stored = self.world.post(segments, author=user_id, peer_id=user_id, via_group=via_group)
        await self.push(self.world.event(stored))
        return stored.message_id

    async def say_line(self, line: str, *, group_id: int | None = None) -> int | None:
        """A line of the console becomes a message, spoken by the member it names; None for one that says nothing."""
        group = self.world.group(next(iter(self.world.groups), 0) if group_id is None else group_id)
        spoken = console.parse_line(line, self.world.people(group.group_id), self.world.self_id)
        if not spoken.segments:
            return None
        speaker = self.world.join(group.group_id, spoken.speaker).user_id if spoken.speaker else None
        return await self.say(spoken.segments, group_id=group.group_id, user_id=speaker)

    async def recall(self, message_id: int, *, operator_id: int | None = None) -> None:
        """The author, or whoever is named, takes a message back. Raises Refusal for an unknown one."""
        await self.push(self.world.recall(message_id, operator_id=operator_id))

    async def poke(self, *, user_id: int, target_id: int | None = None, group_id: int | None = None) -> None:
        """Somebody pokes somebody, the account unless another is named, in a group or in private."""
        world = self.world
        target = world.self_id if target_id is None else target_id
        await self.push(wire.poke(world.self_id, world.now(), user_id=user_id, target_id=target, group_id=group_id))

    # --- what tests wait for --------------------------------------------------------------------------

    @property
    def connected(self) -> int:
        """How many sockets hear events now."""
        return sum(peer.hears for peer in self._peers)

    def _tell(self) -> None:
        self._changed.set()
        self._changed = asyncio.Event()

    async def wait_until(self, condition: Callable[[], bool], *, timeout: float = DEADLINE) -> None:
        """Until the condition, asked again whenever something happens here, holds. Raises TimeoutError."""
        async with asyncio.timeout(timeout):
            while not condition():
                await self._changed.wait()

    async def wait_connected(self, count: int = 1, *, timeout: float = DEADLINE) -> None:
        """Until that many sockets hear events. Raises TimeoutError."""
        await self.wait_until(lambda: self.connected >= count, timeout=timeout)

    async def wait_sent(self, count: int, *, timeout: float = DEADLINE) -> list[SentMessage]:
        """Until the bot has sent that many messages since the start; all of them. Raises TimeoutError."""
        await self.wait_until(lambda: len(self.sent) >= count, timeout=timeout)
        return list(self.sent)
