"""Which poke was answered last in each place, kept over restarts: a broker may tell it again."""

from __future__ import annotations

from typing import Final

from bot.domain.books import Choices
from bot.domain.events import Poked
from bot.domain.ports import Clock, Store
from bot.memory.kept import KeptSettings

SETTING: Final = "poked"
APART: Final = 60.0  # seconds between two that are answered in one place: people poke in rows
TURNED_BACK: Final = 3600.0  # seconds after which an older time is that of another clock


class AnsweredPokes(KeptSettings[float]):
    """A poke has no id: the server's time of it tells it apart from those that are answered later,
    and is the same whenever it is told, and to whichever process.
    """

    def __init__(self, *, store: Store, choices: Choices, clock: Clock) -> None:
        super().__init__(SETTING, read=_read, store=store, choices=choices, clock=clock)

    def has(self, poke: Poked) -> bool:
        """Whether it, or one of about its time or after it, was answered there."""
        last = self._values.get(poke.conversation)
        return last is not None and last - TURNED_BACK < poke.time < last + APART

    def add(self, poke: Poked) -> None:
        """It is answered: written down before its answer is, so that no other process answers."""
        self._put(poke.conversation, poke.time, f"{poke.time:.3f}")


def _read(value: str) -> float | None:
    try:
        return float(value)
    except ValueError:
        return None
