"""Turns and how they ended, and messages that nobody answered, as rows in the order of their ids:
no row is counted.
"""

from __future__ import annotations

from collections.abc import Sequence
from heapq import merge
from itertools import islice, takewhile
from operator import itemgetter
from typing import Any

from sqlalchemy import (
    ColumnElement,
    Connection,
    Label,
    Row,
    ScalarSelect,
    Select,
    Subquery,
    case,
    exists,
    func,
    literal_column,
    select,
)

from adapters.storage.queries.scanning import SLACK, between, id_at, ids, opened_between, readable
from adapters.storage.queries.usage import sums_of
from adapters.storage.rows import SEGMENTS
from adapters.storage.tables import (
    messages,
    requests,
    runs,
    sends,
    tool_calls,
    turns,
    usage,
    verdicts,
)
from bot.domain import codec
from bot.domain.actions import plain_words
from bot.domain.console_views import ROWS, UNANSWERED, TurnQuery, TurnRow, TurnRows
from bot.domain.events import Conversation, MessageReceived
from bot.domain.journal import SendState, Undelivered, Unfinished
from bot.domain.query_results import (
    UsageSum,
)
from bot.domain.run import Stop

OPEN = (SendState.QUEUED, SendState.SENDING, SendState.UNKNOWN)


LOST = (SendState.REFUSED, SendState.DROPPED)


WALK = 5_000  # turns that are looked at for a page: what is rare is further down


SAID = "segments", "erased", "group_name", "card", "nickname"


def latest_payers(connection: Connection, latest: int) -> tuple[tuple[str, Conversation, int], ...]:
    """Whose the latest turns are; what nobody called for is nobody's."""
    payer = case((turns.c.uncalled, 0), else_=turns.c.asker)
    query = select(turns.c.turn_id, turns.c.conversation, payer)
    rows = connection.execute(query.order_by(turns.c.id.desc()).limit(latest))
    return tuple((turn_id, Conversation.parse(here), who) for turn_id, here, who in rows)


def outcome_of(run: Any = runs) -> Label[Any]:
    """How the turn of this run ended, `outcome`: what its row says, or its sends since."""
    unconfirmed = _text(Undelivered.UNCONFIRMED)
    turn = turns.alias("whose")
    # What was refused before the end had been said in another form, or the model knew.
    later = sends.c.changed > turn.c.closed
    lost = (_is(*LOST) & later) | (_is(SendState.WITHDRAWN) & sends.c.final)
    since = case(
        (_has(run, turn, lost), _text(Undelivered.NOT_DELIVERED)),
        (_has(run, turn, _is(*OPEN)), unconfirmed),
        (_has(run, turn, _is(SendState.CONFIRMED)), _text(Stop.ANSWERED)),
        # It waited too long for its caller, and was refused before the end.
        (_has(run, turn, _is(*LOST)), _text(Undelivered.NOT_DELIVERED)),
        else_=unconfirmed,  # its sends are gone
    )
    return case((run.c.stop == unconfirmed, since), else_=run.c.stop).label("outcome")


def ending_of(run: Any = runs) -> Label[Any]:
    """What became of the turn of this run, `ending`: an `Ending` in any case, also where the turn
    has no run yet.
    """
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
    """Written out: PostgreSQL groups by an expression only if it has no parameters."""
    return literal_column(f"'{word}'")


def rows(connection: Connection, query: TurnQuery) -> TurnRows:
    """The latest turns and unanswered messages; a page may be short where more are further down."""
    low = _low(connection, query)
    asked: Sequence[Row[Any]] = ()
    if query.outcome != UNANSWERED:
        asked = connection.execute(_turns(connection, query).where(turns.c.id >= low)).all()
        low = low if len(asked) <= ROWS else 0
    horizon = _horizon(connection, low)
    silent: Sequence[Row[Any]] = ()
    if query.outcome in {"", UNANSWERED} and not (query.tool or query.model or query.cost):
        silent = connection.execute(_verdicts(connection, query, horizon)).all()
    # Each in the order of its ids, whatever the times are: the next page begins behind both.
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
    """The id where a page ends that looks for what may be rare; 0 where it looks at all."""
    rare = query.asker or query.tool or query.model or query.cost
    if not rare and query.outcome in {"", Stop.FAILED, UNANSWERED}:
        return 0
    until = id_at(connection, turns.c.opened, query.until + SLACK) if query.until else query.turn
    first, behind = ids(connection, turns)
    high = min(one for one in (query.turn, until, behind) if one)
    since = id_at(connection, turns.c.opened, query.since - SLACK) if query.since else 0
    return low if (low := high - WALK) > max(first, since) else 0


def _horizon(connection: Connection, low: int) -> float:
    """When the oldest turn of this page began: what is older than that is on the next."""
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
    if query.outcome == Stop.FAILED and not query.since:  # it looks at all, by an index of errors
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
    """The first of it, looked for of one turn after the other: PostgreSQL would rather walk over
    all rows of a table to find what it takes to be in few of them.
    """
    return query.limit(1).correlate(turns).scalar_subquery()


def _verdicts(connection: Connection, query: TurnQuery, horizon: float) -> Select[Any]:
    """Verdicts that nobody was answered by, and the message, where it is kept; not many that are
    older than the horizon.
    """
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
    """That a verdict is the last one about its message, and no model was asked about that."""
    later = verdicts.alias("later")
    same = (
        later.c.conversation == verdicts.c.conversation,
        later.c.message_id == verdicts.c.message_id,
        later.c.id > verdicts.c.id,
    )
    return ~verdicts.c.wakes & ~select(later.c.id).where(*same).exists()


def _with_words(found: Subquery) -> Select[Any]:
    """These verdicts with their messages, where those are kept."""
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
    """The outcome of the last failed request of each turn; those of subagents do not count."""
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
