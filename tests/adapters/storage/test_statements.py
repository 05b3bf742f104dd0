"""The statements: complete, compiled for both databases, in an order that keeps dependencies."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace
from sqlalchemy import create_engine

from adapters.storage import unfinished
from adapters.storage.batches import EntryBatches
from adapters.storage.database import Database
from adapters.storage.statements import Statement, compiled
from adapters.storage.tables import metadata
from bot.domain.journal import MessageTakenUp
from tests.adapters.storage.entries import NOW, asked, heard, opening, put, read


@pytest.mark.parametrize(
    ("url", "parameter", "values"),
    [
        ("sqlite+pysqlite:///x.db", "VALUES (?,", ("here", "here")),
        ("postgresql+psycopg://h/x", "VALUES (%(conversation)s,", {"conversation": "here"}),
    ],
)
def test_every_statement_is_there_in_the_drivers_own_form(url: str, parameter: str, values: Any) -> None:
    statements = compiled(create_engine(url).dialect)
    assert set(statements) == set(Statement)
    assert parameter in statements[Statement.MARK_READ].sql
    assert statements[Statement.MARK_READ].values({"conversation": "here"}) == values


def test_values_stand_in_the_order_of_the_statement_and_a_single_one_is_in_a_row_too() -> None:
    statements = compiled(create_engine("sqlite://").dialect)
    closing = {"at": 1.0, "turn_id": "t", "round": "[]"}
    assert statements[Statement.CLOSE_TURN].values(closing) == ("[]", 1.0, "t")
    assert statements[Statement.RESUME_RUN].values({"run_id": "t"}) == ("t",)


def test_no_statement_walks_over_a_whole_table() -> None:
    engine = create_engine("sqlite://")
    metadata.create_all(engine)
    with engine.connect() as connection:
        for statement, prepared in compiled(engine.dialect).items():
            nothing = [None] * prepared.sql.count("?")
            plan = connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {prepared.sql}", tuple(nothing)).all()
            assert not [step for step in plan if step[3].split()[:2] in [["SCAN", name] for name in metadata.tables]], (
                statement
            )
    engine.dispose()


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
    assert Statement.SUSPEND_RUN.place == Statement.RESUME_RUN.place == Statement.CLOSE_RUN.place


# --- what a question is made of ---


def test_the_lines_of_a_question_are_taken_up_with_it(batches: EntryBatches, database: Database) -> None:
    lines, other = [asked("one"), heard("two"), asked("three")], asked("of somebody else", user=5)
    opened = replace(opening("t1", lines[-1].message), lines=tuple(line.message for line in lines[:2]))
    batches.write(put(*lines, other, opened))
    recovery = read(database, unfinished.recover, NOW)
    assert recovery.waking == (other.message,)
    assert [turn.turn_id for turn in recovery.turns] == ["t1"]


def test_a_line_that_was_overheard_and_belongs_to_a_question_waits_with_it(
    batches: EntryBatches, database: Database
) -> None:
    line, other, question = heard("first"), heard("second"), asked("third")
    batches.write(put(line, other, question, MessageTakenUp(line.message)))
    assert read(database, unfinished.recover, NOW).waking == (line.message, question.message)
    batches.write(put(replace(opening("t1", question.message), lines=(line.message,))))
    assert read(database, unfinished.recover, NOW).waking == ()
