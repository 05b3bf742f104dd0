"""Which errors are whose fault: real errors of the real drivers."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
from sqlalchemy import create_engine, text
from sqlalchemy.exc import DBAPIError

from adapters.storage.database import Blame, Unusable, describe_error, fault
from adapters.storage.url import read_url
from frostagent.types.errors import ConfigError, Problem
from tests.cases import each_case


def raised(work: Callable[[], object]) -> Exception:
    with pytest.raises(Exception) as caught:  # noqa: PT011  # any: what it is, is the question
        work()
    error = caught.value
    assert isinstance(error, Exception)
    return error


def in_sqlite(sql: str, *values: object) -> Exception:
    connection = sqlite3.connect(":memory:")
    try:
        connection.execute("CREATE TABLE t (a INTEGER NOT NULL UNIQUE, b TEXT)")
        connection.execute("INSERT INTO t VALUES (1, '')")
        return raised(lambda: connection.execute(sql, values))
    finally:
        connection.close()


@each_case(
    "values",
    [(1, ""), (None, ""), (2**64, ""), (2, "\ud83d"), (2, object()), (2, ["a"])],
)
def test_a_value_that_fits_nowhere_is_the_entrys_own_fault(values: tuple[object, ...]) -> None:
    assert fault(in_sqlite("INSERT INTO t VALUES (?, ?)", *values)) is Blame.ENTRY


@each_case("sql", ["INSERT INTO nowhere VALUES (1)", "nonsense"])
def test_a_database_without_our_tables_is_an_outage(sql: str) -> None:
    assert fault(in_sqlite(sql)) is Blame.OUTAGE


def test_a_file_that_is_no_database_is_damage(tmp_path: Path) -> None:
    (tmp_path / "x.db").write_bytes(b"this is not a database" * 100)
    connection = sqlite3.connect(tmp_path / "x.db")
    error = raised(lambda: connection.execute("SELECT * FROM sqlite_master"))
    connection.close()
    assert fault(error) is Blame.DAMAGE
    assert describe_error(error) == "file is not a database"


@each_case(
    "error", [FileExistsError("data is a file"), MemoryError(), Unusable("later"), ConfigError(Problem("A", "b", "c"))]
)
def test_a_place_that_cannot_be_used_is_an_outage(error: Exception) -> None:
    assert fault(error) is Blame.OUTAGE


def test_an_error_inside_sqlalchemys_is_judged_by_what_it_is(tmp_path: Path) -> None:
    engine = create_engine(f"sqlite:///{tmp_path}", hide_parameters=True)
    error = raised(engine.connect)
    assert isinstance(error, DBAPIError)
    assert fault(error) is Blame.OUTAGE
    assert describe_error(error) == "unable to open database file"


def test_postgresql_errors_are_told_apart_too(postgres: str) -> None:
    engine = create_engine(read_url(postgres), hide_parameters=True)
    with engine.connect() as connection:
        for sql, values, expected in [
            ("SELECT CAST(:a AS TEXT)", {"a": "a\0b"}, Blame.ENTRY),
            ("SELECT CAST(:a AS BIGINT)", {"a": 2**64}, Blame.ENTRY),
            ("SELECT CAST(:a AS TEXT)", {"a": "\ud83d"}, Blame.ENTRY),
            ("SELECT CAST(:a AS TEXT)", {"a": object()}, Blame.ENTRY),
            ("SELECT * FROM nowhere", {}, Blame.OUTAGE),
        ]:
            error = raised(partial(connection.execute, text(sql), values))
            assert fault(error) is expected, sql
            connection.rollback()
    engine.dispose()


def test_a_server_that_is_not_there_is_an_outage() -> None:
    engine = create_engine(read_url("postgresql://bot:sesame@127.0.0.1:1/frost"))
    error = raised(engine.connect)
    assert fault(error) is Blame.OUTAGE
    assert "sesame" not in describe_error(error)


def test_words_are_one_line_and_never_empty() -> None:
    assert describe_error(ValueError("one\ntwo")) == "one"
    assert describe_error(TimeoutError()) == "TimeoutError"
    assert len(describe_error(ValueError("x" * 1000))) == 300
