"""One socket, from its first frame to its last, whoever dialled whom.

Events reach the sink in the order they came. Whatever a frame holds, the next one is read.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Mapping
from typing import Any, Final

from websockets.asyncio.connection import Connection as Socket
from websockets.exceptions import ConnectionClosed
from websockets.protocol import State

from adapters.onebot.calls import Calls
from adapters.onebot.peers import Peers, Role
from adapters.onebot.protocol import Reply, read_account, read_frame
from bot.domain.errors import NotConnected, TransportError
from bot.domain.events import AccountChanged, Event, Heartbeat
from bot.domain.ports import Clock, EventSink

logger = logging.getLogger(__name__)

# The library's own log. Below WARNING it writes headers and urls, tokens included, and what people say.
socket_logger: Final = logging.getLogger(f"{__name__}.socket")
socket_logger.setLevel(logging.WARNING)

PING_EVERY: Final = 30.0  # seconds
PONG_WITHIN: Final = 60.0  # seconds; a pong waits behind a large frame
CLOSE_WITHIN: Final = 3.0  # seconds
INTRODUCED_WITHIN: Final = 5.0  # seconds until we ask who it is
MISSED_HEARTBEATS: Final = 3

# asyncio's transport (3.11) raises AttributeError when the library aborts one that closed with data in its buffer.
_GONE: Final = (ConnectionClosed, AttributeError)


class Connection:
    """A `Peer`. `account` 0 means unknown: it is learnt from the first event, or asked for after 5 s."""

    def __init__(
        self,
        socket: Socket,
        *,
        sink: EventSink,
        peers: Peers,
        calls: Calls,
        clock: Clock,
        role: Role = Role.UNIVERSAL,
        account: int = 0,
        introduced_within: float = INTRODUCED_WITHIN,
    ) -> None:
        self._socket = socket
        self._sink = sink
        self._peers = peers
        self._calls = calls
        self._clock = clock
        self._role = role
        self._account = account
        self._introduced_within = introduced_within
        self._introduced = asyncio.Event()
        self._beat = asyncio.Event()
        self._silence = 0.0  # seconds without a heartbeat that are worth a warning
        self._warned_of_account = False
        self._bad_token = False

    @property
    def account(self) -> int:
        """Whose connection this is; 0 until it is known."""
        return self._account

    @property
    def role(self) -> Role:
        """What it is for."""
        return self._role

    @property
    def is_open(self) -> bool:
        """Whether a frame can be written now."""
        return self._socket.state is State.OPEN

    @property
    def bad_token(self) -> bool:
        """Whether the server said that it does not take our token."""
        return self._bad_token

    async def run(self) -> None:
        """Read until the socket closes. Raises nothing."""
        async with asyncio.TaskGroup() as self._tasks:
            if self._account:
                self._join(self._account)
            waiting = [self._tasks.create_task(work) for work in (self._attend(), self._get_to_know())]
            try:
                await self._pump()
            finally:
                self._peers.leave(self)
                for task in waiting:
                    task.cancel()
        level = logging.INFO if self._account else logging.DEBUG
        logger.log(level, "account %d: connection closed (%s)", self._account, self._socket.close_code)

    async def send(self, frame: bytes) -> None:
        """Put one text frame on the wire. Raises NotConnected if the connection is closed already."""
        if not self.is_open:
            raise NotConnected(f"the connection of account {self._account} closed before the frame was written")
        # The library writes before it awaits. Closed while draining means: written, and the answer may yet come.
        with contextlib.suppress(*_GONE):
            await self._socket.send(frame, text=True)

    async def close(self, reason: str) -> None:
        """Say goodbye and wait for the other side's, at most 3 s."""
        with contextlib.suppress(*_GONE):
            await self._socket.close(reason=reason)

    # --- frames ---------------------------------------------------------------------------------------

    async def _pump(self) -> None:
        while True:
            try:
                # Bytes, so that a text frame of bad UTF-8 is our affair and not the end of the connection.
                frame = await self._socket.recv(decode=False)
            except ConnectionClosed:
                return
            try:
                await self._take(frame)
            except Exception:
                logger.exception("account %d: a frame of %d bytes was not handled", self._account, len(frame))

    async def _take(self, frame: bytes) -> None:
        match read_frame(frame, account=self._account, now=self._clock.now()):
            case None:
                logger.debug("ignored a frame of %d bytes that is not OneBot", len(frame))
            case Reply() as reply:
                self._answer(reply)
            case event:
                self._note(event)
                await self._sink.handle(event)

    def _answer(self, reply: Reply) -> None:
        if reply.is_bad_token:
            self._bad_token = True
        elif reply.echo or reply.ok:
            self._calls.answer(reply)
        else:
            logger.warning(
                "the OneBot server refused a frame it could not place: %d %.100s", reply.retcode, reply.wording
            )

    # --- what a connection learns from its events -----------------------------------------------------

    def _note(self, event: Event) -> None:
        if event.self_id != self._account:
            self._meet(event.self_id)
        match event:
            case Heartbeat(self_id=self._account):
                self._note_heartbeat(event)
            case AccountChanged(self_id=self._account):
                self._note_online(online=event.online, reason=event.reason)
            case _:
                pass

    def _meet(self, account: int) -> None:
        if self._account == 0 and account:
            self._join(account)
        elif account and not self._warned_of_account:
            self._warned_of_account = True
            logger.warning("the connection of account %d brings events of account %d", self._account, account)

    def _join(self, account: int) -> None:
        self._account = account
        self._introduced.set()
        replaced = self._peers.join(self)
        logger.info("account %d is connected (%s)", account, self._role)
        if replaced is not None:
            logger.warning(
                "account %d connected once more, its older connection is closed; if this repeats, the OneBot server "
                "has two entries for this bot",
                account,
            )
            self._tasks.create_task(replaced.close("replaced by a newer connection"))

    def _note_heartbeat(self, beat: Heartbeat) -> None:
        logger.debug("account %d: heartbeat, online %s", beat.self_id, beat.online)
        if beat.online is not None:
            self._note_online(online=beat.online, reason="says its heartbeat")
        if beat.interval > 0:
            self._silence = MISSED_HEARTBEATS * beat.interval
            self._beat.set()

    def _note_online(self, *, online: bool, reason: str) -> None:
        if not self._peers.hear(self._account, online=online):
            return
        if online:
            logger.info("account %d is online again", self._account)
        else:
            # Its socket stays open and sends fail until somebody logs in again (facts.md 3.4).
            logger.error("account %d is offline (%s): log it in again at the OneBot server", self._account, reason)

    # --- what a connection notices by waiting ---------------------------------------------------------

    async def _attend(self) -> None:
        if not self._account and self._role is not Role.EVENT:
            await self._learn_account()
        while True:
            await self._beat.wait()
            self._beat.clear()
            await self._clock.sleep(self._silence)
            if not self._beat.is_set():
                logger.warning("account %d: no heartbeat for %.0f s, is it alive?", self._account, self._silence)
                await self._ask_for_status()

    async def _learn_account(self) -> None:
        """Wait for the first event; a quiet server is asked."""
        try:
            async with asyncio.timeout(self._introduced_within):
                await self._introduced.wait()
        except TimeoutError:
            await self._ask_for_account()

    async def _ask_for_account(self) -> None:
        try:
            reply = await self._calls.make(self, "get_login_info", {})
        except TransportError as error:
            logger.warning("a OneBot server does not say whose it is: %s", error)
            return
        account = read_account(reply.data)
        if account and not self._account:
            self._join(account)

    async def _get_to_know(self) -> None:
        """Ask what it is, for whoever looks at the bot from outside, and whether QQ is logged in."""
        await self._introduced.wait()
        await self._ask_for_status()
        about = await self._ask("get_version_info")
        name = f"{about.get('app_name') or ''} {about.get('app_version') or ''}".strip()
        if name:
            self._peers.name(self._account, name)

    async def _ask_for_status(self) -> None:
        """Not every server has heartbeats, and the first one comes half a minute after the connection."""
        online = (await self._ask("get_status")).get("online")
        if isinstance(online, bool):
            self._note_online(online=online, reason="says its status")

    async def _ask(self, question: str) -> Mapping[str, Any]:
        """The fields of its answer; none where it takes no calls, does not know the question, or says nothing."""
        if self._role is Role.EVENT or not self._account:
            return {}
        try:
            reply = await self._calls.make(self, question, {})
        except TransportError as error:
            logger.debug("account %d: %s", self._account, error)
            return {}
        return reply.data if reply.ok and isinstance(reply.data, Mapping) else {}
