"""Workers see how many they are, and which partitions nobody has."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from sqlalchemy import Connection, create_engine, text

from adapters.storage.claim import Away
from adapters.storage.leases import Board, Lease, Roster, name_of
from adapters.storage.url import read_url

PLACE = "the place"


@pytest.fixture
def connection(postgres: str) -> Iterator[Connection]:
    engine = create_engine(read_url(postgres), isolation_level="AUTOCOMMIT")
    with engine.connect() as connection:
        yield connection
    engine.dispose()


@pytest.fixture
def rosters(postgres: str) -> Iterator[list[Roster]]:
    made = [Roster(postgres, holder) for holder in ("1@a", "2@b", "3@c")]
    yield made
    for roster in made:
        roster.close()


def test_who_looks_is_there_until_he_leaves_or_is_silent(rosters: list[Roster], connection: Connection) -> None:
    first, second, third = rosters
    assert [roster.look().workers for roster in (first, second, second, third)] == [1, 2, 2, 3]
    second.leave()
    assert first.look().workers == 2
    connection.execute(text("UPDATE workers SET until = clock_timestamp() WHERE holder = '3@c'"))
    assert first.look().workers == 1
    assert third.look().workers == 2


def test_who_does_not_sign_sees_the_others_and_is_there_for_nobody(rosters: list[Roster]) -> None:
    first, second, _ = rosters
    assert [first.look().workers, second.look().workers] == [1, 2]
    assert second.look(signs=False).workers == 1
    assert first.look().workers == 1
    assert first.look(signs=False).workers == 0
    assert second.look().workers == 1


def test_a_partition_is_had_while_its_lease_lasts(rosters: list[Roster], postgres: str) -> None:
    (first, *_), engine = rosters, create_engine(read_url(postgres))
    assert first.look() == Board(1, {})
    lease = Lease(name_of(3), holder="7@x")
    with engine.connect() as connection:
        lease.take(connection, PLACE)
    assert first.look().had == {"partition 3": "7@x"}
    with engine.connect() as connection:
        lease.give_back(connection)
    assert first.look().had == {}
    engine.dispose()


def test_tables_that_are_gone_are_made_again(rosters: list[Roster], connection: Connection) -> None:
    first, *_ = rosters
    assert first.look() == Board(1, {})
    connection.execute(text("DROP TABLE workers, leases"))
    with pytest.raises(Away, match="workers"):
        first.look()
    assert first.look() == Board(1, {})


def test_who_was_there_an_hour_ago_is_struck_off(rosters: list[Roster], connection: Connection) -> None:
    first, second, _ = rosters
    for roster in (first, second):
        roster.look()
    connection.execute(text("UPDATE workers SET until = now() - interval '2 hours' WHERE holder = '2@b'"))
    first.leave()
    assert connection.scalar(text("SELECT count(*) FROM workers")) == 0


def test_a_server_that_is_away_is_told_as_that() -> None:
    roster = Roster("postgresql://frost@127.0.0.1:1/frost", "1@a")
    for work in (roster.look, roster.leave):
        with pytest.raises(Away, match="cannot be reached"):
            work()
