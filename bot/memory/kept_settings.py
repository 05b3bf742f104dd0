"""Settings of conversations by command, kept over restarts under one name."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final, Generic, TypeVar

from bot.core import codec
from bot.core.cluster_messages import ClusterPeers, PlaceChanged, RowChanged
from bot.core.journal import PlaceSet
from bot.core.ports import Store
from bot.core.query_results import Choices
from frostagent.types.conversation import Conversation
from frostagent.types.ports import Clock

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
        neighbours: ClusterPeers | None = None,
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
            if self._neighbours is not None:
                self._neighbours.tell(RowChanged(self._name, told))
            return True


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
        neighbours: ClusterPeers | None = None,
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
        if self._neighbours is not None:
            self._neighbours.tell(PlaceChanged(where, self._name, text))
        return True

    def _put(self, where: Conversation, value: V, text: str) -> None:
        """Set it now; it is written down before all that is written after it."""
        self._values[where] = value
        self._store.put(PlaceSet(where, self._name, text))
