"""Forgetting: what a person said, or was said in a group, leaves every table, and its bytes leave
the file. Blocks.

A person's words are their messages, the turns they asked for, and the turns that read them:
whatever is rendered names everybody as `name(number)` (bot/prompt/render.py). What the model made
of them in its later words cannot be found.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from msgspec.structs import replace
from sqlalchemy import ColumnElement, Connection, Table, delete, or_, select, text, update

from adapters.storage.database import Database
from adapters.storage.failures import Unusable
from adapters.storage.rows import SEGMENTS
from adapters.storage.tables import (
    BY_TURN,
    messages,
    metadata,
    sends,
    turns,
    usage,
    verdicts,
    windows,
)
from bot.domain import codec
from bot.domain.segments import Mention, Segment

# To empty the write-ahead log while somebody reads; each waits for as long as SQLite waits for a
# lock.
TRIES = 10


@dataclass(frozen=True, slots=True)
class _Whose:
    """What is to go: all of these conversations, and besides these rows elsewhere."""

    conversations: str
    messages: tuple[ColumnElement[bool], ...] = ()
    turns: tuple[ColumnElement[bool], ...] = ()
    usage: tuple[ColumnElement[bool], ...] = ()
    verdicts: tuple[ColumnElement[bool], ...] = ()


def forget_user(database: Database, user: int) -> dict[str, int]:
    """Erase a person; how many rows of each table went. Raises ConfigError, Unusable, the driver's
    errors.
    """
    named = f"%({user})%"
    whose = _Whose(
        f"%:private:{user}",
        messages=(messages.c.sender == user,),
        turns=(turns.c.asker == user, turns.c.user.like(named), turns.c.round.like(named)),
        usage=(usage.c.asker == user,),
        verdicts=(verdicts.c.sender == user,),
    )
    with database.connect() as connection:
        with connection.begin():
            _erase_summaries(connection, whose, named)
            gone = _erase(connection, whose)
            _erase_names(connection, user)
        _compact(connection)
    return gone


def forget_group(database: Database, group: int) -> dict[str, int]:
    """Erase a group, for every account of the bot; how many rows of each table went. Raises as
    `forget_user`.
    """
    with database.connect() as connection:
        with connection.begin():
            gone = _erase(connection, _Whose(f"%:group:{group}"))
        _compact(connection)
    return gone


def _erase(connection: Connection, whose: _Whose) -> dict[str, int]:
    def rows(table: Table, *more: ColumnElement[bool]) -> ColumnElement[bool]:
        return or_(table.c.conversation.like(whose.conversations), *more)

    their_turns = rows(turns, *whose.turns)
    turn_ids, every_turn = select(turns.c.turn_id).where(their_turns), select(turns.c.turn_id)
    conditions = {
        # And those of turns that are gone: a turn that went on while it was erased may have left
        # some.
        **{
            table: or_(table.c.turn_id.in_(turn_ids), table.c.turn_id.not_in(every_turn))
            for table in BY_TURN
        },
        usage: rows(usage, usage.c.turn_id.in_(turn_ids), *whose.usage),
        sends: rows(sends, sends.c.turn_id.in_(turn_ids)),
        messages: rows(messages, *whose.messages),
        windows: rows(windows),
        verdicts: rows(verdicts, *whose.verdicts),
        turns: their_turns,  # last: the others ask it which turns
    }
    return {
        table.name: connection.execute(delete(table).where(rows)).rowcount
        for table, rows in conditions.items()
    }


def _erase_summaries(connection: Connection, whose: _Whose, named: str) -> None:
    """Of every conversation in which they said something: the words of a summary are
    everybody's.
    """
    spoken = select(messages.c.conversation).where(*whose.messages)
    asked = select(turns.c.conversation).where(or_(*whose.turns))
    theirs = or_(windows.c.summary.like(named), windows.c.conversation.in_(spoken.union(asked)))
    connection.execute(update(windows).where(windows.c.summary != "", theirs).values(summary=""))


def _erase_names(connection: Connection, user: int) -> None:
    """What others called them when they mentioned them."""
    query = select(messages.c.id, messages.c.segments).where(
        messages.c.segments.like(f'%"user_id":{user},%')
    )
    for row_id, segments in connection.execute(query).all():
        nameless = tuple(_nameless(segment, user) for segment in codec.read(SEGMENTS, segments))
        connection.execute(
            update(messages).where(messages.c.id == row_id).values(segments=codec.write(nameless))
        )


def _nameless(segment: Segment, user: int) -> Segment:
    return (
        replace(segment, name="")
        if isinstance(segment, Mention) and segment.user_id == user
        else segment
    )


def _compact(connection: Connection) -> None:
    """Write the tables anew, so that nothing is left of deleted rows in free space or in the
    write-ahead log.
    """
    driver: Any = connection.connection.driver_connection
    if connection.dialect.name == "sqlite":
        driver.execute("VACUUM").close()
        for _ in range(TRIES):
            busy, *_pages = driver.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
            if not busy:
                return
        raise Unusable(
            "it is erased, but its bytes are still in the log: stop the bot, and forget once more"
        )
    connection.rollback()
    alone = connection.execution_options(isolation_level="AUTOCOMMIT")
    for table in metadata.sorted_tables:
        alone.execute(text(f"VACUUM FULL {table.name}"))
