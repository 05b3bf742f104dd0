"""Writing ahead: durable at once, applied once, by whoever finds it; and all that makes it step aside."""

from __future__ import annotations

import logging
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import func, select

from adapters.storage import ahead as module
from adapters.storage.ahead import FEW, LARGE, Ahead, Put
from adapters.storage.batches import Batches, Written
from adapters.storage.database import Database
from adapters.storage.migrate import migrate
from adapters.storage.tables import ahead as table
from adapters.storage.tables import messages
from bot.domain.journal import Entry
from bot.domain.segments import Text
from tests.adapters.storage.conftest import opened
from tests.adapters.storage.entries import NOW, heard, opening, sending, step
from tests.adapters.storage.entries import closing as closing_turn


class Place:
    """A database, the batches of one process, and what it writes ahead."""

    def __init__(self, url: str) -> None:
        self.database = Database(url, migrate=migrate)
        assert self.database.file is not None
        self.file: Path = self.database.file
        self.ahead = Ahead(self.file)
        self.batches = Batches(self.database, stamp=lambda: "now", ahead=self.ahead)
        assert self.batches.open() == ""

    def another_process(self) -> None:
        """Connects, applies what it finds, and ends."""
        database = Database(f"sqlite:///{self.file}", migrate=migrate)
        with closing(database):
            Batches(database, stamp=str).settle()

    def messages(self) -> list[str]:
        with self.database.reading() as connection:
            return list(connection.scalars(select(messages.c.message_id).order_by(messages.c.id)))

    def waiting(self) -> int:
        with self.database.reading() as connection:
            return connection.scalar(select(func.count()).select_from(table)) or 0

    def close(self) -> None:
        self.ahead.close()
        self.batches.close()
        self.database.close()


@pytest.fixture
def place(sqlite: str) -> Iterator[Place]:
    with closing(Place(sqlite)) as it:
        yield it


def put(*entries: Entry) -> list[Put]:
    return [Put(entry, NOW + number) for number, entry in enumerate(entries)]


def test_what_is_written_ahead_is_durable_and_not_yet_in_its_table(place: Place) -> None:
    assert place.ahead.write(put(heard(message_id="1"), heard(message_id="2")))
    with closing(sqlite3.connect(place.file)) as other:
        assert other.execute("SELECT count(*) FROM ahead").fetchone() == (2,)
    assert place.messages() == []


def test_the_next_batch_applies_it_once(place: Place) -> None:
    puts = put(heard(message_id="1"))
    assert place.ahead.write(puts)
    assert place.batches.write([*puts, *put(heard(message_id="2"))]) == Written(2)
    assert (place.messages(), place.waiting()) == (["1", "2"], 0)


def test_it_is_not_written_ahead_twice(place: Place) -> None:
    puts = put(heard(message_id="1"))
    assert place.ahead.write(puts)
    assert place.ahead.write([*puts, *put(heard(message_id="2"))])
    assert place.waiting() == 2


def test_after_a_kill_the_next_process_applies_it_in_order_with_its_times(place: Place) -> None:
    opened_ = opening("t1")
    entries: list[Entry] = [opened_, step("t1"), sending("s1", "t1"), closing_turn(opened_)]
    assert place.ahead.write(put(heard(message_id="1"), *entries))
    place.another_process()
    assert (place.messages(), place.waiting()) == (["1"], 0)
    with place.database.reading() as connection:
        assert connection.scalar(select(messages.c.taken)) == NOW


def test_what_another_process_has_applied_is_not_applied_again(place: Place) -> None:
    """As when `forget` is called beside a running bot."""
    puts = put(heard(message_id="1"))
    assert place.ahead.write(puts)
    place.another_process()
    assert place.batches.write([*puts, *put(heard(message_id="2"))]) == Written(2)
    assert place.messages() == ["1", "2"]


def test_after_a_lost_connection_nothing_is_applied_twice(place: Place) -> None:
    puts = put(heard(message_id="1"))
    assert place.ahead.write(puts)
    place.batches.close()
    assert place.batches.write(puts) == Written(1)
    assert place.messages() == ["1"]


def test_a_file_that_was_put_aside_took_it_along(place: Place) -> None:
    puts = put(heard(message_id="1"))
    assert place.ahead.write(puts)
    place.batches.condemn("it is damaged")
    assert place.batches.write(puts).failure
    assert place.batches.write(puts) == Written(1)
    assert place.messages() == ["1"]
    assert place.ahead.write(put(heard(message_id="2")))


def test_another_ones_lock_is_not_waited_for(place: Place) -> None:
    with closing(sqlite3.connect(place.file, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        assert not place.ahead.write(put(heard(message_id="1")))
        other.execute("COMMIT")
    assert place.ahead.write(put(heard(message_id="1")))


@pytest.mark.parametrize(
    "entries",
    [
        pytest.param([heard(message_id=str(number)) for number in range(FEW + 1)], id="many"),
        pytest.param([heard("long " * (LARGE // 5), message_id="1")], id="large"),
        pytest.param([heard("\ud800", message_id="1")], id="no Unicode"),
    ],
)
def test_what_a_batch_does_better_is_left_to_it(place: Place, entries: list[Entry]) -> None:
    puts = put(*entries)
    assert not place.ahead.write(puts)
    assert [one.number for one in puts] == [0] * len(entries)
    assert place.waiting() == 0


def test_a_file_that_is_not_there_is_not_made(tmp_path: Path) -> None:
    assert not Ahead(tmp_path / "none.db").write(put(heard()))
    assert list(tmp_path.iterdir()) == []


def test_a_slow_disk_is_left_to_the_thread_for_a_while(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "SLOW", 0.0)
    assert place.ahead.write(put(heard(message_id="1")))
    assert not place.ahead.write(put(heard(message_id="2")))


def test_what_can_never_be_applied_is_told_and_harms_nothing_else(
    place: Place, caplog: pytest.LogCaptureFixture
) -> None:
    good, unfit = heard(message_id="1"), heard(message_id="2")
    unfit = replace(unfit, message=replace(unfit.message, self_id=2**70))  # no column holds it
    assert place.ahead.write(put(good, unfit))
    with closing(sqlite3.connect(place.file)) as other, other:
        other.execute("INSERT INTO ahead (id, taken, entry) VALUES (1, 0, 'no entry at all')")
    with caplog.at_level(logging.WARNING):
        place.another_process()
    assert [record.message.partition(",")[0] for record in caplog.records] == [
        "an entry of the journal cannot be read",
        "a message_observed cannot be stored",
    ]
    assert (place.messages(), place.waiting()) == (["1"], 0)


def test_every_kind_of_segment_comes_back_as_it_was(place: Place) -> None:
    entry = heard("霜\0降 😀", message_id="1")
    assert isinstance(entry.message.segments[-1], Text)
    assert place.ahead.write(put(entry))
    with closing(sqlite3.connect(place.file)) as other:
        (found,) = module.left(other.cursor())
    assert found.entry == entry


async def test_who_waits_for_little_does_not_wait_for_the_thread(sqlite: str) -> None:
    async with opened(sqlite) as at:
        await at.store.commit()
        with closing(sqlite3.connect(at.database.file or "")) as other:
            assert await at.store.commit(heard(message_id="1"))
            assert other.execute("SELECT count(*) FROM ahead").fetchone() == (1,)
            await at.store.commit()  # all of it, in its tables
            counts: Any = other.execute("SELECT (SELECT count(*) FROM ahead), (SELECT count(*) FROM messages)")
            assert counts.fetchone() == (0, 1)
