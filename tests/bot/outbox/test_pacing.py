from __future__ import annotations

from bot.core.actions import SendMessage
from bot.core.conversation import Conversation
from bot.outbox.pacing import APART, MAX_KEYS, Pace, Pacing
from frostagent.types.speech import Text
from tests.fakes import GROUP, PRIVATE, CountingIds, ManualClock


def say(where: Conversation, words: str) -> SendMessage:
    return SendMessage(where, (Text(words),))


def pace(rate: float, burst: int) -> tuple[Pace, ManualClock]:
    clock = ManualClock()
    return Pace(rate=rate, burst=burst, clock=clock, ids=CountingIds()), clock


def test_a_burst_goes_at_once_and_the_next_waits() -> None:
    limited, _ = pace(2.0, 3)
    assert [limited.delay("a") for _ in range(3)] == [0.0, 0.0, 0.0]
    assert 0.5 <= limited.delay("a") <= 0.75
    assert 1.0 <= limited.delay("a") <= 1.5


def test_keys_do_not_wait_for_each_other() -> None:
    limited, _ = pace(1.0, 1)
    assert limited.delay("a") == 0.0
    assert limited.delay("b") == 0.0
    assert limited.delay("a") > 0.0


def test_time_that_passes_brings_the_burst_back() -> None:
    limited, clock = pace(1.0, 2)
    assert [limited.delay("a"), limited.delay("a")] == [0.0, 0.0]
    clock.time += 2
    assert [limited.delay("a"), limited.delay("a")] == [0.0, 0.0]


def test_rate_zero_is_no_limit() -> None:
    limited, _ = pace(0.0, 1)
    assert {limited.delay("a") for _ in range(100)} == {0.0}


def test_whoever_has_spent_the_burst_waits_also_where_thousands_spoke_since() -> None:
    limited, clock = pace(1.0, 2)
    assert [limited.delay("a"), limited.delay("a")] == [0.0, 0.0]
    for number in range(MAX_KEYS):
        limited.delay(number)
    assert limited.delay("a") > 0.0
    clock.time += 10
    for number in range(MAX_KEYS, 2 * MAX_KEYS):  # now all of the others are let go of
        limited.delay(number)
    assert [limited.delay("a"), limited.delay("a")] == [0.0, 0.0]
    assert limited.delay("a") > 0.0


def test_waits_are_lengthened_by_chance_so_that_they_are_not_even() -> None:
    waits = []
    for jitter in (0.0, 0.5):
        limited = Pace(rate=1.0, burst=1, clock=ManualClock(), ids=CountingIds(jitter))
        limited.delay("a")
        waits.append(limited.delay("a"))
    assert waits == [1.0, 1.25]


def test_equal_words_in_one_place_are_kept_apart_and_others_are_not() -> None:
    clock = ManualClock()
    pacing = Pacing(rate=1000.0, burst=1000, clock=clock, ids=CountingIds())
    assert [pacing.delay(say(GROUP, "hi")), pacing.delay(say(PRIVATE, "hi")), pacing.delay(say(GROUP, "ho"))] == [
        0.0
    ] * 3
    assert pacing.delay(say(GROUP, " ")) == 0.0
    assert (pacing.repeats(GROUP, "hi"), pacing.repeats(PRIVATE, "ho")) == (True, False)
    assert [pacing.delay(say(GROUP, "hi")), pacing.delay(say(GROUP, "hi"))] == [APART, 2 * APART]
    assert pacing.delay(say(GROUP, " ")) == 0.0
    clock.time += 3 * APART
    assert not pacing.repeats(GROUP, "hi")
    assert pacing.delay(say(GROUP, "hi")) == 0.0
    unlimited = Pacing(rate=0.0, burst=3, clock=clock, ids=CountingIds())
    assert [unlimited.delay(say(GROUP, "hi")), unlimited.delay(say(GROUP, "hi"))] == [0.0, 0.0]
