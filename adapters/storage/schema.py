"""The columns that tables are made of, the same for both databases."""

from __future__ import annotations

from typing import Any

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    Double,
    Integer,
    MetaData,
    Table,
    Text,
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
