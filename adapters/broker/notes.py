"""Announcements between the bots of a cluster, over a fanout exchange."""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from typing import Final, NoReturn

from aio_pika import DeliveryMode, Message
from aio_pika.abc import AbstractExchange, AbstractIncomingMessage

from adapters.broker.link import BrokerLink
from adapters.broker.payloads import HEADER_VERSION, VERSION, pack, unpack
from bot.core import codec
from bot.core.other_bots import AlarmRaised, Announcement
from frostagent.types.ports import Clock

HEADER_ORIGIN: Final = "origin"
AGAIN: Final = 5.0  # seconds until an unreported alarm is published again
ENOUGH: Final = 300.0  # seconds of repetition; a bot reports an alarm at most once in ten minutes
KEPT: Final = 10_000  # announcements waiting for the broker; the oldest are dropped

logger = logging.getLogger(__name__)


class NoteExchange:
    """The `Announcer` port. `origin` is this bot, whose own announcements are ignored. An alarm is
    repeated until a bot has reported it to the owners, or has long been able to: the first receiver
    may be dead, or not started yet.
    """

    def __init__(self, origin: str) -> None:
        self._origin = origin
        self.can_alarm = False  # set by gateways' announcements
        self._waiting: deque[Announcement] = deque(maxlen=KEPT)
        self._unsaid: dict[str, AlarmRaised] = {}  # by kind
        self._sayable: dict[str, float] = {}  # by kind: since when it could be reported
        self._due = asyncio.Event()

    @property
    def waiting(self) -> tuple[Announcement, ...]:
        return tuple(self._waiting)

    @property
    def unsaid(self) -> tuple[AlarmRaised, ...]:
        """The alarms that no bot is known to have reported."""
        return tuple(self._unsaid.values())

    def tell(self, note: Announcement, /) -> None:
        """Queue an announcement, published once there is a broker."""
        if isinstance(note, AlarmRaised) and note.kind:
            self._drop(note.kind)
            if note.text:
                self._unsaid[note.kind] = note
        self._waiting.append(note)
        self._due.set()

    async def pass_on(self, exchange: AbstractExchange, link: BrokerLink) -> NoReturn:
        """Publish queued announcements in order. Raises ConnectionLost, and aio-pika's errors."""
        while True:
            while self._waiting:
                body = pack(self._waiting[0])
                note = Message(
                    body,
                    headers={HEADER_VERSION: VERSION, HEADER_ORIGIN: self._origin},
                    content_type="application/json",
                    delivery_mode=DeliveryMode.NOT_PERSISTENT,
                )
                with link.in_time():
                    await exchange.publish(note, "", mandatory=False)
                self._waiting.popleft()
            self._due.clear()
            await self._due.wait()

    async def insist(self, clock: Clock) -> NoReturn:
        """Publish alarms again until a bot has reported them."""
        while True:
            await clock.sleep(AGAIN)
            now = clock.monotonic()
            for one in self.unsaid:
                if self.can_alarm and now - self._sayable.setdefault(one.kind, now) > ENOUGH:
                    self._drop(one.kind)  # the reporting bot's message is unreadable here
                elif one not in self._waiting:
                    self._waiting.append(one)
            self._due.set()

    def _drop(self, kind: str) -> None:
        self._unsaid.pop(kind, None)
        self._sayable.pop(kind, None)

    def read(self, message: AbstractIncomingMessage) -> Announcement | None:
        """Read another bot's announcement; None for its own and for an unreadable one."""
        if message.headers.get(HEADER_ORIGIN) == self._origin:
            return None
        try:
            note: Announcement = unpack(
                Announcement, message.body, message.headers.get(HEADER_VERSION)
            )
        except codec.Unreadable:
            logger.exception("a note of another bot cannot be read")
            return None
        if isinstance(note, AlarmRaised) and not note.text:
            self._drop(note.kind)
        return note
