"""Transactions: each entry wholly or not at all, and never twice."""

from __future__ import annotations

from typing import Any

import pytest
from sqlalchemy import Connection, event, text

from adapters.storage.batches import Doubt, EntryBatches, Written
from adapters.storage.database import Database
from adapters.storage.migrations import migrate
from adapters.storage.tables import messages, sends, tool_calls, turns, usage
from bot.core.journal import Entry, SendChanged, SendState, UsageAdded, UsageReserved
from frostagent.types.messages import ToolMessage, Usage
from tests.adapters.storage.entries import NOW, asked, began, closing, ended, heard, opening, sending, step
from tests.adapters.storage.test_batches import column, put
from tests.fakes import GROUP


def test_a_batch_is_one_transaction(batches: EntryBatches, database: Database) -> None:
    commits: list[Any] = []
    assert batches.open() == ""
    entries = [heard(message_id=str(number)) for number in range(300)]
    with database.reading() as before:
        assert before.scalar(text("SELECT count(*) FROM messages")) == 0
        event.listen(database._writing, "commit", commits.append)
        assert batches.write(put(*entries)) == Written(300)
        if database.is_sqlite:  # a reader keeps seeing what it saw
            assert before.scalar(text("SELECT count(*) FROM messages")) == 0
    assert column(database, messages.c.message_id) == [str(number) for number in range(300)]
    assert column(database, messages.c.taken) == [NOW + number for number in range(300)]


def test_entries_that_hang_together_may_come_in_one_batch(batches: EntryBatches, database: Database) -> None:
    opened = opening("t1")
    finished = ended("t1", ToolMessage("c", "n", "r"), 1, code="ok", seconds=1.0)
    entries: list[Entry] = [
        asked(),
        opened,
        step("t1"),
        began("t1", 1, "c", "n"),
        finished,
        sending("s1", "t1"),
        SendChanged(send_id="s1", state=SendState.SENDING, at=NOW),
        SendChanged(send_id="s1", state=SendState.CONFIRMED, at=NOW, message_id="99"),
        SendChanged(send_id="s1", state=SendState.CONFIRMED, at=NOW),
        closing(opened),
    ]
    assert batches.write(put(*entries)) == Written(10)
    assert column(database, sends.c.state) == ["confirmed"]
    assert column(database, sends.c.message_id) == ["99"]  # a later word without an id does not take it away
    assert column(database, tool_calls.c.code) == ["ok"]
    assert column(database, usage.c.conversation) == ["10001:group:4242"]
    assert column(database, usage.c.asker) == [777]
    assert column(database, turns.c.closed) == [NOW + 1]


def test_the_usage_of_a_turn_that_is_not_known_is_kept(batches: EntryBatches, database: Database) -> None:
    assert batches.write(put(step("nowhere"))) == Written(1)
    assert column(database, usage.c.cost) == [0.25]


def test_what_was_asked_for_before_its_turn_is_open_says_itself_who_pays(
    batches: EntryBatches, database: Database
) -> None:
    added = UsageAdded(turn_id="t1", model="w", usage=Usage(30), at=NOW, payer=(GROUP, 5))
    reserved = UsageReserved(turn_id="t2", number=7, model="w", usage=Usage(30), at=NOW, payer=(GROUP, 0))
    assert batches.write(put(reserved, added)) == Written(2)
    assert column(database, usage.c.conversation) == [str(GROUP)] * 2
    assert column(database, usage.c.asker) == [0, 5]


def test_a_call_that_starts_again_has_no_result_yet(batches: EntryBatches, database: Database) -> None:
    """Should chance have given the ids before, what was under way must not look finished."""
    started = began("t1", 1, "c", "n")
    finished = ended("t1", ToolMessage("c", "n", "r"), 1, code="ok", seconds=1.0)
    for entry in (opening("t1"), started, finished, started):
        batches.write(put(entry))
    assert column(database, tool_calls.c.result) == [None]


class LostAnswer:
    """A connection of a driver whose commit works, but whose answer never arrives (or: does not even work)."""

    def __init__(self, driver: Any, *, committed: bool) -> None:
        self._driver = driver
        self._committed = committed

    def __getattr__(self, name: str) -> Any:
        return getattr(self._driver, name)

    def commit(self) -> None:
        if self._committed:
            self._driver.commit()
        raise ConnectionResetError("the connection was lost")


@pytest.mark.parametrize("committed", [True, False])
def test_a_commit_without_an_answer_is_looked_up_before_anything_is_written_again(
    postgres: str, monkeypatch: pytest.MonkeyPatch, committed: bool
) -> None:
    database = Database(postgres, migrate=migrate)
    batches = EntryBatches(database, stamp=str)
    batches.open()
    entries = put(heard(message_id="a"), heard(message_id="b"))
    with monkeypatch.context() as patch:
        whole = Connection.connection.fget  # type: ignore[attr-defined]  # it is a property
        lost = property(lambda self: LostAnswer(whole(self), committed=committed))
        patch.setattr(Connection, "connection", lost)
        assert batches.write(entries).failure == "the connection was lost"
    assert batches.write([*entries, *put(heard(message_id="c"))]) == Written(3)
    assert column(database, messages.c.message_id) == ["a", "b", "c"]
    batches.close()
    database.close()


def test_a_commit_the_server_is_still_busy_with_is_waited_for(postgres: str) -> None:
    database = Database(postgres, migrate=migrate)
    batches, slow = EntryBatches(database, stamp=str), Database(postgres, migrate=migrate)
    batches.open()
    with slow.connect() as busy:
        number = busy.scalar(text("SELECT pg_current_xact_id()::text"))
        batches._transactions._doubt = Doubt(str(number), 1)
        assert "not yet decided" in batches.write(put(heard())).failure
        busy.rollback()
    assert batches.write(put(heard())) == Written(1)
    for each in (batches, slow, database):
        each.close()
