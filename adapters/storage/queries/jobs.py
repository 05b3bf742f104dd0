"""Jobs: which are due, the outcome of their claims, and lists of them."""

from __future__ import annotations

import math
from collections.abc import Collection
from typing import Any

from sqlalchemy import Connection, Row, and_, func, or_, select, text

from adapters.storage.queries.conversations import conversation_of
from adapters.storage.queries.scanning import readable
from adapters.storage.tables import LIVE_JOB, jobs, runs, sends, tool_calls, turns
from bot.core import codec
from bot.core.actions import JobWords, jobs_in
from bot.core.conversation import Conversation, NotAConversation
from bot.core.jobs import Fate, Job, JobKind, JobsSaid, JobState
from bot.core.journal import SendState
from frostagent.types.runs import Stop
from frostagent.types.traits import Audience

AT_ONCE = 500  # jobs of one read
LISTED = 500

LIVE = text(LIVE_JOB)
KNOWN = and_(jobs.c.kind.in_(JobKind), jobs.c.state.in_(JobState), jobs.c.authority.in_(Audience))
"""Jobs that this version can read. One of a later version must neither fire nor hide the others."""
CLAIMED = (JobState.FIRING, JobState.REPORTING)
LOST = frozenset({SendState.DROPPED, SendState.REFUSED, SendState.WITHDRAWN})
OPEN = frozenset({SendState.QUEUED, SendState.SENDING})


def next_wake(connection: Connection, accounts: Collection[int]) -> float:
    # One index look-up per account: for several at once SQLite would sort all waiting jobs.
    first = select(func.min(jobs.c.wake)).where(LIVE, KNOWN)
    found = (connection.scalar(first.where(jobs.c.account == one)) for one in accounts)
    return min((wake for wake in found if wake is not None), default=math.inf)


def due(connection: Connection, accounts: Collection[int], now: float) -> tuple[Job, ...]:
    query = select(jobs).where(LIVE, KNOWN, jobs.c.wake <= now)
    query = query.order_by(jobs.c.wake).limit(AT_ONCE)
    found = [
        row
        for account in accounts
        for row in connection.execute(query.where(jobs.c.account == account))
    ]
    return tuple(readable(_job, sorted(found, key=lambda row: row.wake)))


def in_progress(connection: Connection, account: int) -> tuple[Job, ...]:
    is_begun = and_(jobs.c.kind == JobKind.RUN, jobs.c.due < jobs.c.wake)
    is_begun = or_(jobs.c.state.in_(CLAIMED), and_(jobs.c.state == JobState.WAITING, is_begun))
    query = select(jobs).where(LIVE, jobs.c.account == account, is_begun)
    return tuple(readable(_job, connection.execute(query.order_by(jobs.c.wake))))


def listed(
    connection: Connection,
    account: int,
    *,
    where: Conversation | None = None,
    maker: int = 0,
    number: int = 0,
) -> tuple[Job, ...]:
    query = select(jobs).where(LIVE, jobs.c.account == account)
    if where is not None:
        query = query.where(jobs.c.conversation == str(where))
    if maker:
        query = query.where(jobs.c.maker == maker)
    if number:
        query = query.where(jobs.c.number == number)
    found = connection.execute(query.order_by(jobs.c.due, jobs.c.id).limit(LISTED))
    return tuple(readable(_job, found))


def latest_number(connection: Connection, account: int) -> int:
    return connection.scalar(select(func.max(jobs.c.number)).where(jobs.c.account == account)) or 0


def said_as(connection: Connection, where: Conversation, message_id: str) -> JobsSaid | None:
    said = select(sends).where(sends.c.conversation == str(where), sends.c.message_id == message_id)
    send = connection.execute(said.order_by(sends.c.id.desc()).limit(1)).one_or_none()
    if send is None:
        return None
    query = select(jobs).where(jobs.c.conversation == str(where)).order_by(jobs.c.due, jobs.c.id)
    if send.turn_id:
        words, query = JobWords.FIRED, query.where(jobs.c.claim == send.turn_id)
    elif (named := jobs_in(send.send_id)) is not None:
        words, numbers = named
        # The number of a deleted job may have been given again since.
        query = query.where(jobs.c.number.in_(numbers), jobs.c.made <= send.queued)
    else:
        return None
    found = tuple(readable(_job, connection.execute(query)))
    return JobsSaid(words, found) if found else None


def fate(connection: Connection, job: Job) -> Fate:
    """If the claim was erased, it counts as said."""
    if job.kind is JobKind.RUN and job.state is JobState.FIRING:
        return _fate_of_turn(connection, job.claim)
    query = select(sends.c.state).where(sends.c.send_id == job.claim)
    state = connection.scalar(query.order_by(sends.c.id.desc()).limit(1))
    if state is None:
        return Fate.SAID
    if state == SendState.UNKNOWN:
        return Fate.UNKNOWN
    return Fate.LOST if state in LOST else Fate.OPEN if state in OPEN else Fate.SAID


def _fate_of_turn(connection: Connection, turn_id: str) -> Fate:
    """A turn that a crash interrupted counts by its retry, if there is one. An erased turn counts
    as said, and so does one that reported the interruption to its asker.
    """
    query = select(turns).where(turns.c.turn_id == turn_id)
    turn = connection.execute(query.order_by(turns.c.id.desc()).limit(1)).one_or_none()
    if turn is None:
        return Fate.SAID
    again = select(turns).where(
        turns.c.conversation == turn.conversation,
        turns.c.id > turn.id,
        turns.c.retry_of == turn_id,
    )
    turn = connection.execute(again.limit(1)).one_or_none() or turn
    if turn.closed is None:
        return Fate.OPEN
    stop = connection.scalar(select(runs.c.stop).where(runs.c.turn_id == turn.turn_id))
    if stop != Stop.INTERRUPTED:
        return Fate.SAID
    said = select(sends.c.final).where(sends.c.turn_id == turn.turn_id)
    finals = set(connection.scalars(said))
    if True in finals:
        return Fate.SAID
    began = select(tool_calls.c.id).where(
        tool_calls.c.turn_id == turn.turn_id, tool_calls.c.started.is_not(None)
    )
    is_begun = bool(finals) or connection.scalar(began.limit(1)) is not None
    return Fate.BROKEN if is_begun else Fate.LOST


def _job(row: Row[Any]) -> Job:
    """Raises Unreadable."""
    try:
        return _read_job(row)
    except (ValueError, NotAConversation) as error:
        raise codec.Unreadable(f"J{row.number} of account {row.account}: {error}") from error


def _read_job(row: Row[Any]) -> Job:
    return Job(
        number=row.number,
        where=conversation_of(row),
        maker=row.maker,
        kind=JobKind(row.kind),
        words=row.words,
        made=row.made,
        due=row.due,
        wake=row.wake,
        rule=row.rule,
        zone=row.zone,
        message_id=row.message_id,
        authority=Audience(row.authority),
        language=row.language,
        state=JobState(row.state),
        claim=row.claim,
        fired=row.fired,
        missed=row.missed,
        notes=row.notes,
    )
