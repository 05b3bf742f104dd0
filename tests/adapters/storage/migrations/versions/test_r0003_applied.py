"""The third revision, on top of the second."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

from alembic.migration import MigrationContext
from alembic.operations import Operations
from sqlalchemy import create_engine, inspect, text

from adapters.storage.ahead import Ahead, Put, ahead_of
from adapters.storage.batches import EntryBatches
from adapters.storage.database import Database
from adapters.storage.migrate import migrate
from adapters.storage.migrations.versions import r0001_journal, r0002_ahead, r0003_applied
from bot.domain import codec
from tests.adapters.storage.entries import NOW, heard


def at_the_second(file: Path, *rows: tuple[int, float, str]) -> None:
    """A database of the second revision; `rows` were written ahead in it, by a process that was killed."""
    engine = create_engine(f"sqlite:///{file}")
    with engine.begin() as connection, Operations.context(MigrationContext.configure(connection)):
        r0001_journal.upgrade()
        r0002_ahead.upgrade()
        for number, taken, entry in rows:
            values = {"id": number, "taken": taken, "entry": entry}
            connection.execute(text("INSERT INTO ahead (id, taken, entry) VALUES (:id, :taken, :entry)"), values)
        connection.execute(text("CREATE TABLE alembic_version (version_num VARCHAR(32) NOT NULL)"))
        connection.execute(text("INSERT INTO alembic_version VALUES ('0002')"))
    engine.dispose()


def test_it_puts_a_number_in_the_place_of_the_table() -> None:
    engine = create_engine("sqlite://")
    with engine.connect() as connection, Operations.context(MigrationContext.configure(connection)):
        r0001_journal.upgrade()
        r0002_ahead.upgrade()
        before = set(inspect(connection).get_table_names())
        r0003_applied.upgrade()
        assert set(inspect(connection).get_table_names()) ^ before == {"ahead", "applied"}
        assert connection.execute(text("SELECT * FROM applied")).all() == []
    engine.dispose()


def test_what_was_written_ahead_and_never_applied_is_applied(tmp_path: Path) -> None:
    file = tmp_path / "frost.db"
    entries = [heard("一\n二", message_id="1"), heard(message_id="2")]
    at_the_second(file, *[(7 + place, NOW + place, codec.write(entry)) for place, entry in enumerate(entries)])
    database = Database(f"sqlite:///{file}", migrate=migrate)
    with closing(database):
        EntryBatches(database, stamp=str, ahead=ahead_of(database.file)).settle()
    with closing(sqlite3.connect(file)) as connection:
        rows = connection.execute("SELECT message_id, taken FROM messages ORDER BY id").fetchall()
        assert rows == [("1", NOW), ("2", NOW + 1)]
        assert connection.execute("SELECT number FROM applied").fetchone() == (8,)


def test_what_was_moved_before_the_process_ended_is_not_applied_twice(tmp_path: Path) -> None:
    """The lines are there and the rows, too, where it ended in the middle of the migration."""
    file, entry = tmp_path / "frost.db", heard(message_id="1")
    at_the_second(file, (7, NOW, codec.write(entry)))
    lines = tmp_path / "frost.db-ahead"
    lines.write_text(f"7 {NOW!r} {codec.write(entry)}\n", "utf-8")
    database = Database(f"sqlite:///{file}", migrate=migrate)
    with closing(database):
        EntryBatches(database, stamp=str, ahead=Ahead(file)).settle()
        with database.reading() as connection:
            assert connection.scalar(text("SELECT count(*) FROM messages")) == 1


def test_lines_are_as_they_are_written_today(tmp_path: Path) -> None:
    file, entry = tmp_path / "frost.db", heard("霜", message_id="1")
    at_the_second(file, (7, NOW, codec.write(entry)))
    database = Database(f"sqlite:///{file}", migrate=migrate)
    with closing(database):
        database.connect().close()
    (put,) = Ahead(file).left(0)
    assert put == Put(entry, NOW, 7)


def test_it_follows_the_second() -> None:
    assert (r0003_applied.revision, r0003_applied.down_revision) == ("0003", r0002_ahead.revision)
