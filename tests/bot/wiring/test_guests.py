from __future__ import annotations

from adapters.simulator.world import demo_world
from bot.domain.trying import Source
from bot.wiring.simulated import MOST_GUESTS, MOST_SOURCES, Guests


def test_so_many_are_there_at_a_time_and_whoever_joined_first_leaves() -> None:
    world = demo_world()
    guests, before = Guests(world), len(world.people(4242))
    for number in range(MOST_GUESTS):
        assert guests.welcome(f"guest{number}", None) == f"guest{number}"
    assert guests.welcome("user1", None) == "user1"  # who is there already is no guest
    assert guests.welcome("Guest0", None) == "guest0"
    assert len(world.people(4242)) == before + MOST_GUESTS
    guests.welcome("one more", None)
    there = world.people(4242)
    assert len(there) == before + MOST_GUESTS
    assert ("guest0" in there, "guest1" in there, "user1" in there, "one more" in there) == (False, True, True, True)


def test_whose_words_were_brought_is_known_and_of_very_many_they_may_be_anybodys() -> None:
    guests = Guests(demo_world())
    guests.welcome("a", Source(5, 77))
    guests.welcome("b", Source(6))
    guests.welcome("c", None)
    asked = ((5, 0), (0, 77), (6, 0), (7, 0), (0, 78), (0, 0))
    assert [guests.are_from(*one) for one in asked] == [True, True, True, False, False, False]
    for number in range(MOST_SOURCES):
        guests.welcome("d", Source(1000 + number))
    assert guests.are_from(7, 0)
