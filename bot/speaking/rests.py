"""Places where QQ takes nothing of the bot and nothing it could do would change that: it was
removed from the group, or the person is no friend of it. No model is asked there until there is a
sign of life.
"""

from __future__ import annotations

from typing import Final

from msgspec import Struct

from bot.domain.events import Conversation
from bot.domain.ports import Clock
from bot.memory.latest import Kept

MAX_PLACES: Final = 5000
LONGEST: Final = 24 * 3600.0  # seconds after which a question may find out whether it is still so


class _Rest(Struct):
    reason: str
    until: float
    is_told: bool = False


class Rests:
    """The places that rest, and why."""

    def __init__(self, *, clock: Clock) -> None:
        self._clock = clock
        self._rests = Kept[Conversation, _Rest](MAX_PLACES)

    def begin(self, where: Conversation, reason: str) -> None:
        """QQ refused what was said there, and would refuse whatever comes next."""
        rest = self._rests.get(where)
        is_told = rest is not None and rest.is_told
        self._rests.keep(where, _Rest(reason, self._clock.monotonic() + LONGEST, is_told))

    def end(self, where: Conversation) -> None:
        """A sign of life: something arrived there, the bot joined, or an owner speaks there."""
        self._rests.pop(where, None)

    def holds_in(self, where: Conversation) -> bool:
        """Whether nothing is to be asked of a model there."""
        rest = self._rests.get(where) if self._rests else None
        return rest is not None and rest.until > self._clock.monotonic()

    def untold(self, where: Conversation) -> str:
        """Why it rests, the first time it is asked for; empty after that."""
        rest = self._rests.get(where)
        if rest is None or rest.is_told:
            return ""
        rest.is_told = True
        return rest.reason
