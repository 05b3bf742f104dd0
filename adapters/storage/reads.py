"""What the journal gives back: a conversation's memory, one message, what was left unfinished. Blocks: threads only.

A row that cannot be read (written by a version that knew more) is left out and told to the log.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeVar

from sqlalchemy import CTE, Connection, Row, Table, func, select, text

from adapters.storage.rows import ROUND, SEGMENTS, SEND_SEGMENTS, plain
from adapters.storage.statements import OVERHEARD
from adapters.storage.tables import UNFINISHED, messages, runs, sends, steps, tool_calls, turns, windows
from bot.domain import codec
from bot.domain.actions import Attachment, SendMessage, SendSegment
from bot.domain.chat import AssistantMessage, Message, ToolMessage, UserMessage
from bot.domain.events import Conversation, MessageReceived, Sender
from bot.domain.journal import OpenTurn, Recovery, Remembered, Round, SendState, StoredSend, Suspended
from bot.domain.segments import File, Image, Record, Segment, Video

SEEN = 600.0  # seconds an event is remembered for, so that it is not handled twice
YOUNG = 120.0  # seconds after which a question that was never taken up is too old to answer
ACTIVE = 86_400.0  # seconds a group counts as active after its last message

MAX_CONVERSATIONS = 20_000

T = TypeVar("T")

logger = logging.getLogger(__name__)


def remember(connection: Connection, conversation: Conversation) -> Remembered:
    """The rounds from the window's first on, in the order their turns were opened, and what was overheard since."""
    here = str(conversation)
    window = connection.execute(
        select(windows.c.first_turn, windows.c.read_to).where(windows.c.conversation == here)
    ).one_or_none()
    first_turn, read_to = window or (0, 0)
    rounds = connection.execute(
        select(turns.c.turn_id, turns.c.round)
        .where(turns.c.conversation == here, turns.c.id >= first_turn, turns.c.round.is_not(None))
        .order_by(turns.c.id)
    ).all()
    overheard = connection.execute(
        select(messages)
        .where(messages.c.conversation == here, messages.c.id > read_to, messages.c.overheard)
        .order_by(messages.c.id.desc())
        .limit(OVERHEARD)
    ).all()
    return Remembered(
        tuple(_readable(_round, rounds)),
        tuple(_readable(_message, (row for row in reversed(overheard) if not row.erased))),
    )


def conversations(connection: Connection) -> set[Conversation] | None:
    """All conversations there are; None where they are too many to keep in mind."""
    found: set[str] = set()
    for table in (messages, turns):
        names = _places(table)
        query = select(names.c.name).where(names.c.name.is_not(None)).limit(MAX_CONVERSATIONS + 1)
        found.update(connection.scalars(query))
    return None if len(found) > MAX_CONVERSATIONS else {Conversation.parse(here) for here in found}


def find(connection: Connection, conversation: Conversation, message_id: str) -> MessageReceived | None:
    """The latest message of this id there; the bot's own, which were never received, as they were sent."""
    if not message_id:
        return None
    here, name = str(conversation), plain(message_id)
    received = connection.execute(
        select(messages)
        .where(messages.c.conversation == here, messages.c.message_id == name)
        .order_by(messages.c.id.desc())
        .limit(1)
    ).all()
    sent = connection.execute(
        select(sends)
        .where(sends.c.conversation == here, sends.c.message_id == name)
        .order_by(sends.c.id.desc())
        .limit(1)
    ).all()
    if received and (not sent or received[0].taken >= sent[0].changed):
        return next(_readable(_message, (row for row in received if not row.erased)), None)
    return next(_readable(_own_message, sent), None)


def recover(connection: Connection, now: float) -> Recovery:
    """What was left unfinished, at the time `now`."""
    suspended = connection.execute(
        select(runs.c.state, runs.c.expires, turns)
        .where(runs.c.state.is_not(None), turns.c.turn_id == runs.c.turn_id, turns.c.closed.is_(None))
        .order_by(turns.c.id)
    ).all()
    waiting = {row.turn_id for row in suspended}
    left_open = connection.execute(select(turns).where(turns.c.closed.is_(None)).order_by(turns.c.id)).all()
    unfinished = connection.execute(select(sends).where(text(UNFINISHED)).order_by(sends.c.id))
    young = connection.execute(
        select(messages)
        .where(messages.c.taken >= now - YOUNG, ~messages.c.overheard, ~messages.c.erased, messages.c.turn_id == "")
        .where(messages.c.sender != messages.c.self_id)
        .order_by(messages.c.taken, messages.c.id)
    )
    return Recovery(
        seen=tuple(_seen(connection, now)),
        waking=tuple(_readable(_message, young)),
        turns=tuple(
            _readable(lambda row: _open_turn(connection, row), (row for row in left_open if row.turn_id not in waiting))
        ),
        sends=tuple(_readable(_send, unfinished)),
        suspended=tuple(_readable(_suspended, suspended)),
        active=tuple(_active(connection, now)),
    )


def _seen(connection: Connection, now: float) -> Iterator[tuple[tuple[int, str, int, str], float]]:
    """The de-duplication window, recalled messages included."""
    columns = (messages.c.self_id, messages.c.conversation, messages.c.message_id, messages.c.taken)
    query = select(*columns).where(messages.c.taken >= now - SEEN).order_by(messages.c.taken)
    for self_id, here, message_id, taken in connection.execute(query):
        conversation = Conversation.parse(here)
        yield (self_id, conversation.message_type, conversation.session_id, message_id), taken


def _active(connection: Connection, now: float) -> Iterator[tuple[Conversation, float]]:
    """The groups heard lately, the last one first."""
    names, there = _places(messages), messages.alias("there")
    newest = select(func.max(there.c.id)).where(there.c.conversation == names.c.name).scalar_subquery()
    heard = (
        select(messages.c.conversation, messages.c.time)
        .join(names, messages.c.id == newest)
        .where(messages.c.taken >= now - ACTIVE)
        .order_by(messages.c.time.desc())
    )
    for here, at in connection.execute(heard):
        conversation = Conversation.parse(here)
        if conversation.is_group:
            yield conversation, at


def _places(table: Table) -> CTE:
    """Every conversation of the table as a `name`, and None at the end.

    From one to the next along the index, however many rows each has; DISTINCT or GROUP BY would walk over them all.
    """
    names = select(func.min(table.c.conversation).label("name")).cte("places", recursive=True)
    after = select(func.min(table.c.conversation)).where(table.c.conversation > names.c.name).scalar_subquery()
    return names.union_all(select(after).where(names.c.name.is_not(None)))


# --- rows -> the domain ---------------------------------------------------------------------------


def _readable(read: Callable[[Any], T], rows: Iterable[Any]) -> Iterator[T]:
    for row in rows:
        try:
            yield read(row)
        except codec.Unreadable as error:
            logger.warning("a row of the journal cannot be read, and is left out: %s", error)


def _round(row: Row[Any]) -> Round:
    return Round(row.turn_id, codec.read(ROUND, row.round))


def _conversation(row: Row[Any]) -> Conversation:
    here = Conversation.parse(row.conversation)
    return Conversation(here.platform_id, here.message_type, here.session_id, row.via_group)


def _message(row: Row[Any]) -> MessageReceived:
    return MessageReceived(
        self_id=row.self_id,
        time=row.time,
        conversation=_conversation(row),
        message_id=row.message_id,
        sender=Sender(row.sender, row.nickname, row.card, row.role),
        segments=codec.read(SEGMENTS, row.segments),
        sub_type=row.sub_type,
        message_seq=row.message_seq,
        group_name=row.group_name,
    )


def _own_message(row: Row[Any]) -> MessageReceived:
    conversation = _conversation(row)
    segments: tuple[SendSegment, ...] = codec.read(SEND_SEGMENTS, row.segments)
    return MessageReceived(
        self_id=conversation.platform_id,
        time=row.changed,
        conversation=conversation,
        message_id=row.message_id,
        sender=Sender(conversation.platform_id),
        segments=tuple(_as_received(segment) for segment in segments),
    )


def _as_received(segment: SendSegment) -> Segment:
    if not isinstance(segment, Attachment):
        return segment
    match segment.kind:
        case "image":
            return Image(file=segment.name)
        case "record":
            return Record(file=segment.name)
        case "video":
            return Video(file=segment.name)
        case "file":
            return File(name=segment.name)


def _send(row: Row[Any]) -> StoredSend:
    return StoredSend(
        send_id=row.send_id,
        turn_id=row.turn_id,
        action=SendMessage(_conversation(row), codec.read(SEND_SEGMENTS, row.segments)),
        final=row.final,
        at=row.queued,
        state=SendState(row.state),
        whole=row.whole,
    )


def _suspended(row: Row[Any]) -> Suspended:
    question, user = codec.read(MessageReceived, row.question), codec.read(UserMessage, row.user)
    return Suspended(row.turn_id, row.state, row.expires, question, user)


def _open_turn(connection: Connection, row: Row[Any]) -> OpenTurn:
    taken = connection.execute(select(steps).where(steps.c.turn_id == row.turn_id).order_by(steps.c.id))
    calls = connection.execute(
        select(tool_calls).where(tool_calls.c.turn_id == row.turn_id).order_by(tool_calls.c.id)
    ).all()
    said = connection.execute(select(sends).where(sends.c.turn_id == row.turn_id).order_by(sends.c.id))
    return OpenTurn(
        turn_id=row.turn_id,
        question=codec.read(MessageReceived, row.question),
        user=codec.read(UserMessage, row.user),
        at=row.opened,
        retry_of=row.retry_of,
        messages=tuple(_transcript(taken, calls)),
        started=tuple(call.name for call in calls if call.started is not None),
        sends=tuple(_readable(_send, said)),
    )


def _transcript(taken: Iterable[Row[Any]], calls: Iterable[Row[Any]]) -> Iterator[Message]:
    """Each step, followed by the results of its calls, in the order of the calls."""
    results = {(call.step, call.call_id): call.result for call in calls if call.result is not None}
    for step in taken:
        message: AssistantMessage = codec.read(AssistantMessage, step.message)
        yield message
        for call in message.tool_calls:
            result = results.get((step.step, plain(call.id)))
            if result is not None:
                yield codec.read(ToolMessage, result)
