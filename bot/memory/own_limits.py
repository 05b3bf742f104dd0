"""The limits of a day that owners set by command for a person or a group, over restarts.

They stand in one row that belongs to no conversation: nothing that anybody may have erased or
changed there lifts one.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Final, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from bot.domain import codec
from bot.domain.books import Choices
from bot.domain.events import Conversation
from bot.domain.journal import PlaceSet
from bot.domain.ports import Clock, Store
from bot.policy.limits import OwnCap

SETTING: Final = "limits"
NOWHERE: Final = Conversation(0, "private", 0)

Holder: TypeAlias = int | Conversation
"""Whose limit: a person's, or a group's."""


class Own(Struct, frozen=True):
    """What was set for good, and what for a day that ends then (seconds since 1970)."""

    good: OwnCap | None = None
    today: OwnCap | None = None
    until: float = 0.0

    def at(self, now: float) -> OwnCap | None:
        """The one that holds at that time."""
        return self.today if self.today is not None and now < self.until else self.good


class OwnLimits:
    """Keeps them."""

    def __init__(self, *, store: Store, choices: Choices, clock: Clock) -> None:
        self._store = store
        self._choices = choices
        self._clock = clock
        self._kept: dict[Holder, Own] = {}
        self._is_read = False
        self._writing = asyncio.Lock()

    async def start(self) -> bool:
        """Read them, unless that was done; False where they cannot be read now."""
        if self._is_read:
            return True
        if (stored := await self._choices.settings(SETTING)) is None:
            return False
        read: dict[str, Own] = codec.read(dict[str, Own], stored.get(NOWHERE) or "{}")
        self._kept = {_holder(key): own for key, own in read.items()}
        self._is_read = True
        return True

    def of(self, whose: Holder) -> OwnCap | None:
        """What holds for them now; None where that is the usual."""
        own = self._kept.get(whose) if self._kept else None
        return own.at(self._clock.now()) if own is not None else None

    @property
    def are_some(self) -> bool:
        """Whether there is any."""
        return bool(self._kept)

    def all(self) -> Mapping[Holder, OwnCap]:
        """All that hold now."""
        now = self._clock.now()
        return {whose: cap for whose, own in self._kept.items() if (cap := own.at(now)) is not None}

    async def keep(self, whose: Holder, cap: OwnCap | None, *, until: float = 0.0) -> bool:
        """Keep to this up to `until` (seconds since 1970), or for good; None: to the usual. False
        where that cannot be written down now: nothing is changed then.
        """
        async with self._writing:
            if not self._is_read:
                return False
            before = self._kept.get(whose, Own())
            own = replace(before, today=cap, until=until) if until else Own(cap)
            now = self._clock.now()
            kept = {
                one: own
                for one, own in {**self._kept, whose: own}.items()
                if own.good is not None or own.at(now) is not None
            }
            value = codec.write({str(one): own for one, own in kept.items()})
            if not await self._store.commit(PlaceSet(NOWHERE, SETTING, value)):
                return False
            self._kept = kept
            return True


def _holder(key: str) -> Holder:
    return int(key) if key.isdecimal() else Conversation.parse(key)
