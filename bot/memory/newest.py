"""A feed of news for the console: turns that began or ended, deliveries, and messages left
unanswered.

It holds numbers and names only; the console reads the rest from the journal.
"""

from __future__ import annotations

import asyncio
from collections import deque
from typing import Final

from bot.core.console_views import News
from bot.core.journal import Entry, Judged, MessageObserved, TurnClosed, TurnOpened

KEPT = 200  # for a reader that reconnects


class Newest:
    """A `JournalObserver` and `Feed`. Without readers it only counts."""

    sees: Final = frozenset({MessageObserved, Judged, TurnOpened, TurnClosed})

    def __init__(self) -> None:
        self._number = 0
        self._news: deque[News] = deque(maxlen=KEPT)
        self._changed = asyncio.Event()

    @property
    def number(self) -> int:
        return self._number

    def see(self, entry: Entry) -> None:
        match entry:
            case MessageObserved(judged=Judged(wakes=False, message_id=message_id)):
                self.add(message_id)
            case TurnOpened(turn_id=turn_id) | TurnClosed(turn_id=turn_id):
                self.add(turn_id)
            case Judged(wakes=False, message_id=message_id):
                self.add(message_id)
            case _:
                pass

    def settled(self, turn_id: str, _outcome: str) -> None:
        self.add(turn_id)

    async def after(self, number: int, *, within: float) -> tuple[News, ...]:
        """Return all news after `number`, waiting at most `within` seconds for some."""
        try:
            async with asyncio.timeout(within):
                while self._number <= number:
                    await self._changed.wait()
        except TimeoutError:
            return ()
        return tuple(one for one in self._news if one.number > number)

    def add(self, name: str) -> None:
        self._number += 1
        self._news.append(News(self._number, name))
        self._changed.set()
        self._changed = asyncio.Event()
