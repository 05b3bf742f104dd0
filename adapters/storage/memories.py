"""Facts that are remembered: their rows, and how they are found again.

A fact stands on a shelf for each place where it is looked for: its conversation, its person,
everywhere. Blocks, but for `SqlMemories`.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

from sqlalchemy import ColumnElement, Connection, Row, and_, delete, func, or_, select, true

from adapters.storage.reads import Reading, readable
from adapters.storage.rows import EVERYWHERE, IN_SCOPE, shelf_of, shelves_of
from adapters.storage.tables import memories, memory_terms
from bot.domain import codec
from bot.domain.events import Conversation
from bot.domain.memories import Kind, StoredFact, Visibility
from bot.domain.ports import Clock

FOUND = 20  # facts of one search
LISTED = IN_SCOPE  # all of one conversation
MOST_SHELVES = 20_000
SOURCES = tuple[str, ...]


class SqlMemories:
    """Fits `Memories`."""

    def __init__(self, *, read: Reading, peek: Reading, clock: Clock) -> None:
        """`peek` finds what is written, without waiting for more."""
        self._read = read
        self._peek = peek
        self._clock = clock
        self._shelves: set[str] | None = None  # those with anything on them; None while unknown
        self._new: set[str] = set()

    def note(self, memory: StoredFact) -> None:
        """Something is put on shelves: from now on they are looked at."""
        self._new.update(shelves_of(memory))

    async def recall(
        self, where: Conversation, asker: int, terms: Collection[str]
    ) -> tuple[StoredFact, ...]:
        """Those that have some of these words and may be told there to whom asks, the best
        first.
        """
        if not terms:
            return ()
        now = self._clock.now()
        return await self._peek(lambda connection: recall(connection, where, asker, terms, now), ())

    async def has_any(self, where: Conversation, asker: int) -> bool:
        """Whether there may be facts to be told there to whom asks; where nothing is remembered, as
        in most places, that costs no read.
        """
        if self._shelves is None:
            self._shelves = await self._peek(shelves, None)
        asked = {str(where), shelf_of(asker), EVERYWHERE}
        if self._shelves is None or len(self._shelves) >= MOST_SHELVES:
            return True
        return not asked.isdisjoint(self._shelves) or not asked.isdisjoint(self._new)

    async def listed(
        self, *, scope: Conversation | None = None, subject: int | None = None
    ) -> tuple[StoredFact, ...] | None:
        """Those of a conversation, or about somebody, or both, the latest first; None where they
        cannot be read.
        """
        now = self._clock.now()
        return await self._read(lambda connection: listed(connection, scope, subject, now), None)


# --- forgetting ---------------------------------------------------------------------------------


def drop(connection: Connection, which: ColumnElement[bool]) -> dict[str, int]:
    """Delete these facts with the words they are found by; how many rows of each table went."""
    ids = select(memories.c.memory_id).where(which)
    terms = connection.execute(delete(memory_terms).where(memory_terms.c.memory_id.in_(ids)))
    gone = connection.execute(delete(memories).where(which))
    return {"memories": gone.rowcount, "memory_terms": terms.rowcount}


# --- reading --------------------------------------------------------------------------------------


def recall(
    connection: Connection, where: Conversation, asker: int, terms: Collection[str], now: float
) -> tuple[StoredFact, ...]:
    """The facts that have most of these words, the latest used first among equals."""
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
    if single:  # in no pair
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
    """The facts with one of these in their texts, but those that are known."""
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
    """The shelves with anything on them, or so many of them that it is no use to know."""
    return set(connection.scalars(select(memory_terms.c.shelf).distinct().limit(MOST_SHELVES)))


def listed(
    connection: Connection, scope: Conversation | None, subject: int | None, now: float
) -> tuple[StoredFact, ...]:
    """The latest facts of a conversation, or about somebody, or both."""
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
        kind=Kind(row.kind or Kind.OTHER),  # none in rows from before 0007
        sources=codec.read(SOURCES, row.sources),
        made=row.made,
        used=row.used,
        expires=row.expires,
    )
