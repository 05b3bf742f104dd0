from __future__ import annotations

from msgspec.structs import replace

from bot.core.events import MessageReceived
from bot.core.journal import Remembered
from bot.memory.history import Overheard
from tests.fakes import said


def heard(number: int, *, user: int = 777) -> MessageReceived:
    message = said(f"line {number}", user=user, at=False, message_id=str(number))
    return replace(message, time=message.time + number)


def test_everything_is_taken_once_in_the_order_it_was_said_and_the_oldest_are_let_go() -> None:
    overheard = Overheard(3)
    for number in (1, 4, 2, 3):
        overheard.add(heard(number))
    assert overheard.missed == 1
    assert overheard.take() == (heard(2), heard(3), heard(4))
    assert overheard.missed == 0
    assert overheard.take() == ()


def test_the_last_lines_of_somebody_are_taken_from_among_the_others() -> None:
    overheard = Overheard(9)
    for number in (1, 2, 3, 4):
        overheard.add(heard(number, user=5 if number == 3 else 777))
    assert overheard.take_lines(lambda line: line.sender.user_id == 777, most=2) == (heard(2), heard(4))
    assert overheard.take() == (heard(1), heard(3, user=5))


def test_what_was_stored_stands_before_what_came_since_and_nothing_twice() -> None:
    overheard = Overheard(9)
    for number in (5, 2):
        overheard.add(heard(number))
    overheard.recall(Remembered(overheard=(heard(1), heard(2)), missed=3))
    assert overheard.missed == 3
    assert overheard.take() == (heard(1), heard(2), heard(5))


def test_what_is_forgotten_is_read_by_nobody() -> None:
    overheard = Overheard(9)
    overheard.add(heard(1))
    assert overheard.forget("1")
    assert not overheard.forget("1")
    assert overheard.take() == ()


def test_each_who_reads_for_himself_reads_on_until_a_round_tells_it() -> None:
    overheard = Overheard(9)
    overheard.add(heard(1))
    assert overheard.take(777) == (heard(1),)
    overheard.add(heard(2))
    assert overheard.take(777) == (heard(2),)
    assert overheard.take(5) == (heard(1), heard(2))
    assert overheard.take(5) == ()
    overheard.told(("1",))
    assert overheard.take(6) == (heard(2),)
    assert not overheard.forget("2")  # somebody has read it
    assert overheard.take(7) == ()
