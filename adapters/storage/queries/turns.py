"""Turns with their outcomes and unanswered messages: as pages of rows in id order, without
counting, and one in full.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from heapq import merge
from itertools import islice, takewhile
from operator import itemgetter
from typing import Any

from msgspec.structs import replace
from sqlalchemy import (
    ColumnElement,
    Connection,
    Label,
    Row,
    ScalarSelect,
    Select,
    Subquery,
    Table,
    case,
    exists,
    func,
    literal_column,
    select,
)

from adapters.storage.queries.conversations import line
from adapters.storage.queries.scanning import SLACK, between, id_at, ids, opened_between, readable
from adapters.storage.rows import SEGMENTS, SEND_SEGMENTS
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
from bot.core import codec
from bot.core.actions import plain_words
from bot.core.console_views import (
    ROWS,
    UNANSWERED,
    Span,
    Trace,
    TurnQuery,
    TurnRow,
    TurnRows,
    Unanswered,
)
from bot.core.conversation import Conversation
from bot.core.drafts import draft_of
from bot.core.events import CAPPED, MessageReceived
from bot.core.journal import RequestPurpose, SendState, Undelivered, Unfinished
from bot.core.query_results import Publication, Story, StoryCall, UsageSum
from frostagent.types.errors import ToolDenied, ToolUnavailable
from frostagent.types.messages import AssistantMessage, ToolMessage, UserMessage
from frostagent.types.runs import Stop

TOKENS = "prompt", "cached", "completion"

OPEN = (SendState.QUEUED, SendState.SENDING, SendState.UNKNOWN)


LOST = (SendState.REFUSED, SendState.DROPPED)


WALK = 5_000  # turns searched for a page; rare ones are further down


SAID = "segments", "erased", "group_name", "card", "nickname"


def latest_payers(connection: Connection, latest: int) -> tuple[tuple[str, Conversation, int], ...]:
    """Who pays for the latest turns; 0 for turns that the bot joined unasked."""
    payer = case((turns.c.uncalled, 0), else_=turns.c.asker)
    query = select(turns.c.turn_id, turns.c.conversation, payer)
    rows = connection.execute(query.order_by(turns.c.id.desc()).limit(latest))
    return tuple((turn_id, Conversation.parse(here), who) for turn_id, here, who in rows)


def outcome_of(run: Any = runs) -> Label[Any]:
    """The `outcome` of this run's turn: that of its row, or of its sends since."""
    unconfirmed = _text(Undelivered.UNCONFIRMED)
    turn = turns.alias("whose")
    # Earlier refusals were sent in another form, or the model knew.
    later = sends.c.changed > turn.c.closed
    lost = (_is(*LOST) & later) | (_is(SendState.WITHDRAWN) & sends.c.final)
    since = case(
        (_has(run, turn, lost), _text(Undelivered.NOT_DELIVERED)),
        (_has(run, turn, _is(*OPEN)), unconfirmed),
        (_has(run, turn, _is(SendState.CONFIRMED)), _text(Stop.ANSWERED)),
        # The call waited too long, and the send was refused before the end.
        (_has(run, turn, _is(*LOST)), _text(Undelivered.NOT_DELIVERED)),
        else_=unconfirmed,  # the sends are gone
    )
    return case((run.c.stop == unconfirmed, since), else_=run.c.stop).label("outcome")


def ending_of(run: Any = runs) -> Label[Any]:
    """The `ending` of this run's turn: always an `Ending`, even if the turn has no run yet."""
    has_ended = func.coalesce(run.c.stop, _text("")) != _text("")
    return case(
        (has_ended, outcome_of(run).element),
        (run.c.state.is_not(None), _text(Unfinished.WAITING)),
        else_=_text(Unfinished.RUNNING),
    ).label("ending")


def _has(run: Any, turn: Any, which: ColumnElement[bool]) -> ColumnElement[bool]:
    """Whether the turn has such a send in its own conversation."""
    here = (sends.c.turn_id == run.c.turn_id, turn.c.turn_id == sends.c.turn_id)
    found = select(sends.c.id).where(*here, sends.c.conversation == turn.c.conversation, which)
    return exists(found.correlate(run))


def _is(*states: SendState) -> ColumnElement[bool]:
    return sends.c.state.in_([_text(state) for state in states])


def _text(word: str) -> ColumnElement[str]:
    """A literal, because PostgreSQL groups only by expressions without parameters."""
    return literal_column(f"'{word}'")


def rows(connection: Connection, query: TurnQuery) -> TurnRows:
    """The latest turns and unanswered messages. A page may be short although more follow."""
    low = _low(connection, query)
    asked: Sequence[Row[Any]] = ()
    if query.outcome != UNANSWERED:
        asked = connection.execute(_turns(connection, query).where(turns.c.id >= low)).all()
        low = low if len(asked) <= ROWS else 0
    horizon = _horizon(connection, low)
    silent: Sequence[Row[Any]] = ()
    if query.outcome in {"", UNANSWERED} and not (query.tool or query.model or query.cost):
        silent = connection.execute(_verdicts(connection, query, horizon)).all()
    # Each kind in id order, whatever its times: the next page begins after both.
    recent = list(takewhile(lambda row: row.at >= horizon, silent))
    told = merge(
        ((-row.opened, True, row) for row in asked),
        ((-row.at, False, row) for row in recent),
        key=itemgetter(0),
    )
    shown = [(is_turn, row) for _, is_turn, row in islice(told, ROWS)]
    taken = [row for is_turn, row in shown if is_turn]
    sums = sums_of(connection, [row.turn_id for row in taken])
    failed = _refusals(connection, [row.turn_id for row in taken if row.error])

    def told_of(one: tuple[bool, Row[Any]]) -> TurnRow:
        is_turn, row = one
        return turn_row(row, sums, failed.get(row.turn_id, "")) if is_turn else _silent(row)

    read = tuple(readable(told_of, shown))
    if len(shown) == len(asked) + len(silent) and not low:
        return TurnRows(read, None)
    turn = min((row.id for row in taken), default=query.turn)
    verdict = min((row.id for is_turn, row in shown if not is_turn), default=query.verdict)
    return TurnRows(read, (low if low and len(taken) == len(asked) else turn, verdict))


def _low(connection: Connection, query: TurnQuery) -> int:
    """The lowest id a page searches if matches may be rare; 0 if it searches all."""
    rare = query.asker or query.tool or query.model or query.cost
    if not rare and query.outcome in {"", Stop.FAILED, UNANSWERED}:
        return 0
    until = id_at(connection, turns.c.opened, query.until + SLACK) if query.until else query.turn
    first, behind = ids(connection, turns)
    high = min(one for one in (query.turn, until, behind) if one)
    since = id_at(connection, turns.c.opened, query.since - SLACK) if query.since else 0
    return low if (low := high - WALK) > max(first, since) else 0


def _horizon(connection: Connection, low: int) -> float:
    """When this page's oldest turn began; older verdicts are on the next page."""
    first = select(turns.c.opened).where(turns.c.id >= low).order_by(turns.c.id).limit(1)
    return float(connection.scalar(first) or 0.0) if low else 0.0


def _turns(connection: Connection, query: TurnQuery) -> Select[Any]:
    found = select(turns, ending_of(), runs.c.error).outerjoin(
        runs, runs.c.turn_id == turns.c.turn_id
    )
    found = found.where(*opened_between(connection, query.since, query.until))
    if query.where:
        found = found.where(turns.c.conversation == query.where)
    if query.asker:
        found = found.where(turns.c.asker == query.asker)
    if query.outcome:
        ended = select(ending_of()).where(runs.c.turn_id == turns.c.turn_id)
        ending = func.coalesce(_each(ended.order_by(runs.c.id.desc())), Unfinished.RUNNING)
        found = found.where(ending == query.outcome)
    if query.outcome == Stop.FAILED and not query.since:  # by the index of errors, over all turns
        found = found.where(turns.c.turn_id.in_(select(runs.c.turn_id).where(runs.c.error != "")))
    if query.tool:
        calls = select(tool_calls.c.id).where(
            tool_calls.c.turn_id == turns.c.turn_id, tool_calls.c.name == query.tool
        )
        found = found.where(_each(calls).is_not(None))
    if query.model:
        asked = select(usage.c.id).where(
            usage.c.turn_id == turns.c.turn_id, usage.c.model == query.model
        )
        found = found.where(_each(asked).is_not(None))
    if query.cost:
        taken = select(func.sum(usage.c.cost)).where(usage.c.turn_id == turns.c.turn_id)
        found = found.where(_each(taken) >= query.cost)
    if query.turn:
        found = found.where(turns.c.id < query.turn)
    return found.order_by(turns.c.id.desc()).limit(ROWS + 1)


def _each(query: Select[Any]) -> ScalarSelect[Any]:
    """The first row per turn. A correlated subquery, because PostgreSQL would otherwise scan whole
    tables for what it believes to be rare.
    """
    return query.limit(1).correlate(turns).scalar_subquery()


def _verdicts(connection: Connection, query: TurnQuery, horizon: float) -> Select[Any]:
    """Verdicts without an answer, with any kept message; few older than the horizon."""
    found = select(verdicts).where(unanswered())
    found = found.where(*between(connection, verdicts.c.at, query.since, query.until))
    if horizon:
        found = found.where(verdicts.c.id >= id_at(connection, verdicts.c.at, horizon - SLACK))
    if query.where:
        found = found.where(verdicts.c.conversation == query.where)
    if query.asker:
        found = found.where(verdicts.c.sender == query.asker)
    if query.verdict:
        found = found.where(verdicts.c.id < query.verdict)
    return _with_words(found.order_by(verdicts.c.id.desc()).limit(ROWS + 1).subquery("few"))


def unanswered() -> ColumnElement[bool]:
    """Condition: the verdict is its message's last one, and no model was asked."""
    later = verdicts.alias("later")
    same = (
        later.c.conversation == verdicts.c.conversation,
        later.c.message_id == verdicts.c.message_id,
        later.c.id > verdicts.c.id,
    )
    return ~verdicts.c.wakes & ~select(later.c.id).where(*same).exists()


def _with_words(found: Subquery) -> Select[Any]:
    """These verdicts with their messages, if kept."""
    alike = messages.alias("alike")
    message = (
        select(func.max(alike.c.id))
        .where(
            alike.c.conversation == found.c.conversation,
            alike.c.message_id == found.c.message_id,
        )
        .correlate(found)
        .scalar_subquery()
    )
    said = [messages.c[name] for name in SAID]
    told = select(found, *said).select_from(found.outerjoin(messages, messages.c.id == message))
    return told.order_by(found.c.id.desc())


def _refusals(connection: Connection, turn_ids: Sequence[str]) -> dict[str, str]:
    """The outcome of each turn's last failed request; those of subagents do not count."""
    if not turn_ids:
        return {}
    own = requests.c.turn_id.in_(turn_ids), requests.c.run == "", requests.c.outcome != "ok"
    found = select(requests.c.turn_id, requests.c.outcome).where(*own).order_by(requests.c.id)
    return {row.turn_id: row.outcome for row in connection.execute(found)}


def turn_row(row: Row[Any], sums: dict[str, UsageSum], refusal: str = "") -> TurnRow:
    question: MessageReceived = codec.read(MessageReceived, row.question)
    return TurnRow(
        turn_id=row.turn_id,
        message_id=row.message_id,
        where=question.conversation,
        group=question.group_name,
        asker=row.asker,
        name=question.sender.name,
        text=plain_words(question.segments, own=question.self_id),
        at=row.opened,
        outcome=row.ending,
        seconds=None if row.closed is None else row.closed - row.opened,
        error=row.error or "",
        refusal=refusal,
        usage=sums.get(row.turn_id, UsageSum()),
    )


def _silent(row: Row[Any]) -> TurnRow:
    said = row.segments is not None and not row.erased
    where = Conversation.parse(row.conversation)
    segments = codec.read(SEGMENTS, row.segments) if said else ()
    return TurnRow(
        turn_id="",
        message_id=row.message_id,
        where=where,
        group=row.group_name if said else "",
        asker=row.sender,
        name=(row.card or row.nickname) if said else "",
        text=plain_words(segments, own=where.platform_id),
        at=row.at,
        outcome=UNANSWERED,
        reason=row.reason,
    )


SENT = ("confirmed", "sending", "unknown")


FAILED = ("refused", "dropped")


PUBLISHED = (SendState.PUBLISHED, SendState.REWORDED)


CALLS = 20  # of one turn, the first ones


SPANS = 300  # of one turn, the first ones


def story(connection: Connection, where: Conversation, message_id: str = "") -> Story:
    """The story of a message and of its turn, which may be empty."""
    here = str(where)
    turn = _turn_about(connection, here, message_id)
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
        if f'"sub_type":"{CAPPED}' in turn.question:
            told = Story(asker=turn.asker, wakes=True, reason="job")
        return _with_turn(connection, told, turn)
    is_open = message is not None and not (message.overheard or message.erased)
    return replace(told, waits=is_open and told.wakes is True)


def _latest(connection: Connection, table: Table, here: str, message_id: str) -> Row[Any] | None:
    query = select(table).where(table.c.conversation == here, table.c.message_id == message_id)
    return connection.execute(query.order_by(table.c.id.desc()).limit(1)).one_or_none()


def _turn_about(connection: Connection, here: str, message_id: str) -> Row[Any] | None:
    """The turn that a message asked for or answers; without an id, the last one there."""
    if not message_id:
        last = select(turns).where(turns.c.conversation == here)
        return connection.execute(last.order_by(turns.c.id.desc()).limit(1)).one_or_none()
    for table in (sends, messages):
        row = _latest(connection, table, here, message_id)
        if row is None or not row.turn_id:
            continue
        query = select(turns).where(turns.c.turn_id == row.turn_id)
        turn = connection.execute(query.order_by(turns.c.id.desc()).limit(1)).one_or_none()
        # A turn that merely read an overheard message does not count. Lines merged with a question,
        # or steering its run, do.
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
    # Owners saw these; they are not part of the answer.
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
    is_told = row.code in {ToolDenied.code, ToolUnavailable.code}
    result = _decoded(ToolMessage, row.result) if is_told else None
    return told if result is None else replace(told, denied=result.content)


def _is_answer(message: str | None) -> bool:
    """Whether a step ended with text only."""
    answer = _decoded(AssistantMessage, message)
    return answer is not None and bool(answer.text.strip()) and not answer.tool_calls


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
    """An unanswered message, and why."""
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
    """The row's turn, and what it did."""
    said = [turn.user, *(line.user for line in _of(connection, steered, row.turn_id))]
    prompt = "\n".join(read.text for text in said if (read := _decoded(UserMessage, text)))
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


def _decoded(kind: Any, text: str | None) -> Any:
    try:
        return codec.read(kind, text) if text else None
    except codec.Unreadable:
        return None


def _wait(row: TurnRow, story: Story) -> Iterator[Span]:
    if story.taken and row.at > story.taken:
        yield Span(kind="wait", name="", begin=story.taken, seconds=row.at - story.taken)


def _steps(connection: Connection, turn_id: str) -> Iterator[Span]:
    """Each request with its calls; the arguments are in the answer that made the call."""
    used = {row.step: row for row in _of(connection, usage, turn_id)}
    asked: dict[tuple[int, str], str] = {}
    ends: dict[int, float] = {}
    for step in _of(connection, steps, turn_id):
        message = _decoded(AssistantMessage, step.message) or AssistantMessage()
        ends[step.step] = step.at
        for call in message.tool_calls:
            asked[step.step, plain(call.id)] = call.arguments
        yield _request(step, step.finish, message, used.get(step.step))
    for call in _of(connection, tool_calls, turn_id):
        result = _decoded(ToolMessage, call.result)
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
    """Failed requests, and those of subagents and of other purposes."""
    closed = math.inf if turn.seconds is None else turn.at + turn.seconds
    for row in _of(connection, requests, turn.turn_id):
        message = _decoded(AssistantMessage, row.message)
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
            # older versions stored no purpose
            run=row.run or (RequestPurpose.LATER if begin >= closed else ""),
        )


def _sends(connection: Connection, turn_id: str) -> Iterator[Span]:
    for row in _of(connection, sends, turn_id):
        segments = _decoded(SEND_SEGMENTS, row.segments) or ()
        yield Span(
            kind="send",
            name="final" if row.final else "between",
            begin=row.queued,
            seconds=0.0 if draft_of(row.send_id) else max(0.0, row.changed - row.queued),
            outcome=row.state,
            text=plain_words(segments),
            asked=row.reason,
        )


def totals(table: Any) -> list[Any]:
    return [
        func.count().label("requests"),
        *(func.coalesce(func.sum(table.c[name]), 0).label(name) for name in TOKENS),
        func.coalesce(func.sum(table.c.cost), 0.0).label("cost"),
        (func.count() - func.count(table.c.cost)).label("unpriced"),
    ]


def sum_of(row: Row[Any]) -> UsageSum:
    return UsageSum(
        int(row.requests),
        int(row.prompt),
        int(row.cached),
        int(row.completion),
        float(row.cost),
        int(row.unpriced),
    )


def sums_of(connection: Connection, turn_ids: Sequence[str]) -> dict[str, UsageSum]:
    query = select(usage.c.turn_id, *totals(usage)).where(usage.c.turn_id.in_(turn_ids))
    return {row.turn_id: sum_of(row) for row in connection.execute(query.group_by(usage.c.turn_id))}
