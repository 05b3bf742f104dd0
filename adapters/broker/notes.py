"""Notes that the bots of a cluster send each other, over a fanout exchange."""

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
ENOUGH: Final = 300.0  # seconds of repeating; after ten minutes a bot would report it again
KEPT: Final = 10_000  # notes that wait for the broker; older ones are dropped

logger = logging.getLogger(__name__)


class NoteExchange:
    """Fits `Announcer`. `origin` is its own, of which it hears nothing. An alarm for whoever can
    reach the owners is told until somebody has said it, or could for long enough: its hearer may be
    dead, or not there yet.
    """

    def __init__(self, origin: str) -> None:
        self._origin = origin
        self.can_alarm = False  # as the gateways tell it
        self._waiting: deque[Announcement] = deque(maxlen=KEPT)
        self._unsaid: dict[str, AlarmRaised] = {}  # by kind
        self._sayable: dict[str, float] = {}  # since when, by kind
        self._due = asyncio.Event()

    @property
    def waiting(self) -> tuple[Announcement, ...]:
        """The notes that are not published yet, the oldest first."""
        return tuple(self._waiting)

    @property
    def unsaid(self) -> tuple[AlarmRaised, ...]:
        """The alarms that nobody has said yet, as far as is known here."""
        return tuple(self._unsaid.values())

    def tell(self, note: Announcement, /) -> None:
        """Publish it, once there is a broker."""
        if isinstance(note, AlarmRaised) and note.kind:
            self._drop(note.kind)
            if note.text:
                self._unsaid[note.kind] = note
        self._waiting.append(note)
        self._due.set()

    async def pass_on(self, exchange: AbstractExchange, link: BrokerLink) -> NoReturn:
        """Publish queued notes in order. Raises ConnectionLost, and aio-pika's errors."""
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
                    self._drop(one.kind)  # whoever has said it writes as nobody here can read
                elif one not in self._waiting:
                    self._waiting.append(one)
            self._due.set()

    def _drop(self, kind: str) -> None:
        self._unsaid.pop(kind, None)
        self._sayable.pop(kind, None)

    def read(self, message: AbstractIncomingMessage) -> Announcement | None:
        """The note of another bot; None for one of its own, and for what cannot be read."""
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
