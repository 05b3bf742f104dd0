"""The columns that tables are made of, the same for both databases."""

from __future__ import annotations

from typing import Any

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    Connection,
    Double,
    Index,
    Integer,
    MetaData,
    Table,
    Text,
    event,
    false,
    text,
)

metadata = MetaData()


def table(name: str, *columns: Any, marked: bool = False) -> Table:
    """A new table; where a mark may point at a row of it, an id must not come again after it was
    deleted.
    """
    row_id = Column(
        "id", BigInteger().with_variant(Integer, "sqlite"), primary_key=True, autoincrement=True
    )
    return Table(name, metadata, row_id, *columns, sqlite_autoincrement=marked)


def part_of(name: str, *columns: str, where: str) -> Index:
    """An index of the rows of which that is true."""
    return Index(name, *columns, sqlite_where=text(where))


@event.listens_for(metadata, "before_create")
def _likewise_on_postgres(whole: MetaData, connection: Connection, **_more: Any) -> None:
    # To name PostgreSQL above loads SQLAlchemy's part for it, 2 MiB, for SQLite, too.
    if connection.dialect.name == "postgresql":
        for index in (index for table in whole.tables.values() for index in table.indexes):
            options = index.dialect_options
            options["postgresql"]["where"] = options["sqlite"]["where"]


def words(name: str, **more: Any) -> Column[str]:
    return Column(name, Text, nullable=False, server_default="", **more)


def number(name: str) -> Column[int]:
    return Column(name, BigInteger, nullable=False, server_default=text("0"))


def moment(name: str, *, nullable: bool = False) -> Column[float]:
    """Seconds since 1970."""
    return Column(name, Double, nullable=nullable)


def json(name: str, *, nullable: bool = False) -> Column[str]:
    """Text, not the databases' own JSON types: those change it, and refuse what QQ sends (a
    NUL).
    """
    return Column(name, Text, nullable=nullable, info={"json": True})


def flag(name: str) -> Column[bool]:
    return Column(name, Boolean, nullable=False, server_default=false())
