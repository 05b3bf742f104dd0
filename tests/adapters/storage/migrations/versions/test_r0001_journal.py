"""The first revision, from nothing."""

from __future__ import annotations

from alembic.migration import MigrationContext
from alembic.operations import Operations
from sqlalchemy import create_engine, inspect

from adapters.storage.migrations.versions import r0001_journal


def test_it_makes_the_first_tables() -> None:
    engine = create_engine("sqlite://")
    with engine.connect() as connection, Operations.context(MigrationContext.configure(connection)):
        r0001_journal.upgrade()
        found = inspect(connection)
        assert found.get_table_names() == [
            "messages",
            "runs",
            "sends",
            "steps",
            "tool_calls",
            "turns",
            "usage",
            "windows",
        ]
        assert {index["name"] for index in found.get_indexes("messages")} == {
            "messages_by_conversation",
            "messages_by_message_id",
            "messages_by_time",
        }
    engine.dispose()


def test_it_is_the_beginning() -> None:
    assert (r0001_journal.revision, r0001_journal.down_revision) == ("0001", None)
