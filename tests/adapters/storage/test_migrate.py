"""Alembic's way to the schema leads to the same one as tables.py."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, inspect, select, text

from adapters.storage.database import Database
from adapters.storage.migrations import configuration, migrate
from adapters.storage.tables import REVISIONS, metadata, versions
from tests.adapters.storage.schemas import Schemas


def schema(connection: Connection) -> dict[str, Any]:
    """Everything the database says of its tables, in an order of its own."""
    if connection.dialect.name == "sqlite":
        # Its own words, without the order of lines and the names of nothing: whatever differs, differs here. (A table
        # that was written anew has its name in quotes, one with a new column its last parenthesis behind that, or that
        # column in the line of the last one.)
        rows = connection.execute(text("SELECT name, sql FROM sqlite_master WHERE sql IS NOT NULL"))
        plain = {name: sql.replace('"', "").removesuffix(")") for name, sql in rows}
        return {
            name: sorted(filter(None, (part.strip() for part in re.split("[,\n]", sql)))) for name, sql in plain.items()
        }
    found = inspect(connection)
    return {
        table: {
            "columns": [{**column, "type": str(column["type"])} for column in found.get_columns(table)],
            "indexes": sorted(found.get_indexes(table), key=lambda index: str(index["name"])),
            "unique": [unique["column_names"] for unique in found.get_unique_constraints(table)],
            "key": found.get_pk_constraint(table)["constrained_columns"],
        }
        for table in found.get_table_names()
    }


@pytest.fixture
def postgres(schemas: Schemas) -> Iterator[str]:
    """The url of an empty schema: how our tables are made is what is tested here."""
    with schemas.empty() as url:
        yield url


def test_the_scripts_are_the_revisions_we_know(database: Database, connection: Connection) -> None:
    scripts = ScriptDirectory.from_config(configuration(connection))
    assert tuple(script.revision for script in reversed(list(scripts.walk_revisions()))) == REVISIONS
    assert scripts.get_current_head() == REVISIONS[-1]


def test_both_ways_lead_to_the_same_schema(database: Database, connection: Connection) -> None:
    made = schema(connection)
    connection.rollback()
    with connection.begin():
        metadata.drop_all(connection)
        versions.drop(connection)
    with connection.begin():
        migrate(connection)
        assert connection.scalar(select(versions.c.version_num)) == REVISIONS[-1]
    assert schema(connection) == made


def test_a_migration_is_part_of_the_transaction_around_it(database: Database, connection: Connection) -> None:
    with connection.begin():
        metadata.drop_all(connection)
        versions.drop(connection)
    transaction = connection.begin()
    migrate(connection)
    transaction.rollback()
    assert inspect(connection).get_table_names() == []


def test_a_database_that_is_up_to_date_is_left_alone(database: Database, connection: Connection) -> None:
    with connection.begin():
        context = MigrationContext.configure(connection)
        assert context.get_current_revision() == REVISIONS[-1]
        migrate(connection)
        assert context.get_current_revision() == REVISIONS[-1]
