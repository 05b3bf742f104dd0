"""Of several that could write a journal one does; whoever was replaced writes nothing any more."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from msgspec.structs import replace
from sqlalchemy import Connection, Engine, create_engine, text

from adapters.broker.partitions import ClusterPartition, partition_of
from adapters.storage.claim import NAME, JournalTaken
from adapters.storage.database import Database
from adapters.storage.leases import Lease, Roster, holder_of_process
from adapters.storage.url import read_url
from bot.core.conversation import NOWHERE, Conversation
from bot.core.journal import MessageObserved, PersonaChosen, PlaceSet, RunSuspended
from tests.adapters.storage.conftest import opened
from tests.adapters.storage.entries import NOW, heard, opening, sending
from tests.fakes import BOT, GROUP, said, until

PLACE = "the journal"


@pytest.fixture
def engine(postgres: str) -> Iterator[Engine]:
    engine = create_engine(read_url(postgres))
    yield engine
    engine.dispose()


@pytest.fixture
def connection(engine: Engine) -> Iterator[Connection]:
    with engine.connect() as connection:
        yield connection


def run_out(connection: Connection) -> None:
    """The time of a lease passes."""
    with connection.begin():
        connection.execute(text("UPDATE leases SET until = clock_timestamp() - interval '1 second'"))


def test_one_has_it_until_it_runs_out(engine: Engine, connection: Connection) -> None:
    first, second = Lease(holder="1@a"), Lease(holder="2@b")
    first.take(connection, PLACE)
    first.take(connection, PLACE)  # still
    with engine.connect() as other:
        with pytest.raises(JournalTaken, match=r"in use \(the journal\) by another process \(1@a\)"):
            second.take(other, PLACE)
        run_out(other)
        first.take(connection, PLACE)  # nobody has taken it meanwhile
        run_out(other)
        second.take(other, PLACE)
        assert (first.epoch, second.epoch) == (1, 2)
        with pytest.raises(JournalTaken, match="another process that took over"):
            first.take(connection, PLACE)


def test_it_is_given_back_at_once_and_only_by_who_has_it(engine: Engine, connection: Connection) -> None:
    first, second, third = Lease(), Lease(), Lease()
    third.give_back(connection)  # never had it: there is not even a table
    first.take(connection, PLACE)
    with engine.connect() as other:
        first.give_back(connection)
        second.take(other, PLACE)
        first.give_back(connection)
        with pytest.raises(JournalTaken):
            third.take(connection, PLACE)


def test_a_bot_that_is_one_process_and_a_cluster_do_not_share_a_journal(engine: Engine, connection: Connection) -> None:
    from adapters.storage.claim import take_session

    Lease().take(connection, PLACE)
    with engine.connect() as other, pytest.raises(JournalTaken):
        take_session(other, PLACE)


async def test_a_store_whose_lease_was_taken_writes_nothing_and_says_so(postgres: str, engine: Engine) -> None:
    ousted: list[JournalTaken] = []
    with pytest.raises(BaseExceptionGroup) as ended:  # noqa: PT012  # the store ends with its block
        async with opened(postgres, lease=Lease(), ousted=ousted.append) as at:
            assert await at.store.commit(heard(message_id="1"))
            with engine.begin() as other:
                other.execute(text("UPDATE leases SET epoch = epoch + 1"))
            await at.store.commit(heard(message_id="2"))
            raise AssertionError("it is not promised")
    assert [problem.name for problem in ousted[0].problems] == ["STORE_URL"]
    assert isinstance(ended.value.exceptions[0], JournalTaken)
    with engine.connect() as connection:
        assert connection.scalars(text("SELECT message_id FROM messages")).all() == ["1"]


async def test_what_is_done_in_a_transaction_of_its_own_is_undone_where_the_lease_was_taken(postgres: str) -> None:
    engine = create_engine(read_url(postgres), isolation_level="AUTOCOMMIT")
    ended = ""
    with engine.connect() as connection:
        try:
            async with opened(postgres, lease=Lease()) as at:
                await at.store.commit(heard(message_id="1"))
                connection.execute(text("UPDATE leases SET epoch = epoch + 1"))
                try:
                    at.batches.run(lambda mine: mine.execute(text("DELETE FROM messages")))
                except JournalTaken as error:
                    ended = error.problems[0].what
                await at.store.commit(heard(message_id="2"))
        except* JournalTaken:
            pass  # the store ends by it, too
        assert connection.scalars(text("SELECT message_id FROM messages")).all() == ["1"]
    assert ended.endswith("by another process that took over")
    engine.dispose()


async def test_a_store_renews_its_lease_where_nothing_is_written_and_leaves_it_at_its_end(postgres: str) -> None:
    engine = create_engine(read_url(postgres), isolation_level="AUTOCOMMIT")
    lasts = text("SELECT until > clock_timestamp() FROM leases")
    with engine.connect() as connection:
        async with opened(postgres, lease=Lease(renewals=0.01)):
            run_out_now = text("UPDATE leases SET until = clock_timestamp() - interval '1 second'")
            connection.execute(run_out_now)
            await until(lambda: connection.scalar(lasts), seconds=10)
            with pytest.raises(JournalTaken):
                async with opened(postgres, lease=Lease()):
                    raise AssertionError("nobody else has it")
        assert not connection.scalar(lasts)
        async with opened(postgres, lease=Lease()) as next_one:
            assert await asyncio.wait_for(next_one.store.commit(heard(message_id="3")), 10)
    engine.dispose()


async def test_a_share_of_a_journal_is_what_its_own_accounts_left_and_have_set(tmp_path: Path) -> None:
    url, other = f"sqlite:///{tmp_path}/frost.db", 10002
    theirs = Conversation(other, "group", 4242)
    async with opened(url) as at:
        for where in (GROUP, theirs):
            account = where.platform_id
            question = replace(said("hello", where=where, message_id=f"q{account}"), self_id=account)
            turn, waits = opening(f"t{account}", question), opening(f"w{account}", question)
            late = replace(said("late", where=where, message_id=f"l{account}"), self_id=account)
            at.store.put(
                *(MessageObserved(question, overheard=False), turn, sending(f"s{account}", turn.turn_id, where=where)),
                *(waits, RunSuspended(turn_id=waits.turn_id, state="{}", expires=NOW)),
                *(MessageObserved(late, overheard=False), PlaceSet(where, "hush", "mute")),
                PersonaChosen(where, "fox"),
            )
        assert await at.store.commit(PlaceSet(NOWHERE, "hush", "everybody's"))
    for share in (ClusterPartition(partition_of(account, 4), 4) for account in (BOT, other)):
        async with opened(url, scope=share) as at:
            ours = GROUP if share.has(BOT) else theirs
            recovery = await at.store.recover()
            assert recovery is not None
            assert {one[0][0] for one in recovery.seen} == {ours.platform_id}
            assert {one.conversation for one in recovery.waking} == {ours}
            assert [one.question.conversation for one in recovery.turns] == [ours]
            assert [one.question.conversation for one in recovery.suspended] == [ours]
            assert [one.action.conversation for one in recovery.sends] == [ours]
            assert [where for where, _ in recovery.active] == [ours]
            assert await at.store.books.settings("hush") == {ours: "mute", NOWHERE: "everybody's"}
            assert await at.store.books.choices() == {ours: "fox"}


def test_two_processes_of_one_name_and_number_are_told_apart_and_one_is_always_the_same(
    monkeypatch: pytest.MonkeyPatch, postgres: str
) -> None:
    """As in two containers with the host's network."""
    monkeypatch.setattr("socket.gethostname", lambda: "a-very-long-name-of-a-host." * 3)
    names = []
    for _ in range(2):
        holder_of_process.cache_clear()
        names.append(holder_of_process())
        assert Lease().holder == names[-1]
    assert all(name.startswith(f"{os.getpid()}.") and len(name) <= NAME for name in names)
    rosters = [Roster(postgres, name) for name in names]
    assert [roster.look().workers for roster in rosters] == [1, 2]
    for roster in rosters:
        roster.close()
    holder_of_process.cache_clear()


async def test_who_looks_at_a_workers_journal_is_told_which_process_has_it(postgres: str) -> None:
    async with opened(postgres, lease=Lease()):
        reading = Database(postgres, migrate=lambda _: None)
        assert reading.holder() == f" (pid {os.getpid()})"
        reading.close()
