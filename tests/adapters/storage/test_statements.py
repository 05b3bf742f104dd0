"""The statements: complete, compiled for both databases, in an order that keeps dependencies."""

from __future__ import annotations

import pytest
from sqlalchemy import create_engine

from adapters.storage.statements import Statement, compiled


@pytest.mark.parametrize(
    ("url", "parameter"),
    [("sqlite+pysqlite:///x.db", ":conversation"), ("postgresql+psycopg://h/x", "%(conversation)s")],
)
def test_every_statement_is_there_in_the_drivers_own_form(url: str, parameter: str) -> None:
    options = {"paramstyle": "named"} if url.startswith("sqlite") else {}
    sql = compiled(create_engine(url, **options).dialect)
    assert set(sql) == set(Statement)
    assert parameter in sql[Statement.MARK_READ]


def test_rows_come_before_what_reads_them() -> None:
    for before, after in [
        (Statement.CONSUME_MESSAGES, Statement.OPEN_TURN),
        (Statement.OPEN_TURN, Statement.ADD_STEP),
        (Statement.OPEN_TURN, Statement.ADD_USAGE),
        (Statement.START_CALL, Statement.FINISH_CALL),
        (Statement.QUEUE_SEND, Statement.CHANGE_SEND),
        (Statement.OPEN_TURN, Statement.SUSPEND_RUN),
        (Statement.OPEN_TURN, Statement.CLOSE_TURN),
        (Statement.OPEN_TURN, Statement.MOVE_WINDOW),
    ]:
        assert before.place < after.place


def test_what_touches_the_same_rows_keeps_its_order() -> None:
    messages = [
        Statement.ADD_MESSAGE,
        Statement.TAKE_BACK_MESSAGE,
        Statement.ERASE_MESSAGE,
        Statement.CONSUME_MESSAGES,
        Statement.MARK_READ,
    ]
    assert {statement.place for statement in messages} == {0}
    assert {statement.place for statement in (Statement.SUSPEND_RUN, Statement.RESUME_RUN, Statement.CLOSE_RUN)} == {8}
