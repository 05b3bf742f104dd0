from __future__ import annotations

from bot.memory.latest import Latest


def test_what_was_looked_up_last_stays_and_the_rest_is_made_anew() -> None:
    latest = Latest[int, list[int]](2, list)
    latest[1].append(10)
    latest[2].append(20)
    assert latest[1] == [10]
    assert latest[3] == []
    assert (2 in latest, latest[1]) == (False, [10])
