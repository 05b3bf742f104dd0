"""Events that come before the bot is ready for them wait; their connections are taken meanwhile."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any

from bot.domain.events import Event
from bot.domain.ports import EventSink


class Gate:
    """An `EventSink` that is shut until it is opened; what waits goes through in the order of its
    connection.
    """

    def __init__(self, sink: EventSink) -> None:
        self._sink = sink
        self._is_open = asyncio.Event()

    def open(self) -> None:
        """Let everything through, from now on."""
        self._is_open.set()

    async def opened(self) -> None:
        """Return once it is open."""
        await self._is_open.wait()

    def handle(self, event: Event) -> Coroutine[Any, Any, None]:
        """Hand it on, as soon as that may be."""
        return self._sink.handle(event) if self._is_open.is_set() else self._hold(event)

    async def _hold(self, event: Event) -> None:
        await self._is_open.wait()
        await self._sink.handle(event)
