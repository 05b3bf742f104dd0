"""Where people told the bot to keep quiet for a while, or to say nothing until it may again."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import TypeAlias

from msgspec import Struct

from bot.domain.books import Choices
from bot.domain.events import Conversation
from bot.domain.journal import PlaceSet
from bot.domain.ports import Clock, Store

IsHour: TypeAlias = Callable[[Conversation, float], bool]
"""Whether the settings have it quiet there at that time (seconds since 1970)."""

LOOK = 2.0  # seconds between two looks at what could not be read
SETTING = "hush"
MUTE = "mute"


class Wish(Struct, frozen=True):
    """Silence (`is_mute`), or quiet until then (seconds since 1970)."""

    is_mute: bool
    until: float = math.inf

    def __str__(self) -> str:
        return MUTE if self.is_mute else f"{self.until:.0f}"


class Wishes:
    """Keeps them, over restarts."""

    def __init__(self, *, store: Store, choices: Choices, clock: Clock) -> None:
        self._store = store
        self._choices = choices
        self._clock = clock
        self._kept: dict[Conversation, Wish] = {}
        self._is_read = False

    async def start(self) -> bool:
        """Read what was asked for before; False where it cannot be read: `run` goes on trying."""
        if (stored := await self._choices.settings(SETTING)) is None:
            return False
        self._kept = {**_read(stored), **self._kept}
        self._is_read = True
        return True

    async def run(self) -> None:
        """Read it once that can be done, unless it was."""
        while not self._is_read:
            await self._clock.sleep(LOOK)
            await self.start()

    def of(self, where: Conversation) -> Wish | None:
        """What holds there; None where nobody wishes anything."""
        if not self._kept:
            return None
        wish = self._kept.get(where)
        return None if wish is None or wish.until <= self._clock.now() else wish

    @property
    def muted(self) -> tuple[Conversation, ...]:
        """Where it is to say nothing."""
        return tuple(where for where, wish in self._kept.items() if wish.is_mute)

    async def keep(self, where: Conversation, wish: Wish) -> bool:
        """Keep to this there from now on. False where that cannot be written down now: nothing is
        changed then.
        """
        return await self._set(where, wish, str(wish))

    async def end(self, where: Conversation) -> bool:
        """Nobody wishes anything there any more. False as for `keep`."""
        return await self._set(where, Wish(is_mute=False, until=0.0), "")

    async def _set(self, where: Conversation, wish: Wish, value: str) -> bool:
        if not await self._store.commit(PlaceSet(where, SETTING, value)):
            return False
        self._kept[where] = wish
        return True


def _read(stored: Mapping[Conversation, str]) -> dict[Conversation, Wish]:
    """What was written; what nobody understands any more is no wish."""
    return {
        where: Wish(is_mute=True) if value == MUTE else Wish(is_mute=False, until=float(value))
        for where, value in stored.items()
        if value == MUTE or value.isdecimal()
    }
