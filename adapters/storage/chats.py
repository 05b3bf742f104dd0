"""Conversations as the console shows them, read by keyset: blocks, no row is counted."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlalchemy import Connection, Row, and_, func, or_, select

from adapters.storage.reads import NOWHERE, readable, rounds_of, told_of
from adapters.storage.rows import SEGMENTS, SEND_SEGMENTS
from adapters.storage.tables import memories, messages, sends, turns, verdicts, windows
from adapters.storage.turn_queries import SLACK, id_at
from bot.domain import codec
from bot.domain.actions import plain_words
from bot.domain.console_views import ROWS, Chat, ChatLine, ChatRow, ChatRows, Fact
from bot.domain.events import Conversation

SENDS = 200  # shown among the messages of one page
ROUNDS = 1000  # that are counted: no prompt has as many
FACTS = 50  # of one conversation, those told last


def chats(connection: Connection, before: int) -> ChatRows:
    """The conversations, the last spoken in first; `before` a message's id, 0 for any. What is left
    of one that was forgotten is in none.

    Steps from name to name of the index: whoever says much costs nothing more.
    """
    first = select(func.min(messages.c.conversation).label("name")).cte("names", recursive=True)
    further = messages.alias("further")
    following = select(func.min(further.c.conversation)).where(
        further.c.conversation > first.c.name
    )
    names = first.union_all(
        select(following.correlate(first).scalar_subquery()).where(first.c.name.is_not(None))
    )
    said = messages.alias("said")
    newest = select(func.max(said.c.id)).where(said.c.conversation == names.c.name)
    latest = select(newest.correlate(names).scalar_subquery().label("id")).where(
        names.c.name.is_not(None), names.c.name != NOWHERE
    )
    ids = sorted(
        (id_ for (id_,) in connection.execute(latest) if not before or id_ < before), reverse=True
    )
    query = select(messages).where(messages.c.id.in_(ids[:ROWS])).order_by(messages.c.id.desc())
    rows = tuple(readable(_chat_row, connection.execute(query)))
    return ChatRows(rows, ids[ROWS - 1] if len(ids) > ROWS else None)


def chat(connection: Connection, where: Conversation, before: int) -> Chat:
    """One conversation: the messages `before` that id (0: the latest), oldest first."""
    name = str(where)
    query = select(messages).where(messages.c.conversation == name)
    if before:
        query = query.where(messages.c.id < before)
    found = connection.execute(query.order_by(messages.c.id.desc()).limit(ROWS + 1)).all()
    rows = found[:ROWS][::-1]
    window = connection.execute(select(windows).where(windows.c.conversation == name)).one_or_none()
    first = None if window is None else _first(connection, window.first_turn)
    judged = _judged(connection, name, [row.message_id for row in rows])
    lines = list(readable(lambda row: _line(row, judged, first), rows))
    if rows:
        ids = {row.message_id for row in rows if row.message_id}
        until = found[0].taken if before else None
        lines += [
            line for line in _sent(connection, name, rows, until) if line.message_id not in ids
        ]
    lines.sort(key=lambda line: line.at)
    begins, light_to = (0, 0) if window is None else (window.first_turn, window.light_to)
    count = _rounds(connection, name, begins)
    few = not before and count < ROUNDS
    told, light = told_of(connection, name, begins, light_to) if few else ((), 0)
    return Chat(
        where=where,
        group=next((row.group_name for row in reversed(rows) if row.group_name), ""),
        lines=tuple(lines),
        rounds=count,
        told=told,
        light=light,
        summary="" if window is None else window.summary,
        facts=_facts(connection, name),
        next=rows[0].id if len(found) > ROWS else None,
    )


def line(connection: Connection, where: Conversation, message_id: str) -> ChatLine | None:
    """The message of this id, without its verdict; the latest, where there are several."""
    query = select(messages).where(
        messages.c.conversation == str(where), messages.c.message_id == message_id
    )
    found = connection.execute(query.order_by(messages.c.id.desc()).limit(1))
    return next(iter(readable(lambda row: _line(row, {}, None), found)), None)


def _chat_row(row: Row[Any]) -> ChatRow:
    where = Conversation.parse(row.conversation)
    return ChatRow(
        where=where,
        group=row.group_name,
        name=row.card or row.nickname,
        text=_words(row, where),
        at=row.taken,
    )


def _words(row: Row[Any], where: Conversation) -> str:
    if row.erased:
        return ""
    return plain_words(codec.read(SEGMENTS, row.segments), own=where.platform_id)


def _first(connection: Connection, turn: int) -> str | None:
    """The question that the prompt begins with; None where nobody knows."""
    return connection.scalar(select(turns.c.message_id).where(turns.c.id == turn))


def _rounds(connection: Connection, conversation: str, first_turn: int) -> int:
    """How many rounds the prompt repeats."""
    told = rounds_of(connection, conversation, first_turn).with_only_columns(turns.c.id)
    few = told.order_by(None).limit(ROUNDS).subquery("few")
    return connection.scalar(select(func.count()).select_from(few)) or 0


def _judged(
    connection: Connection, conversation: str, message_ids: Sequence[str]
) -> dict[str, Row[Any]]:
    query = select(verdicts).where(
        verdicts.c.conversation == conversation, verdicts.c.message_id.in_(message_ids)
    )
    return {row.message_id: row for row in connection.execute(query.order_by(verdicts.c.id))}


def _line(row: Row[Any], judged: dict[str, Row[Any]], first: str | None) -> ChatLine:
    verdict = judged.get(row.message_id) if row.message_id else None
    return ChatLine(
        message_id=row.message_id,
        at=row.taken,
        sender=row.sender,
        name=row.card or row.nickname,
        text=_words(row, Conversation.parse(row.conversation)),
        is_own=row.sender == row.self_id,
        is_gone=bool(row.erased),
        begins=bool(first) and row.message_id == first,
        reason="" if verdict is None else verdict.reason,
        wakes=verdict is not None and bool(verdict.wakes),
        turn_id=row.turn_id,
    )


def _sent(
    connection: Connection, conversation: str, rows: Sequence[Row[Any]], until: float | None
) -> list[ChatLine]:
    """The bot's words among these messages, by the turns that were asked there: sends have no
    order of their own in a conversation.
    """
    read = [row.turn_id for row in rows if row.turn_id]
    first = id_at(connection, turns.c.opened, rows[0].taken - SLACK)
    asked = select(turns.c.turn_id).where(
        turns.c.conversation == conversation,
        turns.c.id >= first,
        or_(
            turns.c.turn_id.in_(read),
            turns.c.message_id.in_([row.message_id for row in rows if row.message_id]),
        ),
    )
    ids = [turn_id for (turn_id,) in connection.execute(asked.limit(SENDS))]
    query = select(sends).where(
        and_(sends.c.turn_id.in_(ids), sends.c.conversation == conversation)
    )
    if until is not None:
        query = query.where(sends.c.queued <= until)
    found = connection.execute(query.order_by(sends.c.id.desc()).limit(SENDS))
    return list(readable(_said, found))


def _said(row: Row[Any]) -> ChatLine:
    return ChatLine(
        message_id=row.message_id,
        at=row.queued,
        sender=Conversation.parse(row.conversation).platform_id,
        name="",
        text=plain_words(codec.read(SEND_SEGMENTS, row.segments)),
        is_own=True,
        state="" if row.state == "confirmed" else row.state,
        turn_id=row.turn_id,
    )


def _facts(connection: Connection, conversation: str) -> tuple[Fact, ...]:
    query = select(memories).where(memories.c.conversation == conversation)
    found = connection.execute(query.order_by(memories.c.used.desc()).limit(FACTS))
    return tuple(Fact(row.subject, row.text, row.visibility, row.made) for row in found)
