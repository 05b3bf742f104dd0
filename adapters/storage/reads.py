"""Reading the journal: a conversation's memory, one message. Blocks: threads only.

A row that cannot be read (written by a version that knew more) is left out and told to the log.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Awaitable, Callable, Collection, Iterable, Iterator
from itertools import chain
from typing import Any, Protocol, TypeVar

from sqlalchemy import CTE, Connection, Row, Select, Table, func, or_, select, text

from adapters.storage.rows import ROUND, SEGMENTS, SEND_SEGMENTS
from adapters.storage.statements import OVERHEARD, plain
from adapters.storage.tables import (
    KEPT,
    messages,
    pictures,
    sends,
    speakers,
    things,
    turns,
    windows,
)
from bot.domain import codec
from bot.domain.actions import MergedForward, SentSegment, as_received
from bot.domain.events import Conversation, MessageReceived, Sender
from bot.domain.journal import (
    AttachmentNamed,
    KnownLine,
    LogQuery,
    MemberNumbered,
    Remembered,
    Round,
)
from bot.domain.segments import Forward

MAX_CONVERSATIONS = 20_000
THINGS = 300
"""How many of the things that were named in a conversation can still be opened."""

NOWHERE = "0:private:0"
"""Where messages of a forgotten place are known as taken, by their ids."""

LATEST = 200
"""How many messages of a place are compared with its history, which is shorter."""

LATEST_SENDS = 2000
"""The same, of all places."""

T = TypeVar("T")

logger = logging.getLogger(__name__)


class Reading(Protocol):
    """Asks the database, once all that was put is written; `nothing` where it cannot be read."""

    def __call__(self, query: Callable[[Connection], T], nothing: T) -> Awaitable[T]: ...


def remember(connection: Connection, conversation: Conversation) -> Remembered:
    """The rounds from the window's first on, in the order in which they ended, and what was
    overheard since.
    """
    here = str(conversation)
    window = connection.execute(
        select(
            windows.c.first_turn, windows.c.read_to, windows.c.light_to, windows.c.summary
        ).where(windows.c.conversation == here)
    ).one_or_none()
    first_turn, read_to, light_to, summary = window or (0, 0, 0, "")
    unread = (
        messages.c.conversation == here,
        messages.c.id > read_to,
        messages.c.overheard,
        messages.c.turn_id == "",
        ~messages.c.erased,
    )
    overheard = connection.execute(
        select(messages).where(*unread).order_by(messages.c.id.desc()).limit(OVERHEARD)
    ).all()
    missed = 0
    if len(overheard) == OVERHEARD:
        missed = connection.scalars(select(func.count(messages.c.id)).where(*unread)).one()
        missed -= OVERHEARD
    rounds, light = told_of(connection, here, first_turn, light_to)
    return Remembered(
        rounds=rounds,
        overheard=tuple(readable(message_of, reversed(overheard))),
        missed=missed,
        light=light,
        summary=summary,
        members=_members(connection, conversation),
        things=_things(connection, conversation),
    )


def described(connection: Connection, digest: str) -> str:
    """The description of a picture; empty where that is not known."""
    return connection.scalar(select(pictures.c.words).where(pictures.c.digest == digest)) or ""


def _things(connection: Connection, conversation: Conversation) -> tuple[AttachmentNamed, ...]:
    found = connection.execute(
        select(things.c.number, things.c.thing)
        .where(things.c.conversation == str(conversation))
        .order_by(things.c.number.desc())
        .limit(THINGS)
    ).all()

    def read(row: Row[Any]) -> AttachmentNamed:
        if row.thing is None:
            return AttachmentNamed(
                conversation=conversation,
                number=row.number,
                message_id="",
                sender=Sender(0),
                segment=None,
            )
        thing: AttachmentNamed = codec.read(AttachmentNamed, row.thing)
        return thing

    return tuple(readable(read, reversed(found)))


def _members(connection: Connection, conversation: Conversation) -> tuple[MemberNumbered, ...]:
    found = connection.execute(
        select(speakers.c.number, speakers.c.user_id, speakers.c.name)
        .where(speakers.c.conversation == str(conversation))
        .order_by(speakers.c.number)
    )
    return tuple(
        MemberNumbered(conversation=conversation, number=number, user_id=user_id, name=name)
        for number, user_id, name in found
    )


def rounds_of(connection: Connection, here: str, first_turn: int) -> Select[Any]:
    """The rounds of a conversation from that turn on (0: all), in the order in which they ended.

    A turn that waited for somebody's word ends after others that were opened later; so do their
    rounds follow.
    """
    ended = turns.c.closed
    rounds = (
        select(turns.c.id, turns.c.turn_id, turns.c.round, ended)
        .where(turns.c.conversation == here, text(KEPT))
        .order_by(ended, turns.c.id)
    )
    if not first_turn:
        return rounds
    # The window's first turn may have been forgotten: then the next one is.
    first = connection.execute(
        select(turns.c.id, func.coalesce(ended, turns.c.opened))
        .where(turns.c.conversation == here, turns.c.id >= first_turn)
        .order_by(turns.c.id)
        .limit(1)
    ).one_or_none()
    first_id, begin = first or (first_turn, math.inf)
    return rounds.where(ended >= begin, or_(ended > begin, turns.c.id >= first_id))


def told_of(
    connection: Connection, here: str, first_turn: int, light_to: int
) -> tuple[tuple[Round, ...], int]:
    """The rounds that are told from that turn on, and how many of them with shortened results."""
    mark = _mark(connection, here, light_to)
    rows = connection.execute(rounds_of(connection, here, first_turn)).all()
    told = tuple(readable(lambda row: (_round(row), (row.closed, row.id) <= mark), rows))
    return tuple(round_ for round_, _ in told), sum(light for _, light in told)


def _mark(connection: Connection, here: str, light_to: int) -> tuple[float, int]:
    """When the last round ended that is told shortened, and its id; if that turn was forgotten, the
    one before it.
    """
    if not light_to:
        return -math.inf, 0
    last = connection.execute(
        select(turns.c.closed, turns.c.id)
        .where(turns.c.conversation == here, turns.c.id <= light_to, turns.c.closed.is_not(None))
        .order_by(turns.c.id.desc())
        .limit(1)
    ).one_or_none()
    return (last.closed, last.id) if last else (-math.inf, 0)


def conversations(connection: Connection) -> set[Conversation] | None:
    """All conversations there are; None where they are too many to keep in mind."""
    found: set[str] = set()
    for table in (messages, turns, speakers):
        names = places(table)
        query = select(names.c.name).where(names.c.name.is_not(None)).limit(MAX_CONVERSATIONS + 1)
        found.update(connection.scalars(query))
    return None if len(found) > MAX_CONVERSATIONS else {Conversation.parse(here) for here in found}


def find(
    connection: Connection, conversation: Conversation, message_id: str
) -> MessageReceived | None:
    """The latest message of this id there; the bot's own, which were never received, as they were
    sent.
    """
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
        return next(readable(message_of, (row for row in received if not row.erased)), None)
    return next(readable(own_message_of, sent), None)


def search(connection: Connection, query: LogQuery) -> tuple[MessageReceived, ...]:
    """The latest messages that the query is about, oldest first."""
    words = [codec.write(word)[1:-1] for word in query.words]  # as they stand in the JSON
    told = [
        messages.c.time.between(query.since, query.until),
        ~messages.c.erased,
        *([messages.c.sender == query.sender] if query.sender else ()),
        *(messages.c.segments.icontains(word, autoescape=True) for word in words),
    ]
    found = connection.execute(
        select(messages)
        .where(messages.c.conversation == str(query.conversation), *told)
        .order_by(messages.c.id.desc())
        .limit(query.limit)
    ).all()
    return tuple(readable(message_of, reversed(found)))


def heard(
    connection: Connection, conversation: Conversation, message_ids: Collection[str]
) -> set[str]:
    """Those of these messages that were taken there, recalled and forgotten ones included, or sent
    from here.
    """
    names = {plain(message_id): message_id for message_id in message_ids}
    found = [
        connection.scalars(
            select(table.c.message_id).where(
                table.c.conversation.in_((str(conversation), NOWHERE)),
                table.c.message_id.in_(names),
                table.c.message_id != "",
            )
        )
        for table in (messages, sends)
    ]
    return {names[name] for name in chain.from_iterable(found)}


def latest(connection: Connection, conversation: Conversation) -> tuple[KnownLine, ...]:
    """The latest messages that were taken there, recalled and forgotten ones included, or sent
    from here.
    """
    here = str(conversation)
    taken = connection.execute(
        select(messages)
        .where(messages.c.conversation == here, messages.c.message_id != "")
        .order_by(messages.c.id.desc())
        .limit(LATEST)
    )
    # By their own ids, which rise with time: no index tells the latest of a place.
    newest = select(func.max(sends.c.id)).scalar_subquery()
    sent = connection.execute(
        select(sends).where(
            sends.c.id > newest - LATEST_SENDS,
            sends.c.conversation == here,
            sends.c.message_id != "",
        )
    )
    own = conversation.platform_id
    return (
        *readable(_known, (row for row in taken if row.sender != own)),
        *readable(lambda row: _known_own(row, own), sent),
    )


def _known(row: Row[Any]) -> KnownLine:
    segments = None if row.erased else codec.read(SEGMENTS, row.segments)
    return KnownLine(row.message_id, row.sender, row.time, segments)


def _known_own(row: Row[Any], account: int) -> KnownLine:
    parts: tuple[SentSegment, ...] = codec.read(SEND_SEGMENTS, row.segments)
    segments = tuple(
        Forward("") if isinstance(part, MergedForward) else as_received(part) for part in parts
    )
    return KnownLine(row.message_id, account, row.changed, segments)


def places(table: Table) -> CTE:
    """Every conversation of the table as a `name`, and None at the end.

    From one to the next along the index, however many rows each has; DISTINCT or GROUP BY would
    walk over them all.
    """
    names = select(func.min(table.c.conversation).label("name")).cte("places", recursive=True)
    after = (
        select(func.min(table.c.conversation))
        .where(table.c.conversation > names.c.name)
        .scalar_subquery()
    )
    return names.union_all(select(after).where(names.c.name.is_not(None)))


# --- rows -> the domain ---------------------------------------------------------------------------


def readable(read: Callable[[Any], T], rows: Iterable[Any]) -> Iterator[T]:
    """The entries of the rows, but for those that cannot be read."""
    for row in rows:
        try:
            yield read(row)
        except codec.Unreadable as error:
            logger.warning("a row of the journal cannot be read, and is left out: %s", error)


def _round(row: Row[Any]) -> Round:
    return Round(row.turn_id, codec.read(ROUND, row.round))


def conversation_of(row: Row[Any]) -> Conversation:
    """Where a row belongs, with the group a temporary session came through."""
    here = Conversation.parse(row.conversation)
    return Conversation(here.platform_id, here.message_type, here.session_id, row.via_group)


def message_of(row: Row[Any]) -> MessageReceived:
    """A message as it was received. Raises Unreadable."""
    return MessageReceived(
        self_id=row.self_id,
        time=row.time,
        conversation=conversation_of(row),
        message_id=row.message_id,
        sender=Sender(row.sender, row.nickname, row.card, row.role),
        segments=codec.read(SEGMENTS, row.segments),
        sub_type=row.sub_type,
        message_seq=row.message_seq,
        group_name=row.group_name,
    )


def own_message_of(row: Row[Any]) -> MessageReceived:
    conversation = conversation_of(row)
    segments: tuple[SentSegment, ...] = codec.read(SEND_SEGMENTS, row.segments)
    return MessageReceived(
        self_id=conversation.platform_id,
        time=row.changed,
        conversation=conversation,
        message_id=row.message_id,
        sender=Sender(conversation.platform_id),
        segments=tuple(map(as_received, segments)),
    )
