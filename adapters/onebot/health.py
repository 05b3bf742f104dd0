"""Whether the account of a connection is online and its server alive, from heartbeats and other
events, and by asking if there are none.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from typing import Any, Final

from adapters.onebot.calls import OneBotCalls
from adapters.onebot.peers import Peer, PeerRegistry, Role
from bot.domain.errors import TransportError
from bot.domain.events import AccountChanged, Event, Heartbeat
from bot.domain.ports import Clock

MISSED: Final = 3  # heartbeats
SHORTEST: Final = 5.0  # seconds; a server that beats every second may be busy for one
MOST_SLACK: Final = 64


class HeartbeatTimeout:
    """How long one connection may go without a heartbeat; `seconds` is 0 until the server has
    announced an interval.
    """

    def __init__(self) -> None:
        self._interval = 0.0
        self._slack = 1

    @property
    def seconds(self) -> float:
        """The longest silence that is still normal."""
        return max(SHORTEST, MISSED * self._interval) * self._slack if self._interval else 0.0

    def beat(self, interval: float) -> bool:
        """Store the interval a heartbeat announces, in seconds. Returns whether it is valid."""
        if interval > 0:
            self._interval = interval
        return interval > 0

    def missed(self) -> None:
        """Double the timeout: a live server that beats slower than it announces is not to be asked
        every time.
        """
        self._slack = min(2 * self._slack, MOST_SLACK)


logger = logging.getLogger(__name__)


class ConnectionHealth:
    """Watches the health of one connection, `peer`; reports it to `peers` and to the log."""

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
        """Take the health from an event of the account."""
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
            # Its socket stays open and sends fail until somebody logs in again (onebot.md 3.4).
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
        """Ask whether QQ is logged in, and for the server's name, which the status page shows."""
        await self._ask_for_status()
        about = await self._ask("get_version_info")
        name = f"{about.get('app_name') or ''} {about.get('app_version') or ''}".strip()
        if name:
            self._peers.set_server(self._peer.account, name)

    async def _ask_for_status(self) -> None:
        """Not every server has heartbeats, and the first one comes half a minute after the
        connection.
        """
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
