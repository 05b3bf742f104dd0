"""The chat of `make run` in a browser: the same simulated group that the terminal talks in."""

from __future__ import annotations

from collections import deque
from collections.abc import Awaitable, Callable

from bot.domain.shown import TriedLine

KEPT = 200  # lines
BOT = "bot"


class Play:
    """Fits `Trying`; `say` says a typed line and returns when all that came of it is settled."""

    def __init__(self, people: tuple[str, ...], faults: tuple[str, ...]) -> None:
        self.people = people
        self.faults = faults
        self._lines: deque[TriedLine] = deque(maxlen=KEPT)
        self._say: Callable[[str], Awaitable[None]] | None = None

    @property
    def lines(self) -> tuple[TriedLine, ...]:
        """What was said, oldest first."""
        return tuple(self._lines)

    def note(self, who: str, text: str) -> None:
        """Something was said."""
        self._lines.append(TriedLine(who, text))

    def connect(self, say: Callable[[str], Awaitable[None]]) -> None:
        """From now on lines can be said."""
        self._say = say

    async def say(self, who: str, text: str) -> None:
        """Say a line as that member."""
        if self._say is None or who not in self.people:
            return
        line = " ".join(text.split())
        self.note(who, line)
        await self._say(line if line.startswith("!") else f"{who}: {line}")
