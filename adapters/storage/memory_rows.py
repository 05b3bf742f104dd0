"""Facts that are remembered, as the statements that write them. Pure.

A fact stands on a shelf for each place where it is looked for: its conversation, its person,
everywhere.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import assert_never

from adapters.storage.columns import Row, plain
from adapters.storage.statements import Statement
from bot.domain import codec
from bot.domain.memories import (
    MemoriesForgotten,
    MemoriesUsed,
    MemoryKept,
    StoredFact,
    Visibility,
)

IN_SCOPE = 500  # facts of one conversation: of more the least used go
EVERYWHERE = "everywhere"
"""The shelf of what may be told wherever anybody asks."""


def memory_rows(entry: MemoryKept | MemoriesUsed | MemoriesForgotten) -> tuple[Row, ...]:
    """The statements of an entry, in the order they must be executed."""
    match entry:
        case MemoryKept(memory=memory, terms=terms):
            return _kept_memory(memory, terms)
        case MemoriesUsed(memory_ids=ids, at=at, expires=expires):
            used = ({"memory_id": id_, "at": at, "expires": expires} for id_ in ids)
            return tuple((Statement.USE_MEMORY, row) for row in used)
        case MemoriesForgotten(memory_ids=ids):
            gone = [{"memory_id": id_} for id_ in ids]
            return (
                *((Statement.FORGET_TERMS, row) for row in gone),
                *((Statement.FORGET_MEMORY, row) for row in gone),
            )
        case _:
            assert_never(entry)


def unlearned(conversation: str, message_id: str) -> tuple[Row, ...]:
    """The statements that forget what was taken from this message."""
    named = codec.write(message_id).replace("!", "!!").replace("%", "!%").replace("_", "!_")
    taken = {"conversation": conversation, "named": f"%{named}%"}
    return (Statement.UNLEARN_TERMS, taken), (Statement.UNLEARN, taken)


def _kept_memory(memory: StoredFact, terms: Iterable[str]) -> tuple[Row, ...]:
    place = {"memory_id": memory.memory_id, "conversation": str(memory.scope)}
    row = {
        **place,
        "private": not memory.scope.is_group,
        "subject": memory.subject,
        "author": memory.author,
        "text": plain(memory.text),
        "visibility": str(memory.visibility),
        "kind": str(memory.kind),
        "sources": codec.write(memory.sources),
        "made": memory.made,
        "used": memory.used,
        "expires": memory.expires,
    }
    found_by = (
        (Statement.ADD_TERM, {**place, "shelf": shelf, "term": plain(term)})
        for shelf in shelves_of(memory)
        for term in terms
    )
    crop = {"conversation": str(memory.scope), "most": IN_SCOPE}
    return (
        (Statement.FORGET_TERMS, {"memory_id": memory.memory_id}),
        (Statement.KEEP_MEMORY, row),
        *found_by,
        (Statement.CROP_TERMS, crop),
        (Statement.CROP_MEMORIES, crop),
    )


def shelves_of(memory: StoredFact) -> tuple[str, ...]:
    """The shelves a fact stands on: its conversation's, and where else it may be told."""
    here = str(memory.scope)
    match memory.visibility:
        case Visibility.HERE:
            return (here,)
        case Visibility.PERSON:
            return (here, shelf_of(memory.subject))
        case Visibility.EVERYWHERE:
            return (here, EVERYWHERE)


def shelf_of(user: int) -> str:
    """The shelf of what may be told wherever this person asks."""
    return f"person:{user}"
