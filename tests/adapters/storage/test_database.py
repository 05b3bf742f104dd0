"""Opening: fresh, again, older, newer, somebody else's, by two processes at once; and putting a damaged file aside."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import Connection, inspect, text
from sqlalchemy.exc import DBAPIError

from adapters.storage import database as module
from adapters.storage.database import Database
from adapters.storage.tables import REVISIONS, metadata
from frostagent.types.errors import ConfigError
from tests.adapters.storage.schemas import Schemas

ROOT = Path(__file__).parents[3]

OPEN = """
import sys
from adapters.storage.database import Database
from adapters.storage.tables import messages
from sqlalchemy import func, select
print("ready", flush=True)
sys.stdin.readline()
database = Database(sys.argv[1], migrate=None)
with database.connect() as connection:
    print(connection.scalar(select(func.count()).select_from(messages)))
database.close()
"""


def never(_: Connection) -> None:
    raise AssertionError("there is nothing to migrate")


def revision(database: Database) -> str:
    with database.reading() as connection:
        return str(connection.scalar(text("SELECT version_num FROM alembic_version")))


def with_word(database: Database, word: str) -> None:
    with database.connect() as connection, connection.begin():
        connection.execute(text("INSERT INTO windows (conversation) VALUES (:word)"), {"word": word})


def words(database: Database) -> list[str]:
    with database.reading() as connection:
        return list(connection.scalars(text("SELECT conversation FROM windows ORDER BY id")))


@pytest.fixture
def postgres(schemas: Schemas) -> Iterator[str]:
    """The url of an empty schema: how our tables are made is what is tested here."""
    with schemas.empty() as url:
        yield url


def test_a_fresh_database_gets_its_tables_and_the_next_start_finds_them(url: str) -> None:
    first = Database(url, migrate=never)
    assert not first.ready
    with_word(first, "a")
    assert first.ready
    first.close()
    second = Database(url, migrate=never)
    with_word(second, "b")
    assert words(second) == ["a", "b"]
    assert revision(second) == REVISIONS[-1]
    with second.reading() as connection:
        assert set(inspect(connection).get_table_names()) == {*metadata.tables, "alembic_version"}
    second.close()


def test_nothing_is_written_over_a_connection_that_reads(url: str) -> None:
    database = Database(url, migrate=never)
    with_word(database, "kept")
    for change in ("DELETE FROM windows", "UPDATE windows SET summary = 'x'", "CREATE TABLE more (id INTEGER)"):
        with database.reading() as connection, pytest.raises(DBAPIError, match=r"read-?only"):
            connection.execute(text(change))
    assert words(database) == ["kept"]
    database.close()


def test_the_folder_of_a_file_is_made(tmp_path: Path) -> None:
    database = Database(f"sqlite:///{tmp_path}/a/b/霜.db", migrate=never)
    database.connect().close()
    assert (tmp_path / "a/b/霜.db").is_file()
    database.close()


def test_sqlite_writes_ahead_and_outlives_the_process(sqlite: str) -> None:
    database = Database(sqlite, migrate=never)
    with database.connect() as connection:
        pragmas = {
            name: connection.exec_driver_sql(f"PRAGMA {name}").scalar() for name in ("journal_mode", "synchronous")
        }
    assert pragmas == {"journal_mode": "wal", "synchronous": 1}
    database.close()


def older(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """From now on there is one revision more than the database has seen."""
    database = Database(url, migrate=never)
    with_word(database, "old")
    database.close()
    monkeypatch.setattr(module, "REVISIONS", (*REVISIONS, "0999"))


def step_up(connection: Connection) -> None:
    connection.execute(text("ALTER TABLE windows ADD COLUMN colour TEXT"))
    connection.execute(text("UPDATE alembic_version SET version_num = '0999'"))


def test_an_older_database_is_migrated_once(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    older(url, monkeypatch)
    calls = []

    def migrate(connection: Connection) -> None:
        calls.append(1)
        step_up(connection)

    for word in ("new", "newer"):
        database = Database(url, migrate=migrate)
        with_word(database, word)
        database.close()
    assert calls == [1]
    database = Database(url, migrate=never)
    assert words(database) == ["old", "new", "newer"]
    database.close()


def test_a_file_is_copied_before_it_is_migrated(sqlite: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    older(sqlite, monkeypatch)
    database = Database(sqlite, migrate=step_up)
    with_word(database, "new")
    (copy,) = database.copies()
    assert copy == tmp_path / f"data/frost.db.bak-{REVISIONS[-1]}"
    database.close()
    monkeypatch.undo()
    restored = Database(f"sqlite:///{copy}", migrate=never)
    with_word(restored, "restored")
    assert words(restored) == ["old", "restored"]
    restored.close()


def test_a_migration_that_fails_leaves_everything_as_it_was(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    older(url, monkeypatch)

    def migrate(connection: Connection) -> None:
        step_up(connection)
        raise ArithmeticError("half way")

    database = Database(url, migrate=migrate)
    with pytest.raises(ArithmeticError):
        database.connect()
    assert not database.ready
    assert revision(database) == REVISIONS[-1]
    with database.reading() as connection:
        assert "colour" not in [column["name"] for column in inspect(connection).get_columns("windows")]
    database.close()


def test_a_newer_database_is_refused_with_one_line(url: str) -> None:
    database = Database(url, migrate=never)
    with_word(database, "from the future")
    with database.connect() as connection, connection.begin():
        connection.execute(text("UPDATE alembic_version SET version_num = '1234'"))
    database.close()
    again = Database(url, migrate=never)
    with pytest.raises(ConfigError) as caught:
        again.connect()
    (problem,) = caught.value.problems
    assert problem.name == "STORE_URL"
    assert f"newer version of the bot (its schema is 1234, ours {REVISIONS[-1]})" in problem.what
    assert words(again) == ["from the future"]
    again.close()


def test_a_database_of_something_else_is_refused_and_left_alone(url: str) -> None:
    database = Database(url, migrate=never)
    if database.file is not None:
        database.file.parent.mkdir()
    with database._writing.begin() as connection:
        connection.execute(text("CREATE TABLE messages (mine TEXT)"))
    with pytest.raises(ConfigError, match="its table messages is not ours"):
        database.connect()
    with database.reading() as connection:
        assert inspect(connection).get_table_names() == ["messages"]
    database.close()


@pytest.mark.system
def test_several_processes_may_begin_at_once(url: str) -> None:
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", OPEN, url],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for _ in range(3)
    ]
    for process in processes:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
    for process in processes:
        assert process.stdin is not None
        process.stdin.write("\n")
        process.stdin.flush()
    ends = [process.communicate(timeout=30) for process in processes]
    assert [process.returncode for process in processes] == [0] * 3, ends
    assert [out for out, _ in ends] == ["0\n"] * 3


def test_a_damaged_file_is_put_aside_with_all_its_parts(sqlite: str, tmp_path: Path) -> None:
    database = Database(sqlite, migrate=never)
    with_word(database, "old")
    hold = sqlite3.connect(tmp_path / "data/frost.db")  # so that the log is not folded into the file
    assert list(hold.execute("SELECT count(*) FROM windows")) == [(1,)]
    aside = database.put_aside("then")
    assert aside == f"{tmp_path}/data/frost.db.corrupt-then"
    assert not database.ready
    assert {file.name for file in (tmp_path / "data").iterdir()} >= {
        "frost.db.corrupt-then",
        "frost.db.corrupt-then-wal",
    }
    assert next(file.name for file in database.copies()) == "frost.db.corrupt-then"
    hold.close()
    with_word(database, "new")
    assert words(database) == ["new"]
    database.close()


def test_what_was_put_aside_is_known_by_when_it_was_last_written(sqlite: str, tmp_path: Path) -> None:
    database = Database(sqlite, migrate=never)
    with_word(database, "old")
    (tmp_path / "data/frost.db.bak-0001").touch()
    assert not database.was_put_aside(0)
    aside = Path(database.put_aside("then"))
    for part in tmp_path.glob("data/*.corrupt-*"):
        os.utime(part, (1000, 1000))
    assert (database.was_put_aside(1000), database.was_put_aside(1001)) == (True, False)
    log = aside.with_name(f"{aside.name}-wal")
    log.touch()
    os.utime(log, (2000, 2000))
    assert (database.was_put_aside(1001), database.was_put_aside(2001)) == (True, False)
    database.close()
    database.close()


def test_postgresql_has_no_copies(postgres: str) -> None:
    database = Database(postgres, migrate=never)
    assert database.copies() == []
    database.close()
