"""How long a silence is nothing to wonder at."""

from __future__ import annotations

from adapters.onebot.health import HeartbeatTimeout
from tests.cases import each_case


@each_case(("interval", "seconds"), [(30.0, 90.0), (3.0, 9.0), (1.0, 5.0), (0.003, 5.0)])
def test_three_heartbeats_may_be_missing_but_never_less_than_five_seconds(interval: float, seconds: float) -> None:
    patience = HeartbeatTimeout()
    assert patience.seconds == 0.0
    assert patience.beat(interval)
    assert patience.seconds == seconds


def test_a_heartbeat_that_announces_nothing_changes_nothing() -> None:
    patience = HeartbeatTimeout()
    assert not patience.beat(0.0)
    assert patience.seconds == 0.0
    patience.beat(30.0)
    assert not patience.beat(0.0)
    assert patience.seconds == 90.0


def test_a_server_that_beats_slower_than_it_says_is_given_more_time_each_time_but_not_for_ever() -> None:
    patience = HeartbeatTimeout()
    patience.beat(1.0)
    given = []
    for _ in range(9):
        given.append(patience.seconds)
        patience.missed()
        patience.beat(1.0)
    assert given == [5.0, 10.0, 20.0, 40.0, 80.0, 160.0, 320.0, 320.0, 320.0]
