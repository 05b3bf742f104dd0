"""Conversations: messages, settings made there, and the console's audit."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from itertools import chain
from typing import Any

from sqlalchemy import Connection, Row, Select, and_, func, or_, select, text

from adapters.storage.queries.scanning import SLACK, conversation_names, id_at, readable
from adapters.storage.rows import ROUND, SEGMENTS, SEND_SEGMENTS
from adapters.storage.statements import OVERHEARD, plain
from adapters.storage.tables import (
    KEPT,
    audit,
    chosen,
    jobs,
    memories,
    messages,
    pictures,
    place_settings,
    sends,
    speakers,
    things,
    turns,
    verdicts,
    windows,
)
from bot.core import codec
from bot.core.actions import (
    MergedForward,
    SentSegment,
    as_received,
    plain_words,
    send_prefix,
)
from bot.core.console_views import ROWS, Chat, ChatLine, ChatRow, ChatRows, Fact
from bot.core.conversation import Conversation
from bot.core.events import MessageReceived, Sender, relayed
from bot.core.journal import (
    AttachmentNamed,
    Audited,
    KnownLine,
    LogQuery,
    MemberNumbered,
    Remembered,
    Round,
)
from bot.core.query_results import PlaceSum
from bot.core.segments import Forward
from frostagent.engine.authority import lowest_authority
from frostagent.types.traits import Audience

MAX_CONVERSATIONS = 20_000


THINGS = 300
"""Attachments of a conversation that can still be opened by name."""


NOWHERE = "0:private:0"
"""Where received messages of an erased conversation are kept, by their ids only."""


LATEST = 200
"""Messages of a conversation compared with its history, which is shorter."""


LATEST_SENDS = 2000
"""Sends compared with histories, over all conversations."""


PLACES = 30


SENDS = 200  # shown among the messages of one page


ROUNDS = 1000  # counted at most; no prompt has as many


FACTS = 50  # of one conversation, those last shown


# --- for prompts ----------------------------------------------------------------------------------


def remember(connection: Connection, conversation: Conversation) -> Remembered:
    """The rounds from the window's first on, in the order in which they ended, and the messages
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
    """The description of an image; empty if unknown."""
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

    A turn that waited for an approval ends after turns opened later, and its round follows theirs.
    """
    ended = turns.c.closed
    rounds = (
        select(turns.c.id, turns.c.turn_id, turns.c.round, ended)
        .where(turns.c.conversation == here, text(KEPT))
        .order_by(ended, turns.c.id)
    )
    if not first_turn:
        return rounds
    # If the window's first turn was erased, the next one is the first.
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
    """The rounds shown from that turn on, and how many of them have shortened results."""
    mark = _mark(connection, here, light_to)
    rows = connection.execute(rounds_of(connection, here, first_turn)).all()
    told = tuple(readable(lambda row: (_round_of(row), (row.closed, row.id) <= mark), rows))
    return tuple(round_ for round_, _ in told), sum(light for _, light in told)


def _mark(connection: Connection, here: str, light_to: int) -> tuple[float, int]:
    """The end and id of the last round with shortened results; if its turn was erased, those of the
    one before.
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


def _round_of(row: Row[Any]) -> Round:
    return Round(row.turn_id, codec.read(ROUND, row.round))


# --- messages -------------------------------------------------------------------------------------


def find(
    connection: Connection, conversation: Conversation, message_id: str
) -> MessageReceived | None:
    """The latest message of this id there; for the bot's own, which are not received, the send. One
    of no turn that is about a person may pass on words of others.
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
    own = next(readable(own_message_of, sent), None)
    if own is None or sent[0].turn_id or not send_prefix(sent[0].send_id):
        return own
    of_jobs = select(jobs.c.authority).where(
        jobs.c.conversation == here, jobs.c.claim == sent[0].send_id
    )
    authorities = [Audience(one) for one in connection.scalars(of_jobs)] or [Audience.EVERYONE]
    return relayed(own, lowest_authority(authorities))


def search(connection: Connection, query: LogQuery) -> tuple[MessageReceived, ...]:
    """The latest messages that match the query, oldest first."""
    words = [codec.write(word)[1:-1] for word in query.words]  # as in the JSON column
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
    """Those of these messages that were received there, including recalled and erased ones, or sent
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
    """The latest messages received there, including recalled and erased ones, or sent from here."""
    here = str(conversation)
    taken = connection.execute(
        select(messages)
        .where(messages.c.conversation == here, messages.c.message_id != "")
        .order_by(messages.c.id.desc())
        .limit(LATEST)
    )
    # By their ids, which rise with time: no index finds the latest of a conversation.
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


def conversation_of(row: Row[Any]) -> Conversation:
    """The row's conversation, with the group a temporary session came through."""
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


# --- settings and other facts about conversations -------------------------------------------------


def conversations(connection: Connection) -> set[Conversation] | None:
    """All conversations; None if there are too many to keep in memory."""
    found: set[str] = set()
    for table in (messages, turns, speakers):
        names = conversation_names(table)
        query = select(names.c.name).where(names.c.name.is_not(None)).limit(MAX_CONVERSATIONS + 1)
        found.update(connection.scalars(query))
    return None if len(found) > MAX_CONVERSATIONS else {Conversation.parse(here) for here in found}


def groups(connection: Connection) -> frozenset[Conversation]:
    """The groups with messages, and those with only numbers of people left."""
    known = (conversation_names(table).c.name for table in (messages, speakers))
    found = {here for name in known for here in connection.scalars(select(name)) if here}
    return frozenset(where for where in map(Conversation.parse, found) if where.is_group)


def busiest(connection: Connection, since: float) -> tuple[PlaceSum, ...]:
    number = func.count().label("number")
    query = (
        select(messages.c.conversation, number, func.max(messages.c.taken))
        .where(messages.c.taken >= since, messages.c.conversation != NOWHERE)
        .group_by(messages.c.conversation)
        .order_by(number.desc(), messages.c.conversation)
        .limit(PLACES)
    )
    return tuple(
        PlaceSum(Conversation.parse(here), count, last)
        for here, count, last in connection.execute(query)
    )


def choices(connection: Connection) -> dict[Conversation, str]:
    query = select(chosen.c.conversation, chosen.c.persona)
    return {Conversation.parse(here): persona for here, persona in connection.execute(query)}


def settings(connection: Connection, name: str) -> dict[Conversation, str]:
    query = select(place_settings.c.conversation, place_settings.c.value).where(
        place_settings.c.name == name, place_settings.c.value != ""
    )
    return {Conversation.parse(here): value for here, value in connection.execute(query)}


def settings_of(connection: Connection, conversation: Conversation) -> dict[str, str]:
    """All values set in a conversation, by name."""
    query = select(place_settings.c.name, place_settings.c.value).where(
        place_settings.c.conversation == str(conversation), place_settings.c.value != ""
    )
    return {row.name: row.value for row in connection.execute(query)}


def audited(connection: Connection, latest: int, about: str = "") -> tuple[Audited, ...]:
    """The latest entries, newest first; with `about` those of this object."""
    query = select(audit).order_by(audit.c.id.desc()).limit(latest)
    rows = connection.execute(query.where(audit.c.object == about) if about else query)
    return tuple(
        Audited(
            at=row.at,
            login=row.login,
            address=row.address,
            action=row.action,
            object=row.object,
            outcome=row.outcome,
        )
        for row in rows
    )


# --- for the console ------------------------------------------------------------------------------


def chats(connection: Connection, before: int) -> ChatRows:
    """The conversations, most recent first; `before` a message id, 0 for any. Erased ones are left
    out.

    It steps through the index from name to name, so the number of messages does not matter.
    """
    names = conversation_names(messages)
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
    count = _count_rounds(connection, name, begins)
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
    """The latest message of this id, without its verdict."""
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
    """The id of the question that the prompt begins with; None if unknown."""
    return connection.scalar(select(turns.c.message_id).where(turns.c.id == turn))


def _count_rounds(connection: Connection, conversation: str, first_turn: int) -> int:
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
    """The bot's messages among these, by the turns asked there: sends have no order here."""
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
