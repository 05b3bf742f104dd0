from __future__ import annotations

from bot.core.lru import LRU, DefaultLRU, RecentKeys, WeightedLRU
from tests.fakes import ManualClock


def test_what_was_used_last_stays_and_the_rest_is_made_anew() -> None:
    latest = DefaultLRU[int, list[int]](2, list)
    latest[1].append(10)
    latest.use(2).append(20)
    assert latest.use(1) == [10]
    assert latest[3] == []
    assert (2 in latest, latest[1]) == (False, [10])


def test_what_is_kept_again_is_the_last_to_leave() -> None:
    kept = LRU[int, str](2)
    for key in (1, 2, 1, 3):
        kept.keep(key, "x")
    assert list(kept) == [1, 3]


def test_what_is_heavy_takes_the_place_of_several_until_it_is_dropped() -> None:
    weighed = WeightedLRU[int, str](4, len)
    for key, value in ((1, "a"), (2, "bb"), (2, "bbb"), (3, "c")):
        weighed.keep(key, value)
    assert list(weighed) == [2, 3]
    weighed.drop(2)
    weighed.drop(2)
    weighed.keep(4, "ddd")
    assert list(weighed) == [3, 4]
    weighed.clear()
    weighed.keep(5, "eeee")
    assert list(weighed) == [5]


def test_a_key_is_known_for_so_long_after_it_was_noted_last() -> None:
    clock = ManualClock()
    lately = RecentKeys[str](9, 10.0, clock.monotonic)
    begun = clock.monotonic()
    for seconds, key in ((0.0, "a"), (1.0, "b"), (6.0, "a")):
        clock.time = begun + seconds
        lately.note(key)
    clock.time = begun + 11.0
    assert (lately.knows("a"), lately.knows("b"), lately.knows("c")) == (True, False, False)
    lately.note("c")
    assert list(lately) == ["a", "c"]
