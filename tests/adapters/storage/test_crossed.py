"""What PostgreSQL gives up for another worker's transaction is done again: nobody's words are refused for it."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

import pytest
from sqlalchemy import Connection, create_engine, make_url, text
from sqlalchemy.exc import OperationalError

from adapters.storage.batches import EntryBatches, Written
from adapters.storage.database import TRIES, Database, is_conflict, retry_conflicts
from adapters.storage.migrations import migrate
from adapters.storage.tables import sends
from adapters.storage.url import read_url
from bot.core.journal import SendChanged, SendState
from tests.adapters.storage.entries import NOW, asked, opening, sending
from tests.adapters.storage.test_batches import column, put

T = TypeVar("T")

PATIENCE = 20.0  # seconds
WAITING = text("SELECT count(*) FROM pg_stat_activity WHERE pg_backend_pid() = ANY(pg_blocking_pids(pid))")


def lock(connection: Connection, send: str) -> None:
    connection.execute(text("SELECT id FROM sends WHERE send_id = :send FOR UPDATE"), {"send": send})


def wait_for_waiting(connection: Connection, number: int) -> None:
    """Until so many wait for this one's transaction."""
    deadline = time.monotonic() + PATIENCE
    while connection.scalar(WAITING) != number:
        assert time.monotonic() < deadline


@pytest.fixture
def writing(postgres: str) -> Iterator[tuple[EntryBatches, Database]]:
    database = Database(looking_at_once(postgres), migrate=migrate)
    made = EntryBatches(database, stamp=str)
    entries = put(asked(), opening("t1"), sending("a", "t1"), sending("b", "t1"))
    assert made.write(entries) == Written(4)
    yield made, database
    made.close()
    database.close()


def looking_at_once(url: str) -> str:
    """The same database, for one who finds at once that he waits for who waits for him."""
    made = make_url(url)
    options = f"{made.query['options']} -cdeadlock_timeout=1ms"
    return made.update_query_dict({"options": options}).render_as_string(hide_password=False)


def crossed(postgres: str, work: Callable[[], T]) -> T:
    """The result of work on `a`, then on `b`, that the server gives up exactly once, for another who has `b`.

    Somebody has `a` first, so that the other waits for the work before it waits for him: it is the work that ends the
    circle, and sees it. He waits for the whole table: it is his in the moment the work is given up, and what the work
    begins then stands behind him. (A row would be anybody's, and the work might be given up again.)
    """
    engine = create_engine(read_url(postgres))
    with ThreadPoolExecutor(2) as pool, engine.connect() as other, engine.connect() as first:
        other.execute(text("SET LOCAL deadlock_timeout = '60s'"))  # he never looks
        lock(other, "b")
        lock(first, "a")
        done = pool.submit(work)
        wait_for_waiting(first, 1)
        table = pool.submit(other.execute, text("LOCK TABLE sends IN EXCLUSIVE MODE"))
        wait_for_waiting(first, 2)
        first.commit()
        table.result(PATIENCE)
        other.commit()
        result = done.result(PATIENCE)
    engine.dispose()
    return result


def test_something_else_in_a_transaction_is_done_again(postgres: str, writing: tuple[EntryBatches, Database]) -> None:
    tries = list[int]()

    def job(connection: Connection) -> str:
        tries.append(1)
        lock(connection, "a")
        lock(connection, "b")
        return "done"

    assert crossed(postgres, lambda: writing[0].run(job)) == "done"
    assert len(tries) == 2


def test_a_batch_is_written_again_whole(postgres: str, writing: tuple[EntryBatches, Database]) -> None:
    batches, database = writing
    changes = [SendChanged(send_id=send, state=SendState.SENDING, at=NOW) for send in ("a", "b")]
    assert crossed(postgres, lambda: batches.write(put(*changes))) == Written(2)
    assert column(database, sends.c.state) == ["sending", "sending"]


def test_it_is_not_tried_for_ever_and_nothing_else_is_tried_again(postgres: str) -> None:
    engine = create_engine(read_url(postgres))
    with engine.connect() as connection, pytest.raises(OperationalError) as raised:
        connection.execute(text("DO $$ BEGIN RAISE EXCEPTION 'x' USING ERRCODE = '40P01'; END $$"))
    engine.dispose()
    for error, times in ((raised.value, TRIES), (ZeroDivisionError(), 1)):
        tries = list[int]()

        def fail(error: Exception = error, tries: list[int] = tries) -> None:
            tries.append(1)
            raise error

        with pytest.raises(type(error)):
            retry_conflicts(fail)
        assert (len(tries), is_conflict(error)) == (times, times > 1)
