from __future__ import annotations

from bot.chat.wake_classifier import Chances

COOLDOWN, A_DAY, DAY = 120.0, 20, 86_400.0


def test_a_chance_is_taken_by_the_draw() -> None:
    assert Chances().take_chance(0.25, draw=0.24, now=0)
    assert not Chances().take_chance(0.25, draw=0.25, now=0)
    assert not Chances().take_chance(0, draw=0, now=0)


def test_there_is_a_cooldown_and_so_many_a_day() -> None:
    chances = Chances()
    assert chances.take_chance(1, draw=0, now=0)
    assert not chances.take_chance(1, draw=0, now=COOLDOWN - 1)
    assert all(chances.take_chance(1, draw=0, now=COOLDOWN * number) for number in range(1, A_DAY))
    assert not chances.take_chance(1, draw=0, now=DAY - 1)
    assert chances.take_chance(1, draw=0, now=DAY)
    assert not chances.take_chance(1, draw=0, now=DAY + COOLDOWN - 1)
    assert chances.take_chance(1, draw=0, now=DAY + COOLDOWN)
