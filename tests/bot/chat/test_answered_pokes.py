from __future__ import annotations

from bot.chat.pokes import APART, POKED, TURNED_BACK, AnsweredPokes
from bot.core.events import Poked
from bot.core.journal import PlaceSet
from tests.cases import each_case
from tests.fakes import BOT, GROUP, PRIVATE, RecordingStore
from tests.settings import kept_settings

AT = 1_760_000_000.25


def poke(time: float) -> Poked:
    return Poked(self_id=BOT, time=time, conversation=GROUP, user_id=777, target_id=BOT)


async def answered(store: RecordingStore) -> AnsweredPokes:
    """Those that the journal knows by now."""
    settings = kept_settings(store)
    assert await settings.load()
    return AnsweredPokes(settings)


@each_case(
    ("time", "known"),
    [(AT, True), (AT + APART - 1, True), (AT + APART, False), (AT - 1, True), (AT - TURNED_BACK, False)],
)
async def test_a_poke_that_was_answered_and_what_is_of_its_time_are_known_to_the_next_process(
    time: float, *, known: bool
) -> None:
    store = RecordingStore()
    first = await answered(store)
    assert not first.has(poke(time))
    first.add(poke(AT))
    second = await answered(store)
    assert (first.has(poke(time)), second.has(poke(time))) == (known, known)


async def test_what_nobody_can_read_is_no_poke() -> None:
    store = RecordingStore()
    store.put(PlaceSet(GROUP, POKED.name, "soon"), PlaceSet(PRIVATE, POKED.name, ""))
    kept = await answered(store)
    assert not kept.has(poke(AT))
