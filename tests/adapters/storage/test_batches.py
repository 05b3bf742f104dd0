"""Batches: one transaction, in order, nothing twice, nobody's entry lost for another's fault."""

from __future__ import annotations

import logging
import sqlite3
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Connection, select, text

from adapters.storage.batches import EntryBatches, Put, Written
from adapters.storage.database import Database
from adapters.storage.migrations import migrate
from adapters.storage.tables import messages
from bot.core.journal import Entry
from frostagent.types.errors import ConfigError
from tests.adapters.storage.entries import NOW, heard


def put(*entries: Entry) -> list[Put]:
    return [Put(entry, NOW + place) for place, entry in enumerate(entries)]


def column(database: Database, of: Any) -> list[Any]:
    with database.reading() as connection:
        return list(connection.scalars(select(of).order_by(of.table.c.id)))


def test_an_empty_batch_only_tries_the_database(batches: EntryBatches) -> None:
    assert batches.write([]) == Written(0)


@pytest.mark.parametrize("bad", [heard("\ud83d"), heard("x", user=2**64), heard("x", name="\ud83d")])
def test_one_bad_entry_does_not_take_the_others_with_it(
    batches: EntryBatches, database: Database, caplog: pytest.LogCaptureFixture, bad: Entry
) -> None:
    good = [heard(message_id="a"), heard(message_id="b"), heard(message_id="c")]
    assert batches.write(put(*good[:2], bad, good[2])) == Written(4, bad=(2,))
    assert column(database, messages.c.message_id) == ["a", "b", "c"]
    assert batches.write(put(heard(message_id="d"))) == Written(1)
    assert column(database, messages.c.message_id) == ["a", "b", "c", "d"]
    (told,) = [
        record for record in caplog.records if record.name.startswith("adapters") and record.levelno >= logging.INFO
    ]
    assert "a message_observed cannot be stored, and is lost" in told.getMessage()


def test_an_outage_in_the_middle_of_single_entries_says_how_far_it_came(sqlite: str) -> None:
    database = Database(sqlite, migrate=migrate)
    batches = EntryBatches(database, stamp=str)
    batches.open()
    driver: Any = batches._connected().connection.driver_connection
    pages = driver.execute("PRAGMA page_count").fetchone()[0]
    driver.execute(f"PRAGMA max_page_count={pages + 10}").close()
    written = batches.write(put(heard(message_id="a"), heard("\ud83d"), heard("x" * 200_000), heard(message_id="b")))
    assert (written.done, written.bad) == (2, (1,))
    assert "full" in written.failure
    assert column(database, messages.c.message_id) == ["a"]
    assert batches.write(put(heard("x" * 200_000, message_id="large"), heard(message_id="b"))) == Written(2)
    assert column(database, messages.c.message_id) == ["a", "large", "b"]
    batches.close()
    database.close()


def test_a_connection_that_died_is_replaced(postgres: str) -> None:
    database = Database(postgres, migrate=migrate)
    batches = EntryBatches(database, stamp=str)
    assert batches.write(put(heard(message_id="a"))) == Written(1)
    pid = batches._connected().scalar(text("SELECT pg_backend_pid()"))
    batches._connected().rollback()
    with database.reading() as other:
        other.execute(text("SELECT pg_terminate_backend(:pid)"), {"pid": pid})
    entries = put(heard(message_id="b"))
    failed = batches.write(entries)
    assert (failed.done, bool(failed.failure)) == (0, True)
    assert batches.write(entries) == Written(1)
    assert column(database, messages.c.message_id) == ["a", "b"]
    batches.close()
    database.close()


def test_a_damaged_file_is_put_aside_and_a_new_one_begun(sqlite: str, tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data/frost.db").write_bytes(b"this is not a database" * 100)
    database = Database(sqlite, migrate=migrate)
    batches = EntryBatches(database, stamp=lambda: "20250101-000000")
    failure = batches.open()
    aside = tmp_path / "data/frost.db.corrupt-20250101-000000"
    assert failure == f"file is not a database; it was moved to {aside}, and a new one is begun"
    assert aside.read_bytes().startswith(b"this is not")
    assert batches.write(put(heard())) == Written(1)
    batches.close()
    database.close()


def test_a_file_that_a_read_found_damaged_is_put_aside_too(sqlite: str) -> None:
    database = Database(sqlite, migrate=migrate)
    batches = EntryBatches(database, stamp=lambda: "now")
    batches.write(put(heard(message_id="old")))
    batches.condemn("malformed")
    assert "malformed; it was moved to" in batches.write([]).failure
    assert batches.write(put(heard(message_id="new"))) == Written(1)
    assert column(database, messages.c.message_id) == ["new"]
    batches.close()
    database.close()


def test_a_place_that_cannot_be_used_is_said_in_words(tmp_path: Path) -> None:
    (tmp_path / "data").write_text("a file where the folder should be")
    database = Database(f"sqlite:///{tmp_path}/data/frost.db", migrate=migrate)
    batches = EntryBatches(database, stamp=str)
    assert "File exists" in batches.open() or "Not a directory" in batches.open()
    assert "exists" in batches.write(put(heard())).failure
    (tmp_path / "data").unlink()
    assert batches.write(put(heard())) == Written(1)
    batches.close()
    database.close()


def test_a_schema_that_is_newer_ends_the_start_but_not_the_journal(batches: EntryBatches, database: Database) -> None:
    with database.connect() as connection, connection.begin():
        connection.execute(text("UPDATE alembic_version SET version_num = '1234'"))
    database.ready = False
    with pytest.raises(ConfigError):
        batches.open()
    assert "newer version" in batches.write(put(heard())).failure


def test_another_job_has_a_transaction_of_its_own(batches: EntryBatches, database: Database) -> None:
    def fail(connection: Connection) -> None:
        connection.execute(messages.delete())
        raise ArithmeticError

    batches.write(put(heard(message_id="a")))
    with pytest.raises(ArithmeticError):
        batches.run(fail)
    assert column(database, messages.c.message_id) == ["a"]
    assert batches.run(lambda connection: connection.execute(messages.delete()).rowcount) == 1
    assert column(database, messages.c.message_id) == []


def test_a_job_that_finds_the_database_gone_lets_go_of_it(sqlite: str) -> None:
    database = Database(sqlite, migrate=migrate)
    batches = EntryBatches(database, stamp=str)
    batches.open()
    other = sqlite3.connect(str(database.file), isolation_level=None)
    other.execute("BEGIN IMMEDIATE").close()
    with pytest.raises(Exception, match="locked"):
        batches.run(lambda connection: connection.execute(messages.delete()).rowcount)
    other.close()
    assert batches.run(lambda connection: connection.execute(messages.delete()).rowcount) == 0
    batches.close()
    database.close()
