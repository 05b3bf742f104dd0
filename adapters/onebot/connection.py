"""One socket from first to last frame, whichever side opened it, and the health of its account:
whether it is online and its server alive.

Events reach the sink in order. No frame's content prevents reading the next one. A connection
belongs to one account: events of other accounts are dropped, and it answers no calls to them.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections import deque
from collections.abc import Mapping
from typing import Any, Final

from websockets.asyncio.connection import Connection as Socket
from websockets.exceptions import ConnectionClosed
from websockets.frames import CloseCode
from websockets.protocol import State

from adapters.onebot.accounts import (
    AccountResolver,
    AccountSource,
    Handshake,
    Peer,
    PeerRegistry,
    Role,
)
from adapters.onebot.calls import OneBotCalls
from adapters.onebot.protocol import ActionReply, read_account, read_frame
from bot.core.errors import NotConnected, TransportError
from bot.core.events import AccountChanged, Connected, Event, Heartbeat
from bot.core.ports import EventSink
from frostagent.types.ports import Clock

logger = logging.getLogger(__name__)

HELD: Final = 50  # frames
SAYS_WITHIN: Final = 5.0  # seconds to name the account; after that the header is used
MISSED: Final = 3  # heartbeats
SHORTEST: Final = 5.0  # seconds; a server that beats every second may be busy for one
MOST_SLACK: Final = 64

_NO_HANDSHAKE: Final = Handshake()

# asyncio's transport (3.11) raises AttributeError when the library aborts one that closed with data
# in its buffer.
_GONE: Final = (ConnectionClosed, AttributeError)


class Connection:
    """A `Peer`. `account` is 0 until `AccountResolver` knows it."""

    def __init__(
        self,
        socket: Socket,
        handshake: Handshake = _NO_HANDSHAKE,
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
            self,
            handshake,
            tasks=self._tasks,
            peers=peers,
            sink=sink,
            clock=clock,
            ask=self._ask_for_account,
        )
        self._identity = self._resolver.identity
        self._health = ConnectionHealth(self, peers=peers, calls=calls, clock=clock)
        # events without an account, until it is known
        self._held: deque[bytes] = deque(maxlen=HELD)
        self._has_spoken = False
        self._said_hello = False
        self._bad_token = False

    @property
    def account(self) -> int:
        return self._identity.account

    @property
    def is_introduced(self) -> bool:
        """Whether the server itself has named the account."""
        return self.account != 0 and (
            self._identity.source is not AccountSource.TOKEN or self._has_spoken
        )

    @property
    def role(self) -> Role:
        return self._handshake.role

    @property
    def is_open(self) -> bool:
        return self._socket.state is State.OPEN

    @property
    def bad_token(self) -> bool:
        return self._bad_token

    async def run(self) -> None:
        """Read until the socket closes. Call it once. Never raises."""
        async with self._tasks:
            await self._resolver.claim(self._handshake.bound, AccountSource.TOKEN)
            works = (self._learn_account(), self._check_health(), self._health.watch_heartbeats())
            waiting = [self._tasks.create_task(work) for work in works]
            try:
                await self._read_frames()
            finally:
                self._peers.leave(self)
                self._calls.fail_calls_of(self)
                for task in waiting:
                    task.cancel()
        level = logging.INFO if self.account else logging.DEBUG
        code = self._socket.close_code
        logger.log(level, "account %d: connection closed (%s)", self.account, code)

    async def send(self, frame: bytes) -> None:
        """Send one text frame. Raises NotConnected if the connection is closed."""
        if not self.is_open:
            raise NotConnected(
                f"the connection of account {self.account} closed before the frame was written"
            )
        # The library writes before it awaits. If the socket closes while it drains, the frame was
        # written and its answer may still arrive.
        with contextlib.suppress(*_GONE):
            await self._socket.send(frame, text=True)

    async def close(self, reason: str, *, code: CloseCode = CloseCode.NORMAL_CLOSURE) -> None:
        """Close, waiting at most 3 s for the other side. Never raises."""
        with contextlib.suppress(*_GONE):
            await self._socket.close(code, reason)

    async def is_alive(self, within: float) -> bool:
        """Whether the other side answers a ping within `within` seconds. Never raises."""
        try:
            async with asyncio.timeout(within):
                await (await self._socket.ping())
        except (TimeoutError, *_GONE):
            return False
        return True

    # --- frames -----------------------------------------------------------------------------------

    async def _read_frames(self) -> None:
        while not self._resolver.is_turned_away:
            try:
                # bytes, because the library would close the connection over invalid UTF-8
                frame = await self._socket.recv(decode=False)
            except ConnectionClosed:
                return
            await self._handle_safely(frame)

    async def _handle_safely(self, frame: bytes) -> None:
        try:
            await self._handle(frame)
        except Exception:
            logger.exception(
                "account %d: a frame of %d bytes was not handled", self.account, len(frame)
            )

    async def _handle(self, frame: bytes) -> None:
        read = read_frame(frame, account=self.account, now=self._clock.now())
        if self._handshake.hint and not (
            read is None or isinstance(read, ActionReply) or read.self_id
        ):
            # Its events name no account, so the header is the only source.
            await self._resolver.claim(self._handshake.hint, AccountSource.HEADER)
            read = read_frame(frame, account=self.account, now=self._clock.now())
        match read:
            case None:
                logger.debug("ignored a frame of %d bytes that is not OneBot", len(frame))
            case ActionReply() as reply:
                self._handle_reply(reply)
            case event if event.self_id == 0:
                # answers to it would have no account
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

    def _handle_reply(self, reply: ActionReply) -> None:
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
        """Whether this is the server's first greeting; the sink already knows of the connection."""
        first = isinstance(event, Connected) and not self._said_hello
        self._said_hello = self._said_hello or first
        return first

    # --- beside the frames ------------------------------------------------------------------------

    async def _learn_account(self) -> None:
        await self._resolver.resolve()
        while self._held and self.account:
            await self._handle_safely(self._held.popleft())

    async def _ask_for_account(self) -> int:
        try:
            async with asyncio.timeout(SAYS_WITHIN if self._handshake.hint else None):
                reply = await self._calls.make(self, "get_login_info", {})
        except (TransportError, TimeoutError) as error:
            logger.warning("a OneBot server does not say whose it is: %s", error)
            return 0
        return read_account(reply.data)

    async def _check_health(self) -> None:
        await self._resolver.joined.wait()
        await self._health.refresh()


class HeartbeatTimeout:
    """A connection's limit between heartbeats; `seconds` is 0 until an interval is known."""

    def __init__(self) -> None:
        self._interval = 0.0
        self._slack = 1

    @property
    def seconds(self) -> float:
        """The longest normal silence."""
        return max(SHORTEST, MISSED * self._interval) * self._slack if self._interval else 0.0

    def beat(self, interval: float) -> bool:
        """Store the interval of a heartbeat, in seconds. Returns whether it is valid."""
        if interval > 0:
            self._interval = interval
        return interval > 0

    def missed(self) -> None:
        """Double the timeout, so that a live but slow server is not asked each time."""
        self._slack = min(2 * self._slack, MOST_SLACK)


class ConnectionHealth:
    """Watches the health of one connection, `peer`, and reports it to `peers` and the log."""

    def __init__(
        self, peer: Peer, *, peers: PeerRegistry, calls: OneBotCalls, clock: Clock
    ) -> None:
        self._peer = peer
        self._peers = peers
        self._calls = calls
        self._clock = clock
        self._beat = asyncio.Event()
        self._timeout = HeartbeatTimeout()

    def observe(self, event: Event) -> None:
        match event:
            case Heartbeat():
                self._note_heartbeat(event)
            case AccountChanged():
                self._note_online(online=event.online, reason=event.reason)
            case _:
                pass

    def _note_heartbeat(self, beat: Heartbeat) -> None:
        logger.debug("account %d: heartbeat, online %s", beat.self_id, beat.online)
        if beat.online is not None:
            self._note_online(online=beat.online, reason="says its heartbeat")
        if self._timeout.beat(beat.interval):
            self._beat.set()

    def _note_online(self, *, online: bool, reason: str) -> None:
        account = self._peer.account
        if not self._peers.set_online(account, online=online):
            return
        if online:
            logger.info("account %d is online again", account)
        else:
            # The socket stays open, and sends fail until the operator logs in (onebot.md 3.4).
            logger.error(
                "account %d is offline (%s): log it in again at the OneBot server", account, reason
            )

    async def watch_heartbeats(self) -> None:
        """Ask for the status whenever heartbeats stop. Runs until cancelled."""
        while True:
            await self._beat.wait()
            self._beat.clear()
            silence = self._timeout.seconds
            await self._clock.sleep(silence)
            if not self._beat.is_set():
                logger.warning(
                    "account %d: no heartbeat for %.0f s, is it alive?",
                    self._peer.account,
                    silence,
                )
                self._timeout.missed()
                await self._ask_for_status()

    async def refresh(self) -> None:
        """Ask whether QQ is logged in, and for the server's name for the status page."""
        await self._ask_for_status()
        about = await self._ask("get_version_info")
        name = f"{about.get('app_name') or ''} {about.get('app_version') or ''}".strip()
        if name:
            self._peers.set_server(self._peer.account, name)

    async def _ask_for_status(self) -> None:
        """Needed because some servers send no heartbeats, and the first may take half a minute."""
        online = (await self._ask("get_status")).get("online")
        if isinstance(online, bool):
            self._note_online(online=online, reason="says its status")

    async def _ask(self, question: str) -> Mapping[str, Any]:
        """The fields of the reply; empty if the connection takes no calls, or the server does not
        know the action or does not answer.
        """
        if self._peer.role is Role.EVENT or not self._peer.account:
            return {}
        try:
            reply = await self._calls.make(self._peer, question, {})
        except TransportError as error:
            logger.debug("account %d: %s", self._peer.account, error)
            return {}
        return reply.data if reply.ok and isinstance(reply.data, Mapping) else {}
