from __future__ import annotations

from bot.policy.chances import A_DAY, COOLDOWN, DAY, Chances
from tests.fakes import GROUP, PRIVATE


def test_a_chance_is_taken_by_the_draw() -> None:
    assert Chances(0.25).take(GROUP, draw=0.24, now=0)
    assert not Chances(0.25).take(GROUP, draw=0.25, now=0)
    assert not Chances(0).take(GROUP, draw=0, now=0)


def test_each_group_has_its_cooldown_and_so_many_a_day() -> None:
    chances = Chances(1)
    assert chances.take(GROUP, draw=0, now=0)
    assert not chances.take(GROUP, draw=0, now=COOLDOWN - 1)
    assert chances.take(PRIVATE, draw=0, now=1)
    assert all(chances.take(GROUP, draw=0, now=COOLDOWN * number) for number in range(1, A_DAY))
    assert not chances.take(GROUP, draw=0, now=DAY - 1)
    assert chances.take(GROUP, draw=0, now=DAY)
    assert not chances.take(GROUP, draw=0, now=DAY + COOLDOWN - 1)
    assert chances.take(GROUP, draw=0, now=DAY + COOLDOWN)
