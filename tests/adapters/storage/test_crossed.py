"""What PostgreSQL gives up for another worker's transaction is done again: nobody's words are refused for it."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

import pytest
from sqlalchemy import Connection, create_engine, text
from sqlalchemy.exc import OperationalError

from adapters.storage.batches import EntryBatches, Written
from adapters.storage.crossed import TRIES, is_crossed, until_done
from adapters.storage.database import Database
from adapters.storage.migrate import migrate
from adapters.storage.tables import sends
from adapters.storage.url import read_url
from bot.domain.journal import SendChanged, SendState
from tests.adapters.storage.entries import NOW, asked, opening, sending
from tests.adapters.storage.test_batches import column, put

T = TypeVar("T")

PATIENCE = 20.0  # seconds
WAITS = text("SELECT count(*) FROM pg_stat_activity WHERE pg_backend_pid() = ANY(pg_blocking_pids(pid))")


def lock(connection: Connection, send: str) -> None:
    connection.execute(text("SELECT id FROM sends WHERE send_id = :send FOR UPDATE"), {"send": send})


@pytest.fixture
def writing(postgres: str) -> Iterator[tuple[EntryBatches, Database]]:
    database = Database(postgres, migrate=migrate)
    made = EntryBatches(database, stamp=str)
    entries = put(asked(), opening("t1"), sending("a", "t1"), sending("b", "t1"))
    assert made.write(entries) == Written(4)
    yield made, database
    made.close()
    database.close()


def crossed(postgres: str, work: Callable[[], T], has_both: threading.Event) -> T:
    """Let somebody have `a`, the work `b` and wait for `a`, and him for `b`: the server gives up the work, which waited
    first, and he has both, and ends. Where the work begins anew before he has, it may be given up once more.
    """
    engine = create_engine(read_url(postgres))
    with ThreadPoolExecutor(1) as pool, engine.connect() as other, other.begin():
        other.execute(text("SET LOCAL deadlock_timeout = '60s'"))  # it is the work that looks
        lock(other, "a")
        ours = pool.submit(work)
        deadline = time.monotonic() + PATIENCE
        while not other.scalar(WAITS):
            assert time.monotonic() < deadline
        lock(other, "b")
        has_both.set()
        other.commit()
        done = ours.result(PATIENCE)
    engine.dispose()
    return done


def test_something_else_in_a_transaction_is_done_again(postgres: str, writing: tuple[EntryBatches, Database]) -> None:
    tries, has_both = list[int](), threading.Event()

    def job(connection: Connection) -> str:
        assert not tries or has_both.wait(PATIENCE)
        tries.append(1)
        lock(connection, "b")
        lock(connection, "a")
        return "done"

    assert crossed(postgres, lambda: writing[0].run(job), has_both) == "done"
    assert len(tries) == 2


def test_a_batch_is_written_again_whole(postgres: str, writing: tuple[EntryBatches, Database]) -> None:
    batches, database = writing
    changes = [SendChanged(send_id=send, state=SendState.SENDING, at=NOW) for send in ("b", "a")]
    assert crossed(postgres, lambda: batches.write(put(*changes)), threading.Event()) == Written(2)
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
            until_done(fail)
        assert (len(tries), is_crossed(error)) == (times, times > 1)
