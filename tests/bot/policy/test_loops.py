from __future__ import annotations

import math

import pytest

from bot.policy.loops import FAST, HELD, WAKES, WITHIN, Loop, Loops
from tests.fakes import GROUP, PRIVATE


def meet(loops: Loops, *, times: int, reply: float = 1.0, gap: float = 2.0, start: float = 0.0) -> list[Loop]:
    """Somebody answers each message of ours after `reply` seconds, and is answered `gap` seconds later."""
    seen, now = [], start
    for number in range(times):
        seen.append(loops.take(GROUP, 5, f"{number}" * 9, spoke=now, now=now + reply))
        now += reply + gap
    return seen


def test_the_sixth_of_those_that_answer_at_once_begins_a_loop_which_holds_for_a_while() -> None:
    loops = Loops()
    assert meet(loops, times=WAKES + 1) == [Loop.NONE] * (WAKES - 1) + [Loop.BEGINS, Loop.HOLDS]
    end = 15 + 1 + HELD
    assert loops.take(GROUP, 5, "hi", spoke=0, now=end - 1) is Loop.HOLDS
    assert loops.take(GROUP, 6, "hi", spoke=0, now=17) is loops.take(PRIVATE, 5, "hi", spoke=0, now=17) is Loop.NONE
    assert meet(loops, times=WAKES, start=end)[-1] is Loop.BEGINS


def test_the_same_again_and_again_is_a_loop_however_slow() -> None:
    loops = Loops()
    seen = [loops.take(GROUP, 5, f"请问还有什么需要帮助的吗 {n}", spoke=-math.inf, now=n * 20.0) for n in range(7)]
    assert seen == [Loop.NONE] * 6 + [Loop.BEGINS]


@pytest.mark.parametrize(("reply", "gap"), [(FAST + 1, 2.0), (1.0, WITHIN / (WAKES - 1))])
def test_people_take_their_time_and_are_no_loop(reply: float, gap: float) -> None:
    assert set(meet(Loops(), times=20, reply=reply, gap=gap)) == {Loop.NONE}


def test_who_once_takes_his_time_is_counted_anew() -> None:
    loops = Loops()
    meet(loops, times=WAKES - 1)
    assert meet(loops, times=1, reply=FAST + 1, start=20) == [Loop.NONE]
    assert meet(loops, times=WAKES, start=30)[-2:] == [Loop.NONE, Loop.BEGINS]


def test_lines_that_come_before_they_can_be_answers_are_not_counted() -> None:
    loops = Loops()
    assert {loops.take(GROUP, 5, f"{n}" * 9, spoke=10, now=10 + n / 5) for n in range(20)} == {Loop.NONE}
