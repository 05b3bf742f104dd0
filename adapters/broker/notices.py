"""The notes that the bots of a cluster send each other, over an exchange that all of them hear."""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from typing import Final, NoReturn

from aio_pika import DeliveryMode, Message
from aio_pika.abc import AbstractExchange, AbstractIncomingMessage

from adapters.broker.payloads import HEADER_VERSION, VERSION, pack, unpack
from bot.domain import codec
from bot.domain.notes import Note

HEADER_ORIGIN: Final = "origin"
KEPT: Final = 10_000  # that wait for the broker; older ones are lost

logger = logging.getLogger(__name__)


class NoteExchange:
    """Fits `Neighbours`. `origin` is its own, of which it hears nothing."""

    def __init__(self, origin: str) -> None:
        self._origin = origin
        self.has_crier = False  # as the gateways tell it
        self._waiting: deque[Note] = deque(maxlen=KEPT)
        self._due = asyncio.Event()

    @property
    def waiting(self) -> tuple[Note, ...]:
        """The notes that are not published yet, the oldest first."""
        return tuple(self._waiting)

    def tell(self, note: Note, /) -> None:
        """Publish it, once there is a broker."""
        self._waiting.append(note)
        self._due.set()

    async def pass_on(self, exchange: AbstractExchange) -> NoReturn:
        """Publish what is told, in order. Raises aio-pika's errors."""
        while True:
            while self._waiting:
                body = pack(self._waiting[0])
                note = Message(
                    body,
                    headers={HEADER_VERSION: VERSION, HEADER_ORIGIN: self._origin},
                    content_type="application/json",
                    delivery_mode=DeliveryMode.NOT_PERSISTENT,
                )
                await exchange.publish(note, "", mandatory=False)
                self._waiting.popleft()
            self._due.clear()
            await self._due.wait()

    def read(self, message: AbstractIncomingMessage) -> Note | None:
        """The note of another bot; None for one of its own, and for what cannot be read."""
        if message.headers.get(HEADER_ORIGIN) == self._origin:
            return None
        try:
            note: Note = unpack(Note, message.body, message.headers.get(HEADER_VERSION))
        except codec.Unreadable:
            logger.exception("a note of another bot cannot be read")
            return None
        return note
