"""Where what has come to a bot waits for it, in order."""

from __future__ import annotations

import asyncio
from collections import deque
from typing import Final, TypeAlias

from adapters.broker.payloads import HEADER_GATEWAY
from adapters.broker.whereabouts import Whereabouts
from adapters.broker.wire import Delivered, headers_of
from bot.domain.events import Connected, MessageLost
from bot.domain.notes import Alarmed, Note
from bot.domain.ports import Clock

INTRODUCED_WITHIN: Final = 1.5  # seconds in which every gateway says something, an older one too

Come: TypeAlias = Delivered | Connected | MessageLost | Note | None


class Hall:
    """An event waits until its gateway has said who is there, for a while after the connection has
    begun: an account comes before what it says, as it does over a socket, and how long an event has
    waited is told by its gateway's clock. So does an alarm, until all have: it is for one bot.
    """

    def __init__(self, where: Whereabouts, clock: Clock) -> None:
        self._where = where
        self._clock = clock
        self._come: asyncio.Queue[Come] = asyncio.Queue()
        self._held: deque[Delivered] = deque()
        self._alarms: list[Alarmed] = []
        self._is_open = False

    def put(self, *come: Connected | MessageLost | Note | None) -> None:
        """Take in whatever is no event."""
        for one in come:
            if isinstance(one, Alarmed) and not self._is_open:
                self._alarms.append(one)
            else:
                self._come.put_nowait(one)

    async def take_in(self, event: Delivered) -> None:
        """An event, behind those that came before it."""
        self._held.append(event)
        self.let_in()

    def let_in(self) -> None:
        """Somebody may have said who is there."""
        while self._held and (self._is_open or self._is_known(self._held[0])):
            self._come.put_nowait(self._held.popleft())

    async def open(self) -> None:
        """Let everybody in, after a while."""
        await self._clock.sleep(INTRODUCED_WITHIN)
        self._is_open = True
        self.put(*self._alarms)
        self.let_in()

    async def next(self) -> Come:
        """The first of it all, once there is something."""
        return await self._come.get()

    def _is_known(self, event: Delivered) -> bool:
        return self._where.has(str(headers_of(event).get(HEADER_GATEWAY)))
