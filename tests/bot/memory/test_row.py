from __future__ import annotations

import asyncio

from bot.domain.books import Choices
from bot.domain.ports import Store
from bot.memory.row import NOWHERE, Row
from tests.fakes import RecordingStore


class Counts(Row[int, int]):
    """Numbers by numbers; nought is none."""

    def __init__(self, store: Store, choices: Choices) -> None:
        super().__init__("counts", dict[str, int], key=int, lasts=bool, store=store, choices=choices)

    @property
    def values(self) -> dict[int, int]:
        return dict(self._values)

    async def add(self, key: int, more: int | None) -> bool:
        return await self._renew(key, lambda value: None if more is None else (value or 0) + more)


async def test_values_that_are_changed_at_once_are_all_in_the_row_and_read_again_after_a_restart() -> None:
    store = RecordingStore()
    counts = Counts(store, store)
    assert not await counts.add(1, 1)  # nobody knows yet what else there is
    assert await counts.start()
    assert all(await asyncio.gather(*(counts.add(key % 3, 1) for key in range(9))))
    assert await counts.add(2, -3)  # lasts no longer
    assert not await counts.add(1, None)
    assert counts.values == {0: 3, 1: 3}
    assert await store.settings("counts") == {NOWHERE: '{"0":3,"1":3}'}
    again = Counts(store, store)
    assert await again.start()
    assert again.values == counts.values
    assert await again.add(1, 1)
    assert again.values == {0: 3, 1: 4}
    store.trouble = True
    assert await again.start()  # it was read before


async def test_what_cannot_be_read_or_written_down_changes_nothing() -> None:
    store = RecordingStore()
    counts = Counts(store, store)
    assert await counts.start()
    store.trouble = True
    assert not await counts.add(1, 1)
    assert counts.values == {}
    assert not await Counts(store, store).start()
