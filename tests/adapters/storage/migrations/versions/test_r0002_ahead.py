"""The second revision, on top of the first."""

from __future__ import annotations

from alembic.migration import MigrationContext
from alembic.operations import Operations
from sqlalchemy import create_engine, inspect, text

from adapters.storage.migrations.versions import r0001_journal, r0002_ahead


def test_it_adds_the_table_of_what_is_written_ahead() -> None:
    engine = create_engine("sqlite://")
    with engine.connect() as connection, Operations.context(MigrationContext.configure(connection)):
        r0001_journal.upgrade()
        before = set(inspect(connection).get_table_names())
        r0002_ahead.upgrade()
        assert set(inspect(connection).get_table_names()) - before == {"ahead"}
    engine.dispose()


def test_the_windows_there_are_stay_as_they_were() -> None:
    engine = create_engine("sqlite://")
    with engine.connect() as connection, Operations.context(MigrationContext.configure(connection)):
        r0001_journal.upgrade()
        connection.execute(text("INSERT INTO windows (conversation, first_turn, read_to) VALUES ('here', 7, 9)"))
        r0002_ahead.upgrade()
        row = connection.execute(text("SELECT * FROM windows")).one()._asdict()
    assert row == {"id": 1, "conversation": "here", "first_turn": 7, "read_to": 9, "light_to": 0, "summary": ""}
    engine.dispose()


def test_it_follows_the_first() -> None:
    assert (r0002_ahead.revision, r0002_ahead.down_revision) == ("0002", r0001_journal.revision)
