from __future__ import annotations

import asyncio

from bot.core.cluster_messages import ClusterMessage, RowChanged
from bot.core.ports import Store
from bot.core.query_results import Choices
from bot.memory.kept_settings import NOWHERE, Row
from bot.memory.own_limits import OwnLimits
from bot.policy.day_limits import LIFTED, LimitOverride
from tests.fakes import GROUP, ManualClock, RecordingStore


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


class Ear:
    can_alarm = False

    def __init__(self) -> None:
        self.notes: list[ClusterMessage] = []

    def tell(self, note: ClusterMessage, /) -> None:
        self.notes.append(note)


async def test_what_is_set_here_is_known_to_who_hears_it() -> None:
    store, clock, ear = RecordingStore(), ManualClock(), Ear()
    here = OwnLimits(store=store, choices=store, clock=clock, neighbours=ear)
    there = OwnLimits(store=store, choices=store, clock=clock)
    assert await here.start()
    assert await there.start()
    assert await here.keep(777, LIFTED)
    assert there.of(777) is None
    (note,) = ear.notes
    assert isinstance(note, RowChanged)
    there.hear(note.value)
    assert there.all() == {777: LIFTED}
    assert await there.keep(GROUP, LimitOverride(tokens=9))
    assert len(ear.notes) == 1
    await here.reread()
    assert here.all() == {777: LIFTED, GROUP: LimitOverride(tokens=9)}


async def test_what_could_not_be_written_is_not_told_and_what_cannot_be_read_stays() -> None:
    store, clock, ear = RecordingStore(), ManualClock(), Ear()
    limits = OwnLimits(store=store, choices=store, clock=clock, neighbours=ear)
    await limits.reread()
    assert not limits.are_some
    assert await limits.start()
    assert await limits.keep(777, LIFTED)
    store.trouble = True
    assert not await limits.keep(778, LIFTED)
    await limits.reread()
    assert limits.all() == {777: LIFTED}
    assert len(ear.notes) == 1


async def test_what_another_bot_has_just_set_stays_though_nobody_told_it() -> None:
    store, clock = RecordingStore(), ManualClock()
    here, there = (OwnLimits(store=store, choices=store, clock=clock) for _ in range(2))
    assert await here.start()
    assert await there.start()
    assert await here.keep(777, LIFTED)
    assert await there.keep(GROUP, LimitOverride(tokens=9))
    await here.reread()
    assert here.all() == there.all() == {777: LIFTED, GROUP: LimitOverride(tokens=9)}
