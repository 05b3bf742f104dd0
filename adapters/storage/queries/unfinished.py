"""Unfinished work, read at the start: questions, turns, suspended runs, sends."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from msgspec.structs import replace
from sqlalchemy import Connection, Row, Select, exists, func, select, text

from adapters.storage.queries.conversations import conversation_of, message_of
from adapters.storage.queries.scanning import conversation_names, readable
from adapters.storage.queries.turns import outcome_of
from adapters.storage.redaction import BLANK
from adapters.storage.rows import SEND_SEGMENTS
from adapters.storage.statements import plain
from adapters.storage.tables import (
    UNFINISHED,
    messages,
    runs,
    sends,
    steered,
    steps,
    tool_calls,
    turns,
    usage,
)
from bot.core import codec
from bot.core.actions import SendMessage
from bot.core.conversation import Conversation
from bot.core.events import MessageReceived
from bot.core.journal import (
    OpenTurn,
    Recovery,
    SendState,
    Spoken,
    StoredSend,
    Suspended,
    Undelivered,
)
from bot.core.other_bots import AccountScope
from bot.core.redaction import OwnWords
from frostagent.types.messages import AssistantMessage, Message, ToolMessage, UserMessage, joined

SEEN = 600.0  # seconds an event is remembered for deduplication
YOUNG = 120.0  # seconds after which an unprocessed question is too old to answer
ACTIVE = 86_400.0  # seconds after its last message that a conversation counts as active
ASKED = 3600.0  # seconds in which questions count for rate limits
MAX_ASKED = 5000  # latest lines of them
MAX_SENDS = 1000  # latest ones searched for refusals
DOUBTED = 86_400.0  # seconds an unconfirmed send is tracked

NAMELESS = "", "0"  # ids that some servers give to many messages

UNREAD = (
    SendState.REFUSED,
    SendState.WITHDRAWN,
    SendState.DROPPED,
)  # certainly unread for ever


def recover(connection: Connection, now: float, before: float = math.inf) -> Recovery:
    """Return the work left unfinished at `now` by processes that wrote before `before`."""
    suspended = connection.execute(
        select(runs.c.state, runs.c.expires, turns)
        .where(
            runs.c.state.is_not(None), turns.c.turn_id == runs.c.turn_id, turns.c.closed.is_(None)
        )
        .where(turns.c.opened < before)
        .order_by(turns.c.id)
    ).all()
    suspended = [row for row in suspended if not _is_recalled(connection, row)]
    waiting = {row.turn_id for row in suspended}
    left_open = connection.execute(
        select(turns).where(turns.c.closed.is_(None), turns.c.opened < before).order_by(turns.c.id)
    ).all()
    given_up = (sends.c.state == SendState.UNKNOWN) & (sends.c.queued < now - DOUBTED)
    unfinished = connection.execute(
        select(sends)
        .where(text(UNFINISHED), sends.c.queued < before, ~given_up)
        .order_by(sends.c.id)
    )
    other = messages.alias("other")
    waits = messages.c.turn_id == "", ~messages.c.overheard, ~messages.c.erased
    # The same message received again; one row's fate is the other's.
    settled = _alike(other, messages).where(
        (other.c.turn_id != "") | other.c.overheard | other.c.erased
    )
    young = connection.execute(
        select(messages)
        .where(messages.c.taken >= now - YOUNG, messages.c.taken < before, *waits)
        .where(
            messages.c.sender != messages.c.self_id,
            messages.c.message_id.in_(NAMELESS) | ~settled.exists(),
        )
        .order_by(messages.c.taken, messages.c.id)
    )
    return Recovery(
        seen=tuple(_seen(connection, now, before)),
        waking=tuple(readable(message_of, young)),
        turns=tuple(
            readable(
                lambda row: _open_turn(connection, row),
                (row for row in left_open if row.turn_id not in waiting),
            )
        ),
        sends=(*readable(_send, unfinished), *readable(_send, _refused(connection, now, before))),
        suspended=tuple(readable(lambda row: _suspended(connection, row), suspended)),
        active=tuple(_active(connection, now, before)),
        asked=tuple(_asked(connection, now, before)),
    )


def _refused(connection: Connection, now: float, before: float) -> Sequence[Row[Any]]:
    """Recently refused sends that were the last of a turn that ended unconfirmed: their process may
    not have told the asker.
    """
    later = sends.alias("later")
    is_last = ~exists().where(later.c.turn_id == sends.c.turn_id, later.c.id > sends.c.id)
    latest = select(func.max(sends.c.id)).scalar_subquery() - MAX_SENDS
    lately = sends.c.id > latest, sends.c.changed >= now - YOUNG, sends.c.queued < before
    refused = (
        select(sends)
        .join(runs, runs.c.turn_id == sends.c.turn_id)
        .where(*lately, sends.c.state == SendState.REFUSED, sends.c.final)
        .where(runs.c.stop == Undelivered.UNCONFIRMED, is_last)
        .order_by(sends.c.id)
    )
    return connection.execute(refused).all()


def of_scope(scope: AccountScope, found: Recovery) -> Recovery:
    """The part of these accounts; work of others may still be going on."""
    has = scope.has_place
    return Recovery(
        seen=tuple(one for one in found.seen if scope.has(one[0][0])),
        waking=tuple(one for one in found.waking if has(one.conversation)),
        turns=tuple(one for one in found.turns if has(one.question.conversation)),
        sends=tuple(one for one in found.sends if has(one.action.conversation)),
        suspended=tuple(one for one in found.suspended if has(one.question.conversation)),
        active=tuple(one for one in found.active if has(one[0])),
        whole=found.whole,
        asked=tuple(one for one in found.asked if has(one[0])),
    )


def _alike(other: Any, one: Any) -> Select[Any]:
    """Other rows of the same message. An id may be reused later by another message."""
    same = [
        other.c[name] == one.c[name] for name in ("conversation", "message_id", "sender", "time")
    ]
    return select(other.c.turn_id).where(*same)


def _is_recalled(connection: Connection, turn: Row[Any]) -> bool:
    """Whether the turn's question was recalled."""
    question = (
        select(messages.c.erased)
        .where(
            messages.c.conversation == turn.conversation, messages.c.message_id == turn.message_id
        )
        .order_by(messages.c.id.desc())
        .limit(1)
    )
    return bool(connection.scalar(question))


def _seen(
    connection: Connection, now: float, before: float
) -> Iterator[tuple[tuple[int, str, int, str], float]]:
    """The deduplication window, including recalled messages."""
    columns = (messages.c.self_id, messages.c.conversation, messages.c.message_id, messages.c.taken)
    lately = (messages.c.taken >= now - SEEN, messages.c.taken < before)
    query = select(*columns).where(*lately).order_by(messages.c.taken)
    for self_id, here, message_id, taken in connection.execute(query):
        conversation = Conversation.parse(here)
        yield (self_id, conversation.message_type, conversation.session_id, message_id), taken


def _asked(
    connection: Connection, now: float, before: float
) -> Iterator[tuple[Conversation, int, float]]:
    """The questions of the last hour; the lines of one turn count as one."""
    lines = (
        select(
            messages.c.id,
            messages.c.conversation,
            messages.c.sender,
            messages.c.turn_id,
            messages.c.taken,
            turns.c.uncalled,
        )
        .outerjoin(turns, (messages.c.turn_id != "") & (turns.c.turn_id == messages.c.turn_id))
        .where(messages.c.taken >= now - ASKED, messages.c.taken < before)
        .where(~messages.c.overheard, ~messages.c.erased, messages.c.sender != messages.c.self_id)
        .order_by(messages.c.taken.desc(), messages.c.id.desc())
        .limit(MAX_ASKED)
    )
    questions = {row.turn_id or row.id: row for row in connection.execute(lines)}  # its first line
    for row in reversed(questions.values()):
        yield Conversation.parse(row.conversation), 0 if row.uncalled else row.sender, row.taken


def _active(
    connection: Connection, now: float, before: float
) -> Iterator[tuple[Conversation, float]]:
    """The recently active conversations, latest first."""
    names, there = conversation_names(messages), messages.alias("there")
    newest = (
        select(there.c.id)
        .where(there.c.conversation == names.c.name, there.c.taken < before)
        .order_by(there.c.id.desc())
        .limit(1)
        .scalar_subquery()
    )
    heard = (
        select(messages.c.conversation, messages.c.time)
        .join(names, messages.c.id == newest)
        .where(messages.c.taken >= now - ACTIVE)
        .order_by(messages.c.time.desc())
    )
    for here, at in connection.execute(heard):
        yield Conversation.parse(here), at


# --- rows -> entries ------------------------------------------------------------------------------


def _send(row: Row[Any]) -> StoredSend:
    return StoredSend(
        send_id=row.send_id,
        turn_id=row.turn_id,
        action=SendMessage(conversation_of(row), codec.read(SEND_SEGMENTS, row.segments)),
        final=row.final,
        at=row.queued,
        state=SendState(row.state),
        whole=row.whole,
        reason=row.reason,
    )


def _suspended(connection: Connection, row: Row[Any]) -> Suspended:
    question, user = codec.read(MessageReceived, row.question), codec.read(UserMessage, row.user)
    here = [
        send
        for send in _sends_of(connection, row.turn_id)
        if send.action.conversation == question.conversation
    ]
    said = tuple(send.action.words for send in here if send.state not in UNREAD)
    own = tuple(_own_words(connection, row.turn_id))
    return Suspended(row.turn_id, row.state, row.expires, question, user, said, own)


def _own_words(
    connection: Connection, turn_id: str
) -> Iterator[tuple[Conversation, str, OwnWords]]:
    """The turn's messages with their ids, except recalled ones, which count as `earlier`."""
    query = select(sends).where(sends.c.turn_id == turn_id, sends.c.message_id != "")
    rows = connection.execute(query.order_by(sends.c.id)).all()
    recalled = [row.final for row in rows if row.segments == BLANK]

    def own_of(row: Row[Any]) -> tuple[Conversation, str, OwnWords]:
        words, earlier = _send(row).action.words, recalled.count(row.final)
        return conversation_of(row), row.message_id, OwnWords(turn_id, words, row.final, earlier)

    return readable(own_of, (row for row in rows if row.segments != BLANK))


def _sends_of(connection: Connection, *turn_ids: str) -> Iterator[StoredSend]:
    query = select(sends).where(sends.c.turn_id.in_(turn_ids)).order_by(sends.c.id)
    return readable(_send, connection.execute(query))


def spoken(connection: Connection, turn_id: str) -> Spoken | None:
    """What a turn has said; None if its question was recalled or erased."""
    newest = select(turns).where(turns.c.turn_id == turn_id).order_by(turns.c.id.desc()).limit(1)
    turn = connection.execute(newest).one_or_none()
    if turn is None or _is_recalled(connection, turn):
        return None
    question, said = codec.read(MessageReceived, turn.question), _sends_of(connection, turn_id)
    spoken = Spoken(question, tuple(said), is_over=False, uncalled=turn.uncalled)
    if turn.closed is None:
        return spoken
    ended = select(runs.c.stop, outcome_of()).where(runs.c.turn_id == turn_id)
    run = connection.execute(ended).one()
    return replace(spoken, is_over=True, ended=run.stop, outcome=run.outcome)


def _others(connection: Connection, turn: Row[Any], question: MessageReceived) -> list[Row[Any]]:
    """The other turns with the same question, except the one that this turn repeats."""
    if not question.has_identity:
        return []
    asked = (messages.c.conversation == turn.conversation) & (
        messages.c.message_id == turn.message_id
    )
    took = select(messages.c.turn_id).where(
        asked, messages.c.sender == turn.asker, messages.c.time == question.time
    )
    ids = set(connection.scalars(took)) - {"", turn.turn_id, turn.retry_of}
    return list(
        connection.execute(select(turns.c.turn_id, turns.c.closed).where(turns.c.turn_id.in_(ids)))
    )


def _open_turn(connection: Connection, row: Row[Any]) -> OpenTurn:
    question = codec.read(MessageReceived, row.question)
    others = _others(connection, row, question)
    taken = connection.execute(
        select(steps).where(steps.c.turn_id == row.turn_id).order_by(steps.c.id)
    ).all()
    lines = connection.execute(
        select(steered).where(steered.c.turn_id == row.turn_id).order_by(steered.c.id)
    )
    said = [(line.step, codec.read(UserMessage, line.user)) for line in lines]
    first = [user for step, user in said if step == 0]
    ids = [other.turn_id for other in others]
    began = connection.execute(
        select(tool_calls)
        .where(tool_calls.c.turn_id.in_([row.turn_id, *ids]))
        .order_by(tool_calls.c.id)
    ).all()
    calls = [call for call in began if call.turn_id == row.turn_id]
    user = joined((codec.read(UserMessage, row.user), *first))
    said_here = tuple(_sends_of(connection, row.turn_id, *ids))
    ended = any(send.final and send.turn_id == row.turn_id for send in said_here)
    return OpenTurn(
        turn_id=row.turn_id,
        question=question,
        user=user,
        at=row.opened,
        retry_of=row.retry_of,
        messages=tuple(_transcript(taken, calls, said)),
        started=tuple(call.name for call in began if call.started is not None),
        sends=said_here,
        handled=any(other.closed is not None for other in others),
        recalled=_is_recalled(connection, row),
        lines=tuple(_lines(connection, row, question, (user, *(line for _, line in said)))),
        uncounted=not (taken or ended or _is_counted(connection, row.turn_id)),
    )


def _is_counted(connection: Connection, turn_id: str) -> bool:
    """Whether a row holds the usage, or a reservation, of a request of one of its steps. Other
    requests, such as image descriptions, do not count. Reservations of older versions may be
    either; one for an image came before the first request.
    """
    of_step = select(usage.c.id).where(usage.c.turn_id == turn_id, usage.c.step != 0)
    return connection.scalar(of_step.limit(1)) is not None


def _lines(
    connection: Connection,
    turn: Row[Any],
    question: MessageReceived,
    told: Iterable[UserMessage],
) -> Iterator[MessageReceived]:
    """The asker's lines besides the question that a model read, oldest first."""
    query = select(messages).where(
        messages.c.conversation == turn.conversation,
        messages.c.message_id.in_({id_ for one in told for id_ in one.sources}),
        messages.c.turn_id == turn.turn_id,
        ~messages.c.overheard,
        ~messages.c.erased,
    )
    for line in readable(message_of, connection.execute(query.order_by(messages.c.id))):
        if line.identity != question.identity:
            yield line


def _transcript(
    taken: Sequence[Row[Any]], calls: Iterable[Row[Any]], said: Sequence[tuple[int, UserMessage]]
) -> Iterator[Message]:
    """Each step, followed by the results of its calls, in their order, and by the lines added then.
    A text-only step is kept only if nothing follows it.
    """
    results = {(call.step, call.call_id): call.result for call in calls if call.result is not None}
    for step in taken:
        message: AssistantMessage = codec.read(AssistantMessage, step.message)
        lines = [user for after, user in said if after == step.step]
        if message.tool_calls or (step is taken[-1] and not lines):
            yield message
        for call in message.tool_calls:
            result = results.get((step.step, plain(call.id)))
            if result is not None:
                yield codec.read(ToolMessage, result)
        if lines:
            yield joined(lines)
