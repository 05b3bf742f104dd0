"""One socket, from its first frame to its last, in either direction of connecting.

Events reach the sink in the order they came. Whatever a frame holds, the next one is read. A
connection is of one account: what it brings of another is dropped, and it answers for no other.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections import deque
from typing import Final

from websockets.asyncio.connection import Connection as Socket
from websockets.exceptions import ConnectionClosed
from websockets.frames import CloseCode
from websockets.protocol import State

from adapters.onebot.account_resolver import AccountResolver, AccountSource, Handshake
from adapters.onebot.calls import OneBotCalls
from adapters.onebot.health import ConnectionHealth
from adapters.onebot.peers import PeerRegistry, Role
from adapters.onebot.protocol import ActionReply, read_frame
from bot.domain.errors import NotConnected
from bot.domain.events import Connected, Event
from bot.domain.ports import Clock, EventSink

logger = logging.getLogger(__name__)

# The library's own log. Below WARNING it writes headers and urls, tokens included, and what people
# say.
socket_logger: Final = logging.getLogger(f"{__name__}.socket")
socket_logger.setLevel(logging.WARNING)

PING_EVERY: Final = 30.0  # seconds
PONG_WITHIN: Final = 60.0  # seconds; a pong waits behind a large frame
CLOSE_WITHIN: Final = 3.0  # seconds
HELD: Final = 50  # frames

_UNTOLD: Final = Handshake()

# asyncio's transport (3.11) raises AttributeError when the library aborts one that closed with data
# in its buffer.
_GONE: Final = (ConnectionClosed, AttributeError)


class Connection:
    """A `Peer`. `account` is 0 until `AccountResolver` knows it."""

    def __init__(
        self,
        socket: Socket,
        handshake: Handshake = _UNTOLD,
        *,
        sink: EventSink,
        peers: PeerRegistry,
        calls: OneBotCalls,
        clock: Clock,
    ) -> None:
        self._socket = socket
        self._handshake = handshake
        self._sink = sink
        self._peers = peers
        self._calls = calls
        self._clock = clock
        self._tasks = asyncio.TaskGroup()
        self._resolver = AccountResolver(
            self, handshake, tasks=self._tasks, peers=peers, calls=calls, sink=sink, clock=clock
        )
        self._identity = self._resolver.identity
        self._health = ConnectionHealth(self, peers=peers, calls=calls, clock=clock)
        # Events that name no account while none is known.
        self._held: deque[bytes] = deque(maxlen=HELD)
        self._has_spoken = False
        self._said_hello = False
        self._bad_token = False

    @property
    def account(self) -> int:
        """The account of this connection; 0 until it is known."""
        return self._identity.account

    @property
    def is_introduced(self) -> bool:
        """Whether the server itself has named the account."""
        return self.account != 0 and (
            self._identity.source is not AccountSource.TOKEN or self._has_spoken
        )

    @property
    def role(self) -> Role:
        """Whether it is for calls, for events, or for both."""
        return self._handshake.role

    @property
    def is_open(self) -> bool:
        """Whether a frame can be written now."""
        return self._socket.state is State.OPEN

    @property
    def bad_token(self) -> bool:
        """Whether the server rejected our token."""
        return self._bad_token

    async def run(self) -> None:
        """Read until the socket closes. To be called once. Never raises."""
        async with self._tasks:
            await self._resolver.claim(self._handshake.bound, AccountSource.TOKEN)
            works = (self._learn_account(), self._look(), self._health.watch_heartbeats())
            waiting = [self._tasks.create_task(work) for work in works]
            try:
                await self._pump()
            finally:
                self._peers.leave(self)
                self._calls.fail_calls_of(self)
                for task in waiting:
                    task.cancel()
        level = logging.INFO if self.account else logging.DEBUG
        code = self._socket.close_code
        logger.log(level, "account %d: connection closed (%s)", self.account, code)

    async def send(self, frame: bytes) -> None:
        """Put one text frame on the wire. Raises NotConnected if it is closed already."""
        if not self.is_open:
            raise NotConnected(
                f"the connection of account {self.account} closed before the frame was written"
            )
        # The library writes before it awaits. Closed while draining means: written, and the answer
        # may yet come.
        with contextlib.suppress(*_GONE):
            await self._socket.send(frame, text=True)

    async def close(self, reason: str, *, code: CloseCode = CloseCode.NORMAL_CLOSURE) -> None:
        """Close, waiting at most 3 s for the other side."""
        with contextlib.suppress(*_GONE):
            await self._socket.close(code, reason)

    async def is_alive(self, within: float) -> bool:
        """Whether the other side answers a ping within this many seconds."""
        try:
            async with asyncio.timeout(within):
                await (await self._socket.ping())
        except (TimeoutError, *_GONE):
            return False
        return True

    # --- frames -----------------------------------------------------------------------------------

    async def _pump(self) -> None:
        while not self._resolver.is_turned_away:
            try:
                # Bytes, so that a text frame of bad UTF-8 is our affair and not the end of the
                # connection.
                frame = await self._socket.recv(decode=False)
            except ConnectionClosed:
                return
            await self._take_guarded(frame)

    async def _take_guarded(self, frame: bytes) -> None:
        try:
            await self._take(frame)
        except Exception:
            logger.exception(
                "account %d: a frame of %d bytes was not handled", self.account, len(frame)
            )

    async def _take(self, frame: bytes) -> None:
        read = read_frame(frame, account=self.account, now=self._clock.now())
        if self._handshake.hint and not (
            read is None or isinstance(read, ActionReply) or read.self_id
        ):
            # Its events name nobody: the header is all we will ever know.
            await self._resolver.claim(self._handshake.hint, AccountSource.HEADER)
            read = read_frame(frame, account=self.account, now=self._clock.now())
        match read:
            case None:
                logger.debug("ignored a frame of %d bytes that is not OneBot", len(frame))
            case ActionReply() as reply:
                self._answer(reply)
            case event if event.self_id == 0:
                # Nobody could be answered.
                self._held.append(frame)
                self._resolver.ask_at_once()
            case event if await self._resolver.is_ours(event):
                self._has_spoken = True
                self._peers.note_speaking(self)
                self._health.observe(event)
                if not self._is_first_hello(event):
                    await self._sink.handle(event)
            case _:
                pass

    def _answer(self, reply: ActionReply) -> None:
        if reply.is_bad_token:
            self._bad_token = True
        elif reply.echo or reply.ok:
            self._calls.answer(reply, by=self)
        else:
            logger.warning(
                "the OneBot server refused a frame it could not place: %d %.100s",
                reply.retcode,
                reply.wording,
            )

    def _is_first_hello(self, event: Event) -> bool:
        """Whether the server greets us: that the account is there, its registration has said."""
        first = isinstance(event, Connected) and not self._said_hello
        self._said_hello = self._said_hello or first
        return first

    # --- beside the frames ------------------------------------------------------------------------

    async def _learn_account(self) -> None:
        await self._resolver.resolve()
        while self._held and self.account:
            await self._take_guarded(self._held.popleft())

    async def _look(self) -> None:
        await self._resolver.joined.wait()
        await self._health.refresh()
