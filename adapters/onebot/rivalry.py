"""Two connections for one account and role: which of them stays.

The newest wins: a OneBot server that dials again has lost its old connection, which may look alive
here for minutes (half-open TCP, onebot.md 1.9). But two entries for this bot in one OneBot server
dial in turns for ever, each throwing the other one out. So where a connection has been challenged
lately, it stays if it answers a ping at once, and the newer one is refused, until the older one is
gone or its account offline.

That the newest wins is decided: who has the token is the OneBot server, and whoever else has it
could answer in its name anyway. A token of one account alone (`10001:token`) lets no other in.
"""

from __future__ import annotations

import math
from collections.abc import Hashable
from typing import Final, Protocol

from cachetools import LRUCache

LATELY: Final = 300.0  # seconds; servers dial again after 3 to 30
ANSWERS_WITHIN: Final = 1.5  # seconds; NapCat waits 2 for its upgrade, and nobody waits for this
TOLD_AGAIN: Final = 3600.0  # seconds
REMEMBERED: Final = 256


class Rival(Protocol):
    """A connection that can be asked whether it lives."""

    async def is_alive(self, within: float) -> bool: ...


class Rivalry:
    """The challenges between connections of this process, and the warnings given of them."""

    def __init__(self) -> None:
        self._challenged: LRUCache[Hashable, float] = LRUCache(REMEMBERED)
        self._told: LRUCache[Hashable, float] = LRUCache(REMEMBERED)

    async def keeps(
        self, place: Hashable, older: Rival, *, online: bool | None, now: float
    ) -> bool:
        """Whether the older connection at that place stays; `now` is monotonic, `online` what it
        said of itself.
        """
        last = self._challenged.get(place, -math.inf)
        self._challenged[place] = now
        if online is False or now - last > LATELY:
            return False
        return await older.is_alive(ANSWERS_WITHIN)

    def is_news(self, what: Hashable, *, now: float) -> bool:
        """Whether this was not told within the last hour; asking counts as telling."""
        last = self._told.get(what, -math.inf)
        if now - last <= TOLD_AGAIN:
            return False
        self._told[what] = now
        return True
