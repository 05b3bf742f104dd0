"""An account is called at the gateway where it came last."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from adapters.broker.account_locations import GONE_AFTER, AccountLocations
from adapters.broker.partitions import ClusterPartition, partition_of
from adapters.broker.payloads import AccountPresence, Presence
from bot.core.errors import NotConnected
from tests.fakes import ManualClock

ONE, TWO = 10001, 10002


def told(gateway: str, *accounts: int, times: int = 1) -> Presence:
    return Presence(
        gateway, tuple(AccountPresence(account, True, f"server of {gateway}", times) for account in accounts)
    )


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def where(clock: ManualClock) -> AccountLocations:
    return AccountLocations(share=ClusterPartition(), clock=clock)


def test_an_account_that_nobody_named_is_not_connected(where: AccountLocations) -> None:
    with pytest.raises(NotConnected, match="10001"):
        where.gateway_of(ONE)
    assert where.accounts() == ()
    assert not where.server(ONE)


def test_an_account_comes_once_and_again_when_it_has_reconnected(where: AccountLocations) -> None:
    assert where.update(told("a", ONE)) == (ONE,)
    assert where.update(told("a", ONE)) == ()
    assert where.update(told("a", ONE, times=2)) == (ONE,)
    assert where.update(told("a", ONE, TWO, times=2)) == (TWO,)
    assert (where.gateway_of(ONE), where.gateway_of(TWO)) == ("a", "a")


def test_an_account_moves_and_the_gateway_it_left_has_it_no_more(where: AccountLocations) -> None:
    where.update(told("a", ONE))
    assert where.update(told("b", ONE)) == (ONE,)
    assert where.update(told("a", ONE)) == ()
    assert where.gateway_of(ONE) == "b"
    assert [one.server for one in where.accounts()] == ["server of b"]
    assert where.server(ONE) == "server of b"
    where.update(told("a"))
    assert where.gateway_of(ONE) == "b"


def test_an_account_that_leaves_is_where_another_gateway_still_has_it(where: AccountLocations) -> None:
    where.update(told("a", ONE))
    where.update(told("b", ONE, TWO))
    where.update(told("b", TWO))
    assert where.gateway_of(ONE) == "a"
    where.update(told("a"))
    with pytest.raises(NotConnected):
        where.gateway_of(ONE)
    assert where.gateway_of(TWO) == "b"


def test_a_gateway_that_says_nothing_any_more_is_gone(where: AccountLocations, clock: ManualClock) -> None:
    where.update(told("a", ONE))
    clock.time += GONE_AFTER - 0.1
    where.update(told("b", TWO))
    assert where.gateway_of(ONE) == "a"
    assert where.is_present("a")
    clock.time += 0.2
    assert (where.is_present("a"), where.is_present("b")) == (False, True)
    with pytest.raises(NotConnected):
        where.gateway_of(ONE)
    assert [one.self_id for one in where.accounts()] == [TWO]
    assert where.update(told("a", ONE)) == (ONE,)


def test_a_gateway_that_took_no_call_is_forgotten_at_once(where: AccountLocations) -> None:
    where.update(told("a", ONE))
    where.update(told("b", ONE))
    where.forget("b")
    assert where.gateway_of(ONE) == "a"
    where.forget("never heard of")
    where.forget("a")
    with pytest.raises(NotConnected):
        where.gateway_of(ONE)


def test_once_all_are_forgotten_every_account_comes_anew(where: AccountLocations) -> None:
    where.update(told("a", ONE))
    where.update(told("b", TWO))
    where.forget_all()
    assert where.accounts() == ()
    assert where.update(told("a", ONE)) == (ONE,)


def test_what_all_gateways_say_is_put_together(where: AccountLocations) -> None:
    assert (where.refused, where.reconnects) == ("", 0)
    where.update(Presence("a", reconnects=2))
    where.update(Presence("b", refused="10003: a wrong token", reconnects=3))
    assert (where.refused, where.reconnects) == ("10003: a wrong token", 5)


def test_the_first_partition_with_an_account_is_for_what_all_are_to_hear(clock: ManualClock) -> None:
    where = AccountLocations(share=ClusterPartition(5, 8), clock=clock)
    first, second = sorted(range(10001, 10020), key=lambda account: partition_of(account, 8))[::18]
    assert where.announcing_partition is None
    where.update(told("a", second))
    where.update(told("b"))
    assert where.announcing_partition == partition_of(second, 8)
    where.update(told("b", first))
    assert where.announcing_partition == partition_of(first, 8) < partition_of(second, 8)
    where.update(told("b"))
    assert where.announcing_partition == partition_of(second, 8)
    clock.time += GONE_AFTER + 1
    assert where.announcing_partition is None


def test_how_long_something_waited_is_told_by_the_clock_that_noted_it(
    where: AccountLocations, clock: ManualClock
) -> None:
    where.update(replace(told("a"), now=clock.time - 100))
    assert where.seconds_since("a", clock.time - 100) == 0
    assert where.seconds_since("a", clock.time - 130) == 30
    assert where.seconds_since("b", clock.time - 30) == 30
    clock.time += GONE_AFTER + 1
    assert not where.is_present("a")
    assert where.seconds_since("a", clock.time - 130) == 30


def test_a_moment_is_told_by_a_gateways_ticks_and_a_word_that_was_held_up_does_not_move_it(
    where: AccountLocations, clock: ManualClock
) -> None:
    assert where.deadline("a", 5.0) == 0.0
    where.update(told("older", ONE))
    assert where.deadline("older", 5.0) == 0.0
    begun = clock.monotonic()
    where.update(replace(told("a", ONE), ticks=700.0))
    assert where.deadline("a", 5.0) == 705.0
    clock.time += 8
    where.update(replace(told("a", ONE), ticks=701.0))
    assert where.deadline("a", 5.0) == 705.0 + clock.monotonic() - begun
    where.update(replace(told("a", ONE), ticks=709.0))
    assert where.deadline("a", 5.0) == 714.0
    where.forget("a")
    assert where.deadline("a", 5.0) == 714.0


def test_an_account_comes_again_once_its_gateway_s_first_word_turns_out_to_have_been_held_up(
    where: AccountLocations, clock: ManualClock
) -> None:
    assert where.update(replace(told("a", ONE, TWO), ticks=700.0)) == (ONE, TWO)
    where.update(told("b", TWO))
    assert where.update(replace(told("a", ONE, TWO), ticks=760.0)) == (ONE,)
    assert where.deadline("a", 5.0) == 765.0
    assert (where.gateway_of(ONE), where.gateway_of(TWO)) == ("a", "b")
    clock.time += 60  # no call is refused for a second on the way
    late = [replace(told("a", ONE), ticks=ticks) for ticks in (761.0, 820.0, 821.0)]
    assert [where.update(one) for one in late] == [(), (), ()]


def test_a_word_that_was_held_up_makes_nothing_younger_than_it_is(where: AccountLocations, clock: ManualClock) -> None:
    for _ in range(3):
        where.update(replace(told("a"), now=clock.time - 100))
    where.update(replace(told("a"), now=clock.time - 100 - 180))
    assert where.seconds_since("a", clock.time - 100 - 150) == 150
    for _ in range(2):  # its clock was set, then
        where.update(replace(told("a"), now=clock.time - 100 - 180))
    assert where.seconds_since("a", clock.time - 100 - 180) == 0
