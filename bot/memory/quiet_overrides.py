"""Quiet by command: for a while, or silence until it is lifted."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TypeAlias

from msgspec import Struct

from bot.core.cluster_messages import ClusterPeers
from bot.core.ports import Store
from bot.core.query_results import Choices
from bot.memory.kept_settings import KeptSettings
from frostagent.types.conversation import Conversation
from frostagent.types.ports import Clock

IsHour: TypeAlias = Callable[[Conversation, float], bool]
"""Whether the settings have it quiet there at that time (seconds since 1970)."""

End: TypeAlias = Callable[[Conversation], float]
"""When it is quiet there no more, by wishes and settings; 0 where that is never."""

SETTING = "hush"
MUTE = "mute"


class QuietOverride(Struct, frozen=True):
    """Silence (`is_mute`), or quiet until then (seconds since 1970)."""

    is_mute: bool
    until: float = math.inf

    def __str__(self) -> str:
        return MUTE if self.is_mute else f"{self.until:.0f}"


class QuietOverrides(KeptSettings[QuietOverride]):
    """Keeps overrides by conversation, over restarts."""

    def __init__(
        self,
        *,
        store: Store,
        choices: Choices,
        clock: Clock,
        neighbours: ClusterPeers | None = None,
    ) -> None:
        super().__init__(
            SETTING,
            read=_read,
            store=store,
            choices=choices,
            clock=clock,
            neighbours=neighbours,
        )

    def of(self, where: Conversation) -> QuietOverride | None:
        """The wish that holds there; None where nobody wishes anything."""
        if not self._values:
            return None
        wish = self._values.get(where)
        return None if wish is None or wish.until <= self._clock.now() else wish

    @property
    def muted(self) -> tuple[Conversation, ...]:
        """Where it is to say nothing."""
        return tuple(where for where, wish in self._values.items() if wish.is_mute)

    async def keep(self, where: Conversation, wish: QuietOverride) -> bool:
        """Keep to this there from now on. False where that cannot be written down now: nothing is
        changed then.
        """
        return await self._commit(where, wish, str(wish))

    async def end(self, where: Conversation) -> bool:
        """Nobody wishes anything there any more. False as for `keep`."""
        return await self._commit(where, QuietOverride(is_mute=False, until=0.0), "")


def _read(value: str) -> QuietOverride | None:
    """The wish as written; None for what nobody understands any more."""
    if value == MUTE:
        return QuietOverride(is_mute=True)
    return QuietOverride(is_mute=False, until=float(value)) if value.isdecimal() else None
