"""Who is connected, as what."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from adapters.onebot.accounts import ANSWERS_WITHIN, LATELY, TOLD_AGAIN, Account, DuplicatePolicy, PeerRegistry, Role
from bot.core.errors import NotConnected
from tests.cases import each_case


@dataclass(eq=False)
class Line:
    """A connection without a socket."""

    account: int = 1
    role: Role = Role.UNIVERSAL
    is_open: bool = True
    pings: int = 0

    async def send(self, frame: bytes) -> None: ...

    async def close(self, reason: str, *, code: int = 1000) -> None: ...

    async def is_alive(self, within: float) -> bool:
        self.pings += 1
        return self.is_open


@each_case(
    ("name", "role"),
    [
        ("Api", Role.API),
        ("EVENT", Role.EVENT),
        (" universal ", Role.UNIVERSAL),
        ("", Role.UNIVERSAL),
        ("x", Role.UNIVERSAL),
    ],
)
def test_a_role_is_read_in_any_spelling(name: str, role: Role) -> None:
    assert Role.read(name) is role


async def test_the_newest_connection_of_an_account_wins() -> None:
    peers, old, new = PeerRegistry(), Line(), Line()
    assert await peers.has_place(1, Role.UNIVERSAL, now=0.0)
    assert peers.join(old) is None
    assert await peers.has_place(1, Role.UNIVERSAL, now=0.0)
    assert peers.join(new) is old
    assert peers.caller(1) is new
    assert old.pings == 0


async def test_of_two_that_take_turns_the_one_that_lives_stays() -> None:
    peers, old = PeerRegistry(), Line()
    peers.join(old)
    assert await peers.has_place(1, Role.UNIVERSAL, now=0.0)
    assert not await peers.has_place(1, Role.UNIVERSAL, now=1.0)
    assert await peers.has_place(1, Role.API, now=1.0)
    assert await peers.has_place(2, Role.UNIVERSAL, now=1.0)
    peers.set_online(1, online=False)  # its QQ was logged in elsewhere: perhaps where the newer one is
    assert await peers.has_place(1, Role.UNIVERSAL, now=2.0)
    peers.set_online(1, online=True)
    old.is_open = False
    assert await peers.has_place(1, Role.UNIVERSAL, now=2.0)
    assert old.pings == 1


def test_calls_go_where_the_last_event_came_from() -> None:
    peers, universal, api, events = PeerRegistry(), Line(), Line(role=Role.API), Line(role=Role.EVENT)
    for line in (universal, events, api):
        peers.join(line)
    assert peers.caller(1) is api
    peers.note_speaking(universal)
    assert peers.caller(1) is universal
    peers.note_speaking(events)
    assert peers.caller(1) is api
    peers.note_speaking(universal)
    universal.is_open = False
    assert peers.caller(1) is api


def test_what_has_left_or_never_came_is_not_asked_whatever_it_said() -> None:
    peers, api, universal = PeerRegistry(), Line(role=Role.API), Line()
    peers.join(api)
    peers.note_speaking(universal)
    assert peers.caller(1) is api
    peers.join(universal)
    peers.note_speaking(universal)
    peers.leave(universal)
    assert peers.caller(1) is api


@each_case(
    ("line", "takes"),
    [(Line(), True), (Line(role=Role.EVENT), False), (Line(is_open=False), False), (Line(account=2), False)],
)
def test_an_account_takes_calls_where_one_of_its_connections_does(line: Line, takes: bool) -> None:
    peers = PeerRegistry()
    peers.join(line)
    assert peers.takes_calls(1) is takes


def test_a_replaced_connection_that_leaves_takes_nothing_with_it() -> None:
    peers, old, new = PeerRegistry(), Line(), Line()
    peers.join(old)
    peers.join(new)
    peers.leave(old)
    assert peers.caller(1) is new


def test_a_connection_after_the_first_of_its_account_and_role_is_a_reconnect() -> None:
    peers, first = PeerRegistry(), Line()
    peers.join(first)
    peers.leave(first)
    peers.join(Line(role=Role.API))
    peers.join(Line(account=2))
    assert peers.reconnects == 0
    peers.join(Line())
    peers.join(Line())
    assert peers.reconnects == 2


def test_calls_never_go_to_an_event_connection() -> None:
    peers, api = PeerRegistry(), Line(role=Role.API)
    peers.join(api)
    peers.join(Line(role=Role.EVENT))
    assert peers.caller(1) is api


def test_calls_go_to_the_newest_of_the_open_connections() -> None:
    peers, api, universal = PeerRegistry(), Line(role=Role.API), Line()
    peers.join(api)
    peers.join(universal)
    assert peers.caller(1) is universal
    universal.is_open = False
    assert peers.caller(1) is api


@each_case("line", [None, Line(account=2), Line(role=Role.EVENT), Line(is_open=False)])
def test_an_account_without_an_open_connection_for_calls_is_not_connected(line: Line | None) -> None:
    peers = PeerRegistry()
    if line is not None:
        peers.join(line)
    with pytest.raises(NotConnected):
        peers.caller(1)


def test_accounts_are_those_that_can_be_asked_with_what_was_last_said_of_them() -> None:
    peers = PeerRegistry()
    for line in (Line(), Line(account=2), Line(account=2, role=Role.API), Line(account=3, role=Role.EVENT)):
        peers.join(line)
    peers.set_online(2, online=False)
    assert peers.accounts() == (Account(1, None), Account(2, online=False))


def test_only_a_change_is_news() -> None:
    peers = PeerRegistry()
    heard = [peers.set_online(1, online=online) for online in (True, False, False, True)]
    assert heard == [False, True, False, True]


def test_what_was_said_of_an_account_is_forgotten_with_its_last_connection() -> None:
    peers, api, events = PeerRegistry(), Line(role=Role.API), Line(role=Role.EVENT)
    peers.join(api)
    peers.join(events)
    peers.set_online(1, online=False)
    peers.set_server(1, "NapCat 4")
    peers.leave(api)
    peers.join(api)
    assert peers.accounts() == (Account(1, online=False, server="NapCat 4"),)
    peers.leave(api)
    peers.leave(events)
    peers.join(api)
    assert peers.accounts() == (Account(1, None),)


@dataclass(eq=False)
class Older(Line):
    lives: bool = True

    async def is_alive(self, within: float) -> bool:
        assert within == ANSWERS_WITHIN
        self.pings += 1
        return self.lives


async def test_the_first_challenge_is_won_by_the_newer_one_without_a_question() -> None:
    older = Older()
    assert not await DuplicatePolicy().keeps_older("here", older.is_alive, online=True, now=0.0)
    assert older.pings == 0


async def test_a_second_one_soon_after_is_lost_to_what_lives() -> None:
    policy, older = DuplicatePolicy(), Older()
    times = (0.0, 5.0, 10.0, 10.0 + LATELY)
    kept = [await policy.keeps_older("here", older.is_alive, online=None, now=now) for now in times]
    assert kept == [False, True, True, True]  # every challenge counts, also one that was lost


async def test_a_second_one_soon_after_is_won_over_what_is_dead() -> None:
    policy, older = DuplicatePolicy(), Older(lives=False)
    kept = [await policy.keeps_older("here", older.is_alive, online=None, now=now) for now in (0.0, 5.0)]
    assert kept == [False, False]
    assert older.pings == 1


async def test_what_is_long_ago_counts_no_more_and_places_are_apart() -> None:
    policy, older = DuplicatePolicy(), Older()
    assert not await policy.keeps_older("here", older.is_alive, online=True, now=0.0)
    assert not await policy.keeps_older("there", older.is_alive, online=True, now=1.0)
    assert not await policy.keeps_older("here", older.is_alive, online=True, now=LATELY + 1.0)


async def test_an_account_that_is_offline_makes_room() -> None:
    policy, older = DuplicatePolicy(), Older()
    kept = [await policy.keeps_older("here", older.is_alive, online=False, now=now) for now in (0.0, 1.0)]
    assert kept == [False, False]
    assert older.pings == 0


def test_a_thing_is_told_once_an_hour() -> None:
    policy = DuplicatePolicy()
    told = [policy.is_news("this", now=now) for now in (0.0, 1.0, TOLD_AGAIN, TOLD_AGAIN + 1.0, TOLD_AGAIN + 2.0)]
    assert told == [True, False, False, True, False]
    assert policy.is_news("that", now=1.0)
