"""What SQLAlchemy compiled for one store is taken by the others of the same database: every test opens stores of its
own, and each would compile all its statements anew, which was a quarter of what scenarios take.
"""

from __future__ import annotations

from typing import Any

from sqlalchemy import Engine
from sqlalchemy.dialects import registry
from sqlalchemy.dialects.sqlite.pysqlite import SQLiteDialect_pysqlite

COMPILED: dict[Any, Any] = {}


def share(engine: Engine) -> None:
    """Let a new engine take what there is, and keep what it adds."""
    engine.update_execution_options(compiled_cache=COMPILED)


class SharedDialect(SQLiteDialect_pysqlite):
    """SQLite's, all of which are the same: they are part of the keys of what was compiled."""

    supports_statement_cache = True

    def __eq__(self, other: object) -> bool:
        return isinstance(other, SharedDialect)

    def __hash__(self) -> int:
        return hash(SharedDialect)

    @classmethod
    def engine_created(cls, engine: Engine) -> None:
        share(engine)


def share_compiled() -> None:
    """From now on, in this process; what PostgreSQL needs is imported where it is used."""
    for name in ("sqlite", "sqlite.pysqlite"):
        registry.register(name, __name__, SharedDialect.__name__)
    registry.register("postgresql.psycopg", "tests.compiling_postgres", "SharedPostgres")
