"""Settings of conversations by command, kept over restarts under one name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

from bot.domain.books import Choices
from bot.domain.events import Conversation
from bot.domain.journal import PlaceSet
from bot.domain.notes import ALONE, Neighbours, PlaceTold
from bot.domain.ports import Clock, Store

V = TypeVar("V")

LOOK = 2.0  # seconds between two looks at what could not be read


class KeptSettings(Generic[V]):
    """The values under a `name`; each is written as its words, and what `read` makes nothing of is
    not set.
    """

    def __init__(
        self,
        name: str,
        *,
        read: Callable[[str], V | None],
        store: Store,
        choices: Choices,
        clock: Clock,
        neighbours: Neighbours = ALONE,
    ) -> None:
        self._neighbours = neighbours
        self._name = name
        self._read = read
        self._store = store
        self._choices = choices
        self._clock = clock
        self._values: dict[Conversation, V] = {}
        self._is_read = False

    @property
    def is_read(self) -> bool:
        """Whether all that was set before is known."""
        return self._is_read

    async def start(self) -> bool:
        """Read what was set before; False where it cannot be read: `run` goes on trying."""
        if (stored := await self._choices.settings(self._name)) is None:
            return False
        for where, text in stored.items():
            if where not in self._values and (value := self._read(text)) is not None:
                self._values[where] = value
        self._is_read = True
        return True

    async def run(self) -> None:
        """Read it once that can be done, unless it was."""
        while not self._is_read:
            await self._clock.sleep(LOOK)
            await self.start()

    def hear(self, where: Conversation, text: str) -> None:
        """Another bot of the cluster has set it."""
        if (value := self._read(text)) is None:
            self._values.pop(where, None)
        else:
            self._values[where] = value

    async def reread(self) -> None:
        """Another bot of the cluster may have: know what is set now, if that can be read."""
        if (stored := await self._choices.settings(self._name)) is not None:
            read = {where: self._read(text) for where, text in stored.items()}
            self._values = {where: value for where, value in read.items() if value is not None}

    async def _commit(self, where: Conversation, value: V, text: str) -> bool:
        """Set it. False where that cannot be written down now: nothing is changed then."""
        if not await self._store.commit(PlaceSet(where, self._name, text)):
            return False
        self._values[where] = value
        self._neighbours.tell(PlaceTold(where, self._name, text))
        return True

    def _put(self, where: Conversation, value: V, text: str) -> None:
        """Set it now; it is written down before all that is written after it."""
        self._values[where] = value
        self._store.put(PlaceSet(where, self._name, text))
