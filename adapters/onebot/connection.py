"""One socket, from its first frame to its last, whoever dialled whom.

Events reach the sink in the order they came. Whatever a frame holds, the next one is read. A
connection is of one account: what it brings of another is dropped, and it answers for no other.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections import deque
from collections.abc import Collection, Mapping
from typing import Any, Final

from websockets.asyncio.connection import Connection as Socket
from websockets.exceptions import ConnectionClosed
from websockets.frames import CloseCode
from websockets.protocol import State

from adapters.onebot.calls import Calls
from adapters.onebot.heartbeats import Patience
from adapters.onebot.identity import Identity, Source
from adapters.onebot.peers import Peers, Role
from adapters.onebot.protocol import Reply, read_account, read_frame
from bot.domain.errors import NotConnected, TransportError
from bot.domain.events import AccountChanged, Connected, Event, Heartbeat
from bot.domain.ports import Clock, EventSink

logger = logging.getLogger(__name__)

# The library's own log. Below WARNING it writes headers and urls, tokens included, and what people
# say.
socket_logger: Final = logging.getLogger(f"{__name__}.socket")
socket_logger.setLevel(logging.WARNING)

PING_EVERY: Final = 30.0  # seconds
PONG_WITHIN: Final = 60.0  # seconds; a pong waits behind a large frame
CLOSE_WITHIN: Final = 3.0  # seconds
INTRODUCED_WITHIN: Final = 1.0  # seconds until we ask who it is; servers that say so do it at once
SAYS_WITHIN: Final = 5.0  # seconds until we believe its header instead

_TURNED_AWAY: Final = {
    "is connected already": "account %d dialled again while its connection lives, and is refused: its OneBot server has"
    " two entries for this bot (in NapCat two websocket clients); remove one",
    "needs its own token": "refused a connection for account %d: ONEBOT_ACCESS_TOKEN has a token for this account, give"
    " its OneBot server that one",
}

HELD: Final = 50  # frames

# asyncio's transport (3.11) raises AttributeError when the library aborts one that closed with data
# in its buffer.
_GONE: Final = (ConnectionClosed, AttributeError)


class Connection:
    """A `Peer`. `account` 0 means unknown: its events say it, or get_login_info does; `hint`, its
    header, only where nobody does. With `bound` its token belongs to that account, and it is of no
    other; `reserved` are the accounts that have such a token, which others cannot be.
    """

    def __init__(
        self,
        socket: Socket,
        *,
        sink: EventSink,
        peers: Peers,
        calls: Calls,
        clock: Clock,
        role: Role = Role.UNIVERSAL,
        hint: int = 0,
        bound: int = 0,
        reserved: Collection[int] = (),
        introduced_within: float = INTRODUCED_WITHIN,
    ) -> None:
        self._socket = socket
        self._sink = sink
        self._peers = peers
        self._calls = calls
        self._clock = clock
        self._role = role
        self._hint = hint
        self._bound = bound
        self._reserved = reserved
        self._introduced_within = introduced_within
        self._identity = Identity()
        self._claiming = asyncio.Lock()
        self._asked_for = asyncio.Event()  # its account is known, or is to be asked for at once
        self._held: deque[bytes] = deque(
            maxlen=HELD
        )  # events that name no account while none is known
        self._introduced = asyncio.Event()
        self._beat = asyncio.Event()
        self._patience = Patience()
        self._has_spoken = False
        self._said_hello = False
        self._is_turned_away = False
        self._bad_token = False

    @property
    def account(self) -> int:
        """Whose connection this is; 0 until it is known."""
        return self._identity.account

    @property
    def is_introduced(self) -> bool:
        """Whether the other side itself has said whose it is."""
        return self.account != 0 and (self._identity.source is not Source.TOKEN or self._has_spoken)

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
            await self._claim(self._bound, Source.TOKEN)
            waiting = [
                self._tasks.create_task(work) for work in (self._attend(), self._get_to_know())
            ]
            try:
                await self._pump()
            finally:
                self._peers.leave(self)
                self._calls.gone(self)
                for task in waiting:
                    task.cancel()
        level = logging.INFO if self.account else logging.DEBUG
        logger.log(
            level, "account %d: connection closed (%s)", self.account, self._socket.close_code
        )

    async def send(self, frame: bytes) -> None:
        """Put one text frame on the wire. Raises NotConnected if the connection is closed
        already.
        """
        if not self.is_open:
            raise NotConnected(
                f"the connection of account {self.account} closed before the frame was written"
            )
        # The library writes before it awaits. Closed while draining means: written, and the answer
        # may yet come.
        with contextlib.suppress(*_GONE):
            await self._socket.send(frame, text=True)

    async def close(self, reason: str, *, code: CloseCode = CloseCode.NORMAL_CLOSURE) -> None:
        """Say goodbye and wait for the other side's, at most 3 s."""
        with contextlib.suppress(*_GONE):
            await self._socket.close(code, reason)

    async def is_alive(self, within: float) -> bool:
        """Whether the other side answers a ping within so many seconds."""
        try:
            async with asyncio.timeout(within):
                await (await self._socket.ping())
        except (TimeoutError, *_GONE):
            return False
        return True

    # --- frames ---------------------------------------------------------------------------------------

    async def _pump(self) -> None:
        while not self._is_turned_away:
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
        if self._hint and not (read is None or isinstance(read, Reply) or read.self_id):
            await self._claim(
                self._hint, Source.HEADER
            )  # its events name nobody: all we will ever know
            read = read_frame(frame, account=self.account, now=self._clock.now())
        match read:
            case None:
                logger.debug("ignored a frame of %d bytes that is not OneBot", len(frame))
            case Reply() as reply:
                self._answer(reply)
            case event if event.self_id == 0:
                self._held.append(
                    frame
                )  # nobody could be answered; it is asked for at once whose it is
                self._asked_for.set()
            case event if await self._is_ours(event):
                self._note(event)
                if not self._is_first_hello(event):
                    await self._sink.handle(event)
            case _:
                pass

    def _answer(self, reply: Reply) -> None:
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

    # --- whose it is ----------------------------------------------------------------------------------

    async def _is_ours(self, event: Event) -> bool:
        """Whether this is an event of the connection's account, which the first one decides."""
        if not self._identity.is_settled:
            await self._claim(event.self_id, Source.EVENT)
        if event.self_id == self.account:
            return True
        if not self._is_turned_away and self._is_news("brings", event.self_id):
            logger.warning(
                "the connection of account %d brings events of account %d, which are dropped: let each account have a"
                " connection of its own",
                self.account,
                event.self_id,
            )
        return False

    async def _claim(self, account: int, source: Source) -> None:
        """Believe who says whose it is, unless the place is taken or not for this one: then it is
        turned away.
        """
        async with self._claiming:
            if not self._identity.is_news(account, source):
                self._identity.learn(account, source)
            elif account in self._reserved and account != self._bound:
                await self._turn_away(account, "needs its own token")
            elif await self._peers.has_place(account, self._role, now=self._clock.monotonic()):
                if self.account:
                    self._peers.leave(self)
                self._identity.learn(account, source)
                await self._join()
            else:
                await self._turn_away(account, "is connected already")

    async def _join(self) -> None:
        self._asked_for.set()
        self._introduced.set()
        replaced = self._peers.join(self)
        logger.info("account %d is connected (%s)", self.account, self._role)
        if replaced is not None:
            logger.info(
                "account %d connected once more, its older connection is closed", self.account
            )
            self._tasks.create_task(replaced.close("replaced by a newer connection"))
        if self._peers.takes_calls(self.account):
            await self._say_connected()

    async def _say_connected(self) -> None:
        """Whoever waits for the account can go on, also where the server greets nobody here, as on
        go-cqhttp's /api.
        """
        try:
            await self._sink.handle(
                Connected(self_id=self.account, time=self._clock.now(), change="connect")
            )
        except Exception:
            logger.exception("account %d: nobody could be told that it is connected", self.account)

    def _is_first_hello(self, event: Event) -> bool:
        """Whether the server greets us: that the account is there, its registration has said."""
        first = isinstance(event, Connected) and not self._said_hello
        self._said_hello = self._said_hello or first
        return first

    async def _turn_away(self, account: int, reason: str) -> None:
        self._is_turned_away = True
        level = logging.WARNING if self._is_news(reason, account) else logging.DEBUG
        logger.log(level, _TURNED_AWAY[reason], account)
        await self.close(f"account {account} {reason}", code=CloseCode.TRY_AGAIN_LATER)

    def _is_news(self, what: str, account: int) -> bool:
        return self._peers.rivalry.is_news((what, account, self._role), now=self._clock.monotonic())

    # --- what a connection learns from its events -----------------------------------------------------

    def _note(self, event: Event) -> None:
        self._has_spoken = True
        self._peers.speaks(self)
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
        if self._patience.beat(beat.interval):
            self._beat.set()

    def _note_online(self, *, online: bool, reason: str) -> None:
        if not self._peers.hear(self.account, online=online):
            return
        if online:
            logger.info("account %d is online again", self.account)
        else:
            # Its socket stays open and sends fail until somebody logs in again (onebot.md 3.4).
            logger.error(
                "account %d is offline (%s): log it in again at the OneBot server",
                self.account,
                reason,
            )

    # --- what a connection notices by waiting ---------------------------------------------------------

    async def _attend(self) -> None:
        await self._learn_account()
        while True:
            await self._beat.wait()
            self._beat.clear()
            silence = self._patience.seconds
            await self._clock.sleep(silence)
            if not self._beat.is_set():
                logger.warning(
                    "account %d: no heartbeat for %.0f s, is it alive?", self.account, silence
                )
                self._patience.missed()
                await self._ask_for_status()

    async def _learn_account(self) -> None:
        """Wait for the first event; a server that sends none is asked, and its header believed
        where it says nothing.

        Where only calls are taken, no event ever comes.
        """
        if self._role is not Role.API:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(self._introduced_within):
                    await self._asked_for.wait()
        if self.account == 0 and self._role is not Role.EVENT:
            await self._claim(await self._ask_for_account(), Source.ANSWER)
        await self._claim(self._hint, Source.HEADER)
        while self._held and self.account:
            await self._take_guarded(self._held.popleft())

    async def _ask_for_account(self) -> int:
        try:
            async with asyncio.timeout(SAYS_WITHIN if self._hint else None):
                reply = await self._calls.make(self, "get_login_info", {})
        except (TransportError, TimeoutError) as error:
            logger.warning("a OneBot server does not say whose it is: %s", error)
            return 0
        return read_account(reply.data)

    async def _get_to_know(self) -> None:
        """Ask what it is, for whoever looks at the bot from outside, and whether QQ is logged
        in.
        """
        await self._introduced.wait()
        await self._ask_for_status()
        about = await self._ask("get_version_info")
        name = f"{about.get('app_name') or ''} {about.get('app_version') or ''}".strip()
        if name:
            self._peers.name(self.account, name)

    async def _ask_for_status(self) -> None:
        """Not every server has heartbeats, and the first one comes half a minute after the
        connection.
        """
        online = (await self._ask("get_status")).get("online")
        if isinstance(online, bool):
            self._note_online(online=online, reason="says its status")

    async def _ask(self, question: str) -> Mapping[str, Any]:
        """The fields of its answer; none where it takes no calls, does not know the question, or
        says nothing.
        """
        if self._role is Role.EVENT or not self.account:
            return {}
        try:
            reply = await self._calls.make(self, question, {})
        except TransportError as error:
            logger.debug("account %d: %s", self.account, error)
            return {}
        return reply.data if reply.ok and isinstance(reply.data, Mapping) else {}
