"""Schemas of a PostgreSQL server for tests: an empty one, or one with our tables that tests use one after the other.

To make our tables takes the server ten to thirty times as long as emptying them (measured).
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from uuid import uuid4

from sqlalchemy import Connection, Engine, create_engine, make_url, text

from adapters.storage.database import Database
from adapters.storage.migrations import migrate
from adapters.storage.tables import metadata
from adapters.storage.url import read_url

WAITING = "SET LOCAL lock_timeout = '5s'"  # for what a test left open

LOOK = """
SELECT (SELECT version_num FROM alembic_version) || md5(string_agg(
    concat_ws(' ', c.oid, c.relfilenode, c.relhastriggers, c.relhasrules, c.relacl,
        a.attname, a.atttypid, a.attnotnull, a.atthasdef, pg_relation_size(c.oid) > 1000000),
    ',' ORDER BY c.oid, a.attnum))
FROM pg_class c LEFT JOIN pg_attribute a ON a.attrelid = c.oid
WHERE c.relnamespace = current_schema()::regnamespace
"""
"""Differs once a test has made, dropped, changed or truncated something, or has left much behind."""

REWIND = (
    "SELECT setval(oid, 1, false) FROM pg_class WHERE relkind = 'S' AND relnamespace = current_schema()::regnamespace"
)


@dataclass
class Ready:
    """A schema with our tables, all of them empty, and how it looks."""

    name: str
    url: str
    engine: Engine
    look: str


class Schemas:
    """The schemas of a server; `close` drops those that are kept for the next test."""

    def __init__(self, server: str) -> None:
        self._server = server
        self._engine = create_engine(read_url(server))
        self._kept: list[Ready] = []

    @contextmanager
    def empty(self) -> Iterator[str]:
        """The url of a schema with nothing in it."""
        name = self._make()
        yield self._url(name)
        self._drop(name)

    @contextmanager
    def ready(self) -> Iterator[str]:
        """The url of a schema with our tables, and no row in them."""
        schema = self._kept.pop() if self._kept else self._prepare()
        yield schema.url
        if self._emptied(schema):
            self._kept.append(schema)
        else:
            self._put_away(schema)

    def close(self) -> None:
        """Leave nothing behind."""
        for schema in self._kept:
            self._put_away(schema)
        self._engine.dispose()

    def _prepare(self) -> Ready:
        name = self._make()
        url = self._url(name)
        database = Database(url, migrate=migrate)
        database.connect().close()
        database.close()
        engine = create_engine(read_url(url))
        with engine.begin() as connection:
            return Ready(name, url, engine, look_at(connection))

    @staticmethod
    def _emptied(schema: Ready) -> bool:
        """Whether it is again as it was made."""
        with schema.engine.begin() as connection:
            connection.execute(text(WAITING))
            if look_at(connection) != schema.look:
                return False
            connection.execute(text("; ".join(f"DELETE FROM {name}" for name in metadata.tables)))
            connection.execute(text(REWIND))
            return True

    def _put_away(self, schema: Ready) -> None:
        schema.engine.dispose()
        self._drop(schema.name)

    def _make(self) -> str:
        name = f"frost_{uuid4().hex}"
        with self._engine.begin() as connection:
            connection.execute(text(f"CREATE SCHEMA {name}"))
        return name

    def _drop(self, name: str) -> None:
        with self._engine.begin() as connection:
            connection.execute(text(f"DROP SCHEMA {name} CASCADE"))

    def _url(self, name: str) -> str:
        url = make_url(self._server).update_query_dict({"options": f"-csearch_path={name}"})
        return url.render_as_string(hide_password=False)


def look_at(connection: Connection) -> str:
    """What there is in the schema, in short."""
    return str(connection.execute(text(LOOK)).scalar())
