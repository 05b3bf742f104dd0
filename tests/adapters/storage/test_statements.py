"""The statements: complete, compiled for both databases, in an order that keeps dependencies."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace
from sqlalchemy import create_engine

from adapters.storage.batches import EntryBatches, Written
from adapters.storage.database import Database
from adapters.storage.queries import conversations, unfinished
from adapters.storage.statements import Statement, compiled
from adapters.storage.tables import metadata
from bot.core.journal import ConversationReset, Entry, MessageErased, MessageTakenUp, TurnClosed, TurnOpened
from frostagent.types.runs import Stop
from tests.adapters.storage.entries import NOW, asked, closing, heard, opening, put, read
from tests.cases import each_case
from tests.fakes import GROUP, said


@each_case(
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


def given_up(opened: TurnOpened) -> TurnClosed:
    return replace(closing(opened, stop=Stop.STOPPED, keep=False), unread=True)


def overheard_now(batches: EntryBatches, database: Database, *entries: Entry) -> list[str]:
    """The ids of what the next run reads; each entry is a batch of its own."""
    for entry in entries:
        assert batches.write(put(entry)) == Written(1)
    batches.open()
    return [one.message_id for one in read(database, conversations.remember, GROUP).overheard]


def test_a_turn_that_is_given_up_gives_back_what_it_had_overheard_and_nothing_else(
    batches: EntryBatches, database: Database
) -> None:
    first, other = opening("t1", said("q", message_id="10")), opening("t2", said("r", message_id="20"))
    said_since: list[Entry] = [
        heard("c", message_id="3"),
        asked("r", message_id="20"),
        other,
        heard("d", message_id="4"),
    ]
    entries: list[Entry] = [heard("a", message_id="1"), heard("b", message_id="2"), asked("q", message_id="10"), first]
    gone = MessageErased(GROUP, "2")
    assert overheard_now(batches, database, *entries, *said_since, gone, given_up(first)) == ["1", "4"]
    again = opening("t3", said("s", message_id="30"))
    assert overheard_now(batches, database, again) == []
    assert overheard_now(batches, database, given_up(other)) == ["3"]


def test_a_repeated_turn_gives_back_what_the_one_it_repeats_had_overheard(
    batches: EntryBatches, database: Database
) -> None:
    first = opening("t1", said("q", message_id="10"))
    again = replace(first, turn_id="t2", retry_of="t1")
    entries: list[Entry] = [heard("a", message_id="1"), asked("q", message_id="10"), first, again, given_up(again)]
    assert overheard_now(batches, database, *entries) == ["1"]


def test_what_was_said_before_a_reset_is_not_given_back(batches: EntryBatches, database: Database) -> None:
    first = opening("t1", said("q", message_id="10"))
    entries: list[Entry] = [heard("a", message_id="1"), asked("q", message_id="10"), first, heard("b", message_id="2")]
    assert overheard_now(batches, database, *entries, ConversationReset(GROUP), given_up(first)) == []
