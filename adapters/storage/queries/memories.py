"""Remembered facts, and how they are found.

A fact is on a shelf for each place where it may be found: its conversation, its person, everywhere.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

from sqlalchemy import ColumnElement, Connection, Row, and_, func, or_, select, true

from adapters.storage.queries.scanning import readable
from adapters.storage.rows import EVERYWHERE, IN_SCOPE, shelf_of
from adapters.storage.tables import memories, memory_terms
from bot.core import codec
from bot.core.conversation import Conversation
from bot.core.memories import Kind, StoredFact, Visibility

FOUND = 20  # facts of one search


LISTED = IN_SCOPE  # all of one conversation


MOST_SHELVES = 20_000


SOURCES = tuple[str, ...]


def recall(
    connection: Connection, where: Conversation, asker: int, terms: Collection[str], now: float
) -> tuple[StoredFact, ...]:
    """The facts with most of these words, then the most recently used."""
    hits = (
        select(memory_terms.c.memory_id, func.count(memory_terms.c.term.distinct()).label("hits"))
        .where(
            memory_terms.c.shelf.in_((str(where), shelf_of(asker), EVERYWHERE)),
            memory_terms.c.term.in_(terms),
        )
        .group_by(memory_terms.c.memory_id)
        .subquery()
    )
    found = (
        select(memories)
        .join(hits, hits.c.memory_id == memories.c.memory_id)
        .where(memories.c.expires > now, _may_be_told(where))
        .order_by(hits.c.hits.desc(), memories.c.used.desc(), memories.c.id.desc())
        .limit(FOUND)
    )
    told = connection.execute(found).all()
    single = [term for term in terms if len(term) == 1 and not term.isascii()]
    if single:  # not in the index of pairs
        told = [*told, *_by_character(connection, where, asker, single, told, now)]
    return tuple(readable(_memory, told))


def _may_be_told(where: Conversation) -> ColumnElement[bool]:
    here = memories.c.conversation == str(where)
    return or_(here, ~memories.c.private) if where.is_group else true()


def _by_character(
    connection: Connection,
    where: Conversation,
    asker: int,
    characters: Collection[str],
    told: Collection[Row[Any]],
    now: float,
) -> Sequence[Row[Any]]:
    """The facts that contain one of these characters, except those already found."""
    shelves_elsewhere = memory_terms.c.shelf.in_((shelf_of(asker), EVERYWHERE))
    elsewhere = memories.c.memory_id.in_(select(memory_terms.c.memory_id).where(shelves_elsewhere))
    query = (
        select(memories)
        .where(
            or_(memories.c.conversation == str(where), elsewhere),
            and_(memories.c.expires > now, _may_be_told(where)),
            or_(*(memories.c.text.contains(term, autoescape=True) for term in characters)),
            memories.c.id.not_in([row.id for row in told]),
        )
        .order_by(memories.c.used.desc())
        .limit(FOUND)
    )
    return connection.execute(query).all()


def shelves(connection: Connection) -> set[str]:
    """The shelves that are not empty; at most MOST_SHELVES."""
    return set(connection.scalars(select(memory_terms.c.shelf).distinct().limit(MOST_SHELVES)))


def listed(
    connection: Connection, scope: Conversation | None, subject: int | None, now: float
) -> tuple[StoredFact, ...]:
    """The latest facts of a conversation, about a person, or both."""
    query = select(memories).where(memories.c.expires > now)
    if scope is not None:
        query = query.where(memories.c.conversation == str(scope))
    if subject is not None:
        query = query.where(memories.c.subject == subject)
    rows = connection.execute(query.order_by(memories.c.id.desc()).limit(LISTED)).all()
    return tuple(readable(_memory, rows))


def _memory(row: Row[Any]) -> StoredFact:
    return StoredFact(
        memory_id=row.memory_id,
        scope=Conversation.parse(row.conversation),
        subject=row.subject,
        author=row.author,
        text=row.text,
        visibility=Visibility(row.visibility),
        kind=Kind(row.kind or Kind.OTHER),  # empty in rows from before 0007
        sources=codec.read(SOURCES, row.sources),
        made=row.made,
        used=row.used,
        expires=row.expires,
    )
