"""Events that may end the worker that handles them: the journal has of each that it is begun."""

from __future__ import annotations

from bot.core import codec
from bot.core.journal import PlaceSet
from bot.core.ports import Store
from bot.core.query_results import Choices
from bot.settings_store import NOWHERE


class Suspects:
    """Those of a partition; whoever takes it over reads what was
    begun. While the journal is away nobody is suspected.
    """

    def __init__(self, partition: int, *, store: Store, choices: Choices) -> None:
        self._name = f"begun {partition}"
        self._store = store
        self._choices = choices
        self._begun: dict[str, int] | None = None  # how often each was, without an end

    async def begin(self, event: str, /) -> int:
        """Return once the journal has that it is begun, or is away."""
        if self._begun is None:
            if (stored := await self._choices.settings(self._name)) is None:
                return 0
            self._begun = _read(stored.get(NOWHERE, "{}"))
        before = self._begun.get(event, 0)
        self._begun[event] = before + 1
        return before if await self._store.commit(self._entry(self._begun)) else 0

    def end(self, event: str, /) -> None:
        """It is written down behind all that came of the event."""
        if self._begun and self._begun.pop(event, 0):
            self._store.put(self._entry(self._begun))

    def _entry(self, begun: dict[str, int]) -> PlaceSet:
        return PlaceSet(NOWHERE, self._name, codec.write(begun) if begun else "")


def _read(text: str) -> dict[str, int]:
    try:
        begun: dict[str, int] = codec.read(dict[str, int], text)
    except codec.Unreadable:  # of a version that wrote it otherwise
        return {}
    return begun
