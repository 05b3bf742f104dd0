"""One turn in full: how a message fared, and what its turn did."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

from msgspec.structs import replace
from sqlalchemy import Connection, Row, Table, select

from adapters.storage.queries.conversations import line
from adapters.storage.queries.scanning import readable
from adapters.storage.queries.turns import ending_of, outcome_of, turn_row
from adapters.storage.queries.usage import sums_of
from adapters.storage.rows import SEND_SEGMENTS
from adapters.storage.statements import plain
from adapters.storage.tables import (
    messages,
    requests,
    runs,
    sends,
    steered,
    steps,
    tool_calls,
    turns,
    usage,
    verdicts,
)
from bot.domain import codec
from bot.domain.actions import plain_words
from bot.domain.console_views import (
    Span,
    Trace,
    TurnRow,
    Unanswered,
)
from bot.domain.drafts import draft_of
from bot.domain.errors import ToolDenied
from bot.domain.events import Conversation
from bot.domain.journal import RequestPurpose, SendState
from bot.domain.model_messages import AssistantMessage, ToolMessage, UserMessage
from bot.domain.query_results import (
    Publication,
    Story,
    StoryCall,
    UsageSum,
)
from bot.domain.run import Stop

SENT = ("confirmed", "sending", "unknown")


FAILED = ("refused", "dropped")


PUBLISHED = (SendState.PUBLISHED, SendState.REWORDED)


CALLS = 20  # of one turn, the first


SPANS = 300  # of one turn, the first


def story(connection: Connection, where: Conversation, message_id: str = "") -> Story:
    """The story of a message and of its turn, which may be empty."""
    here = str(where)
    turn = _turn(connection, here, message_id)
    asked = message_id if turn is None else turn.message_id
    message = _latest(connection, messages, here, asked)
    verdict = _latest(connection, verdicts, here, asked)
    told = Story(asker=0)
    if message is not None:
        told = replace(told, taken=message.taken, is_gone=message.erased)
    if verdict is not None:
        told = replace(
            told,
            asker=verdict.sender,
            wakes=verdict.wakes,
            weak=verdict.weak,
            reason=verdict.reason,
            until=verdict.until or 0.0,
        )
    if turn is not None:
        return _with_turn(connection, told, turn)
    is_open = message is not None and not (message.overheard or message.erased)
    return replace(told, waits=is_open and told.wakes is True)


def _latest(connection: Connection, table: Table, here: str, message_id: str) -> Row[Any] | None:
    query = select(table).where(table.c.conversation == here, table.c.message_id == message_id)
    return connection.execute(query.order_by(table.c.id.desc()).limit(1)).one_or_none()


def _turn(connection: Connection, here: str, message_id: str) -> Row[Any] | None:
    """The turn that a message asked for or answers; the last one there without an id."""
    if not message_id:
        last = select(turns).where(turns.c.conversation == here)
        return connection.execute(last.order_by(turns.c.id.desc()).limit(1)).one_or_none()
    for table in (sends, messages):
        row = _latest(connection, table, here, message_id)
        if row is None or not row.turn_id:
            continue
        query = select(turns).where(turns.c.turn_id == row.turn_id)
        turn = connection.execute(query.order_by(turns.c.id.desc()).limit(1)).one_or_none()
        # A message that was only overheard was read by a turn that it did not ask for; what was
        # merged with a question, or steered its run, is a part of it.
        if turn is not None and (table is sends or not row.overheard):
            return turn
    return None


def _with_turn(connection: Connection, told: Story, turn: Row[Any]) -> Story:
    turn_id = turn.turn_id
    run = connection.execute(select(runs, outcome_of()).where(runs.c.turn_id == turn_id)).first()
    calls = connection.execute(
        select(tool_calls).where(tool_calls.c.turn_id == turn_id).order_by(tool_calls.c.id)
    ).all()
    rows = connection.execute(
        select(sends.c.send_id, sends.c.state, sends.c.conversation, sends.c.reason, sends.c.final)
        .where(sends.c.turn_id == turn_id)
        .order_by(sends.c.id)
    ).all()
    drafts = tuple(dict.fromkeys(filter(None, (draft_of(row.send_id) for row in rows))))
    # Owners were shown those: that is not what was said.
    said = [row for row in rows if not drafts or row.conversation == turn.conversation]
    failed = [row for row in said if row.state in FAILED]
    published = {
        number: Publication(number, row.reason, row.state == SendState.REWORDED)
        for row in rows
        if (number := draft_of(row.send_id)) and row.state in PUBLISHED
    }
    used = connection.execute(select(usage).where(usage.c.turn_id == turn_id)).all()
    done = connection.execute(
        select(steps.c.message).where(steps.c.turn_id == turn_id).order_by(steps.c.id)
    ).all()
    has_said = run is None or run.stop != Stop.ANSWERED or any(row.final for row in rows)
    return replace(
        told,
        asker=turn.asker,
        turn_id=turn_id,
        opened=turn.opened,
        closed=turn.closed or 0.0,
        stop="" if run is None else run.outcome,
        expires=0.0 if run is None or run.state is None else run.expires or 0.0,
        error="" if run is None else run.error,
        steps=len(done),
        calls=tuple(map(_call, calls[:CALLS])),
        models=tuple(dict.fromkeys(row.model for row in used if row.model)),
        usage=_sum(used),
        sends=sum(row.state in SENT for row in said),
        failed=len(failed),
        loss=failed[-1].reason if failed else "",
        unsaid=not has_said and bool(done) and _is_answer(done[-1].message),
        drafts=drafts,
        published=tuple(published.values()),
    )


def _call(row: Row[Any]) -> StoryCall:
    told = StoryCall(row.name, row.code, row.seconds or 0.0)
    if row.code != ToolDenied.code:
        return told
    try:
        return replace(told, denied=codec.read(ToolMessage, row.result or "").content)
    except codec.Unreadable:
        return told


def _is_answer(message: str | None) -> bool:
    """Whether a step ended with words alone."""
    try:
        answer = codec.read(AssistantMessage, message) if message else AssistantMessage()
    except codec.Unreadable:
        return False
    return bool(answer.text.strip()) and not answer.tool_calls


def _sum(used: Sequence[Row[Any]]) -> UsageSum:
    priced = [row.cost for row in used if row.cost is not None]
    return UsageSum(
        requests=len(used),
        prompt=sum(row.prompt for row in used),
        cached=sum(row.cached for row in used),
        completion=sum(row.completion for row in used),
        cost=sum(priced),
        unpriced=len(used) - len(priced),
    )


def silence(connection: Connection, where: Conversation, message_id: str) -> Unanswered:
    """A message that nobody answered, and why."""
    told = story(connection, where, message_id)
    return Unanswered(told, line(connection, where, message_id))


def trace(connection: Connection, turn_id: str) -> tuple[Trace, ...]:
    query = select(turns, ending_of(), runs.c.error)
    query = query.outerjoin(runs, runs.c.turn_id == turns.c.turn_id)
    query = query.where(turns.c.turn_id == turn_id).order_by(turns.c.id.desc()).limit(1)
    row = connection.execute(query).one_or_none()
    if row is None:
        return ()
    told = tuple(readable(lambda row: turn_row(row, sums_of(connection, [turn_id])), [row]))
    where = Conversation.parse(row.conversation)
    return tuple(
        turn_trace(connection, one, row, story(connection, where, row.message_id)) for one in told
    )


def turn_trace(connection: Connection, row: TurnRow, turn: Row[Any], story: Story) -> Trace:
    """The turn of this row, and what it did."""
    said = [turn.user, *(line.user for line in _of(connection, steered, row.turn_id))]
    prompt = "\n".join(read.text for text in said if (read := _read(UserMessage, text)))
    spans = [
        *_wait(row, story),
        *_steps(connection, row.turn_id),
        *_requests(connection, row),
        *_sends(connection, row.turn_id),
    ]
    spans.sort(key=lambda span: span.begin)
    return Trace(row=row, story=story, prompt=prompt, spans=tuple(spans[:SPANS]))


def _of(connection: Connection, table: Table, turn_id: str) -> list[Row[Any]]:
    query = select(table).where(table.c.turn_id == turn_id).order_by(table.c.id).limit(SPANS)
    return list(connection.execute(query))


def _read(kind: Any, text: str | None) -> Any:
    try:
        return codec.read(kind, text) if text else None
    except codec.Unreadable:
        return None


def _wait(row: TurnRow, story: Story) -> Iterator[Span]:
    if story.taken and row.at > story.taken:
        yield Span(kind="wait", name="", begin=story.taken, seconds=row.at - story.taken)


def _steps(connection: Connection, turn_id: str) -> Iterator[Span]:
    """Each request with its calls; a call's arguments stand in the answer that made it."""
    used = {row.step: row for row in _of(connection, usage, turn_id)}
    asked: dict[tuple[int, str], str] = {}
    ends: dict[int, float] = {}
    for step in _of(connection, steps, turn_id):
        message = _read(AssistantMessage, step.message) or AssistantMessage()
        ends[step.step] = step.at
        for call in message.tool_calls:
            asked[step.step, plain(call.id)] = call.arguments
        yield _request(step, step.finish, message, used.get(step.step))
    for call in _of(connection, tool_calls, turn_id):
        result = _read(ToolMessage, call.result)
        yield Span(
            kind="tool",
            name=call.name,
            begin=call.started or ends.get(call.step, 0.0),
            seconds=call.seconds or 0.0,
            outcome=call.code,
            text="" if result is None else result.content,
            asked=asked.get((call.step, call.call_id), ""),
        )


def _request(
    row: Row[Any], outcome: str, message: AssistantMessage, used: Row[Any] | None, run: str = ""
) -> Span:
    calls = "".join(f"\n→ {call.name}({call.arguments})" for call in message.tool_calls)
    return Span(
        kind="model",
        name=row.model,
        begin=row.at - row.seconds,
        seconds=row.seconds,
        outcome=outcome,
        text=(message.text + calls).strip(),
        thought=message.reasoning.text if message.reasoning else "",
        usage=None if used is None else _usage(used),
        run=run,
    )


def _usage(row: Row[Any]) -> UsageSum:
    unpriced = row.cost is None
    return UsageSum(1, row.prompt, row.cached, row.completion, row.cost or 0.0, int(unpriced))


def _requests(connection: Connection, turn: TurnRow) -> Iterator[Span]:
    """Those that failed, those of subagents, and those on errands."""
    closed = math.inf if turn.seconds is None else turn.at + turn.seconds
    for row in _of(connection, requests, turn.turn_id):
        message = _read(AssistantMessage, row.message)
        if message is not None:
            yield _request(row, row.outcome, message, None, row.run)
            continue
        begin = row.at - row.seconds
        yield Span(
            kind="model" if row.outcome == "ok" else "failed",
            name=row.model,
            begin=begin,
            seconds=row.seconds,
            outcome=row.outcome,
            # Older versions wrote down no errand.
            run=row.run or (RequestPurpose.LATER if begin >= closed else ""),
        )


def _sends(connection: Connection, turn_id: str) -> Iterator[Span]:
    for row in _of(connection, sends, turn_id):
        segments = _read(SEND_SEGMENTS, row.segments) or ()
        yield Span(
            kind="send",
            name="final" if row.final else "between",
            begin=row.queued,
            seconds=0.0 if draft_of(row.send_id) else max(0.0, row.changed - row.queued),
            outcome=row.state,
            text=plain_words(segments),
            asked=row.reason,
        )
