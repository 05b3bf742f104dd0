from __future__ import annotations

import math

from bot.chat.wake_classifier import Loop, Waker
from tests.cases import each_case

WAKES, WITHIN = 6, 180.0
FAST, HELD = 4.0, 600.0


def meet(waker: Waker, *, times: int, reply: float = 1.0, gap: float = 2.0, start: float = 0.0) -> list[Loop]:
    """Somebody answers each message of ours after `reply` seconds, and is answered `gap` seconds later."""
    seen, now = [], start
    for number in range(times):
        seen.append(waker.add_wake(f"{number}" * 9, WAKES, spoke=now, now=now + reply))
        now += reply + gap
    return seen


def test_the_sixth_of_those_that_answer_at_once_begins_a_loop_which_holds_for_a_while() -> None:
    waker = Waker()
    assert meet(waker, times=WAKES + 1) == [Loop.NONE] * (WAKES - 1) + [Loop.BEGINS, Loop.HOLDS]
    end = 15 + 1 + HELD
    assert waker.add_wake("hi", WAKES, spoke=0, now=end - 1) is Loop.HOLDS
    assert meet(waker, times=WAKES, start=end)[-1] is Loop.BEGINS


def test_the_same_again_and_again_is_a_loop_however_slow() -> None:
    waker = Waker()
    seen = [waker.add_wake(f"请问还有什么需要帮助的吗 {n}", WAKES, spoke=-math.inf, now=n * 20.0) for n in range(7)]
    assert seen == [Loop.NONE] * 6 + [Loop.BEGINS]


def test_what_shares_less_than_nine_tenths_with_the_words_before_is_something_else() -> None:
    waker, same = Waker(), "请问还有什么需要帮助的吗"
    lines = [same * 2 + word * 3 for word in "天地玄黄宇宙洪荒日月盈昃"]  # 24 of 27 characters are the same: 88.9 %
    assert {waker.add_wake(line, WAKES, spoke=-math.inf, now=n * 20.0) for n, line in enumerate(lines)} == {Loop.NONE}


@each_case(("reply", "gap"), [(FAST + 0.1, 2.0), (1.0, WITHIN / (WAKES - 1))])
def test_people_take_their_time_and_are_no_loop(reply: float, gap: float) -> None:
    assert set(meet(Waker(), times=20, reply=reply, gap=gap)) == {Loop.NONE}


def test_the_slowest_of_loops_is_six_wakes_four_seconds_behind_ours_in_three_minutes() -> None:
    assert meet(Waker(), times=WAKES, reply=FAST, gap=WITHIN / (WAKES - 1) - FAST)[-1] is Loop.BEGINS


def test_who_once_takes_his_time_is_counted_anew() -> None:
    waker = Waker()
    meet(waker, times=WAKES - 1)
    assert meet(waker, times=1, reply=FAST + 1, start=20) == [Loop.NONE]
    assert meet(waker, times=WAKES, start=30)[-2:] == [Loop.NONE, Loop.BEGINS]


def test_lines_that_come_before_they_can_be_answers_are_not_counted() -> None:
    waker = Waker()
    assert {waker.add_wake(f"{n}" * 9, WAKES, spoke=10, now=10 + n / 5) for n in range(20)} == {Loop.NONE}


def test_pictures_without_a_word_are_not_the_same_words() -> None:
    waker = Waker()
    assert {waker.add_wake(" ", WAKES, spoke=-math.inf, now=float(n)) for n in range(20)} == {Loop.NONE}
