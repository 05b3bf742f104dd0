"""Values that owners set by command or page, kept over restarts in one row.

The row belongs to no conversation: nothing that anybody may have erased or changed there takes one
of them away.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final, Generic, TypeVar

from bot.domain import codec
from bot.domain.books import Choices
from bot.domain.events import Conversation
from bot.domain.journal import PlaceSet
from bot.domain.notes import ALONE, Neighbours, RowSet
from bot.domain.ports import Store

K = TypeVar("K")
V = TypeVar("V")

NOWHERE: Final = Conversation(0, "private", 0)


class Row(Generic[K, V]):
    """The values under a `name`, by keys that `key` reads from what str() makes of them; one that
    does not `last` is left out when the row is written next.
    """

    def __init__(
        self,
        name: str,
        kind: type[dict[str, V]],
        *,
        key: Callable[[str], K],
        lasts: Callable[[V], bool],
        store: Store,
        choices: Choices,
        neighbours: Neighbours = ALONE,
    ) -> None:
        self._neighbours = neighbours
        self._name = name
        self._kind = kind
        self._key = key
        self._lasts = lasts
        self._store = store
        self._choices = choices
        self._values: dict[K, V] = {}
        self._is_read = False
        self._writing = asyncio.Lock()

    async def start(self) -> bool:
        """Read them, unless that was done; False where they cannot be read now."""
        if self._is_read:
            return True
        if (stored := await self._choices.settings(self._name)) is None:
            return False
        self.hear(stored.get(NOWHERE, ""))
        self._is_read = True
        return True

    def hear(self, value: str) -> None:
        """Another bot of the cluster has set them."""
        read = codec.read(self._kind, value or "{}")
        self._values = {self._key(key): one for key, one in read.items()}

    async def reread(self) -> None:
        """Read them once more, where that can be done now: another bot may have set them."""
        if self._is_read and (stored := await self._choices.settings(self._name)) is not None:
            self.hear(stored.get(NOWHERE, ""))

    async def _renew(self, key: K, renewed: Callable[[V | None], V | None]) -> bool:
        """Put what is made of a value, None where there is none yet, in its place; None: nothing
        is to be changed. False where nothing was: also where that cannot be written down now.
        """
        async with self._writing:
            await self.reread()  # what another bot has just set stays
            if not self._is_read or (value := renewed(self._values.get(key))) is None:
                return False
            after = {**self._values, key: value}
            values = {one: value for one, value in after.items() if self._lasts(value)}
            told = codec.write({str(one): value for one, value in values.items()})
            if not await self._store.commit(PlaceSet(NOWHERE, self._name, told)):
                return False
            self._values = values
            self._neighbours.tell(RowSet(self._name, told))
            return True
