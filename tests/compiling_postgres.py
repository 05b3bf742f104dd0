"""As `tests/compiling.py`, for PostgreSQL."""

from __future__ import annotations

from sqlalchemy import Engine
from sqlalchemy.dialects.postgresql.psycopg import PGDialect_psycopg

from tests.compiling import share


class SharedPostgres(PGDialect_psycopg):
    """Those of the tests' one server, all of which are the same."""

    supports_statement_cache = True

    def __eq__(self, other: object) -> bool:
        return isinstance(other, SharedPostgres)

    def __hash__(self) -> int:
        return hash(SharedPostgres)

    @classmethod
    def engine_created(cls, engine: Engine) -> None:
        share(engine)
