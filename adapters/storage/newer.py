"""The part that stays when a person or group is erased a second time: what people have said since
the first time, and the turns that answer it. Blocks.

Only the rows of our own accounts are told apart by our clock; another worker's has another one.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import Any

from msgspec import Struct
from sqlalchemy import ColumnElement, Connection, Table, false, select

from adapters.storage.tables import messages, speakers, things, turns, verdicts
from bot.domain.events import Conversation

MOST = 1000  # messages, the latest; it is about the moment between two erasures


class Newer(Struct, frozen=True):
    """The ids of the rows that stay, by table, and those turns' own ids."""

    rows: dict[str, tuple[int, ...]] = {}
    turn_ids: tuple[str, ...] = ()

    def has(self, table: Table) -> ColumnElement[bool]:
        """Whether a row of this table stays."""
        ids = self.rows.get(table.name)
        return table.c.id.in_(ids) if ids else false()

    def has_turn(self, table: Table) -> ColumnElement[bool]:
        """Whether the turn of a row of this table stays."""
        return table.c.turn_id.in_(self.turn_ids) if self.turn_ids else false()


NOTHING = Newer()


def newer(connection: Connection, since: float, has: Callable[[Conversation], bool]) -> Newer:
    """The rows taken after that, in seconds since 1970, in the conversations that we `has`.

    A turn belongs to it that was opened for one of these messages: it read nothing that was let go
    of before. What the bot says itself does not: it may be of an older turn.
    """
    if math.isinf(since):
        return NOTHING
    query = (
        select(messages.c.id, messages.c.conversation, messages.c.message_id, messages.c.sender)
        .where(messages.c.taken > since, messages.c.sender != messages.c.self_id)
        .where(~messages.c.erased)
        .order_by(messages.c.id.desc())
        .limit(MOST)
    )
    said = [row for row in connection.execute(query) if has(Conversation.parse(row.conversation))]
    if not said:
        return NOTHING
    named = {(row.conversation, row.message_id) for row in said}
    people = {(row.conversation, row.sender) for row in said}

    def found(table: Table, key: str, known: set[tuple[str, Any]], *where: Any) -> list[Any]:
        among = table.c[key].in_({value for _, value in known})
        rows = connection.execute(select(table).where(among, *where))
        return [row for row in rows if (row.conversation, getattr(row, key)) in known]

    opened = found(turns, "message_id", named, turns.c.opened > since)
    return Newer(
        {
            messages.name: _ids(said),
            verdicts.name: _ids(found(verdicts, "message_id", named, verdicts.c.at > since)),
            things.name: _ids(found(things, "message_id", named, things.c.at > since)),
            speakers.name: _ids(found(speakers, "user_id", people)),
            turns.name: _ids(opened),
        },
        tuple(row.turn_id for row in opened),
    )


def _ids(rows: Iterable[Any]) -> tuple[int, ...]:
    return tuple(row.id for row in rows)
