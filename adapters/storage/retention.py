"""Deletes old rows in small batches, so that nothing else waits long, and adds up past days once,
because summing ninety days of rows takes 300 ms.

Age (STORE_KEEP_DAYS) applies to everything; the number (STORE_KEEP_MESSAGES) only to messages,
oldest first, and never to one still needed for deduplication. A turn stays, whatever became of its
messages. Turns and sends are searched in id order, which is that of time: an index by time would
slow down every turn.
"""

from __future__ import annotations

from dataclasses import dataclass

from sqlalchemy import (
    ColumnElement,
    Connection,
    Table,
    and_,
    case,
    delete,
    exists,
    func,
    insert,
    literal,
    or_,
    select,
    update,
)

from adapters.storage.queries.sums import parts
from adapters.storage.queries.unfinished import SEEN
from adapters.storage.tables import (
    BY_TURN,
    PAYER,
    SHARED,
    audit,
    day_tools,
    day_totals,
    day_usage,
    jobs,
    memories,
    memory_terms,
    messages,
    pictures,
    sends,
    things,
    turns,
    usage,
    verdicts,
    windows,
)
from bot.core.calendar_days import midnight
from bot.core.journal import ERRAND

DAY = 86_400.0
LONGEST_DAY = 25 * 3600.0  # seconds; usage within it may be today's
DESCRIBED = 30  # days that an image's description is kept
ENDED = 30  # days that a job is kept after its last moment
LATE = 2 * 3600.0  # seconds after midnight until a day is added up
ROWS = 500  # of one table per transaction
TURNS = 50  # per transaction, with everything that belongs to them


@dataclass(frozen=True, slots=True)
class Retention:
    """Limits in days and in messages; 0 is unlimited."""

    days: int
    messages: int

    def surplus(self, connection: Connection, *, now: float) -> float:
        """The time up to which messages are surplus; 0 if there is no surplus."""
        if not self.messages:
            return 0.0
        # Uses only the index by time; the table may be hundreds of megabytes.
        newest = (
            select(messages.c.taken)
            .order_by(messages.c.taken.desc())
            .offset(self.messages)
            .limit(1)
        )
        return min(connection.scalar(newest) or 0.0, now - SEEN)

    def sweep(self, connection: Connection, *, now: float, surplus: float) -> bool:
        """Delete one batch of surplus rows. Returns whether there may be more."""
        horizon = now - self.days * DAY if self.days else 0.0
        return (
            _delete_messages(connection, max(horizon, surplus))
            or _delete_verdicts(connection, max(horizon, surplus))
            or _delete_things(connection, horizon)
            or _delete_pictures(connection, max(horizon, now - DESCRIBED * DAY))
            or _delete_sends(connection, horizon)
            or _delete_turns(connection, horizon)
            or _delete_memories(connection, now)
            or _delete_jobs(connection, max(horizon, now - ENDED * DAY))
            or _delete_usage(connection, now - LONGEST_DAY)
            or _delete_old(connection, horizon, now - LONGEST_DAY)
        )


def _delete_messages(connection: Connection, until: float) -> bool:
    old = select(messages.c.id).where(messages.c.taken <= until).limit(ROWS)
    return connection.execute(delete(messages).where(messages.c.id.in_(old))).rowcount > 0


def _delete_verdicts(connection: Connection, until: float) -> bool:
    """Verdicts go with their messages."""
    old = select(verdicts.c.id).where(verdicts.c.at <= until).limit(ROWS)
    return connection.execute(delete(verdicts).where(verdicts.c.id.in_(old))).rowcount > 0


def _delete_things(connection: Connection, until: float) -> bool:
    old = select(things.c.id).where(things.c.at <= until).limit(ROWS)
    return connection.execute(delete(things).where(things.c.id.in_(old))).rowcount > 0


def _delete_memories(connection: Connection, now: float) -> bool:
    """Facts have their own expiry, independent of their conversation's."""
    old = select(memories.c.id).where(memories.c.expires <= now).limit(ROWS)
    return drop_facts(connection, memories.c.id.in_(old))["memories"] > 0


def _delete_jobs(connection: Connection, until: float) -> bool:
    """Those that ended some time ago; their numbers may be given again."""
    old = select(jobs.c.id).where(jobs.c.wake.is_(None), jobs.c.due <= until).limit(ROWS)
    return connection.execute(delete(jobs).where(jobs.c.id.in_(old))).rowcount > 0


def _delete_usage(connection: Connection, until: float) -> bool:
    """Delete the usage of the erased on a day that is over (erasure.py): it was somebody's, and its
    turn is gone.
    """
    gone = (
        usage.c.conversation != "",
        ~exists().where(turns.c.turn_id == usage.c.turn_id),
        ~usage.c.turn_id.startswith(ERRAND),
    )
    old = select(usage.c.id).where(usage.c.at < until, *gone).limit(ROWS)
    return connection.execute(delete(usage).where(usage.c.id.in_(old))).rowcount > 0


def _delete_old(connection: Connection, horizon: float, today: float) -> bool:
    """The sums of days, what errands used, and what was done in the console; all are few."""
    errands = usage.c.at < horizon, usage.c.turn_id.startswith(ERRAND)
    gone = [
        connection.execute(delete(usage).where(*errands)).rowcount,
        connection.execute(delete(day_totals).where(day_totals.c.day < today)).rowcount,
        connection.execute(delete(day_usage).where(day_usage.c.day < horizon)).rowcount,
        connection.execute(delete(day_tools).where(day_tools.c.day < horizon)).rowcount,
        connection.execute(delete(audit).where(audit.c.at < horizon)).rowcount,
    ]
    return any(gone)


def _delete_pictures(connection: Connection, until: float) -> bool:
    old = select(pictures.c.id).where(pictures.c.at <= until).limit(ROWS)
    return connection.execute(delete(pictures).where(pictures.c.id.in_(old))).rowcount > 0


def _delete_sends(connection: Connection, horizon: float) -> bool:
    first = select(sends.c.id, sends.c.queued).order_by(sends.c.id).limit(ROWS)
    old = [row.id for row in connection.execute(first) if row.queued < horizon]
    connection.execute(delete(sends).where(sends.c.id.in_(old)))
    return bool(old)


def _delete_turns(connection: Connection, horizon: float) -> bool:
    """Delete closed turns and all that belongs to them. The next start settles open ones."""
    first = select(turns.c.id, turns.c.turn_id, turns.c.opened).where(turns.c.closed.is_not(None))
    old = [
        row
        for row in connection.execute(first.order_by(turns.c.id).limit(TURNS))
        if row.opened < horizon
    ]
    for table in (*BY_TURN, usage):
        connection.execute(delete(table).where(table.c.turn_id.in_([row.turn_id for row in old])))
    # The summary before a window that begins with such a turn is as old.
    connection.execute(
        update(windows).where(windows.c.first_turn.in_([row.id for row in old])).values(summary="")
    )
    connection.execute(delete(turns).where(turns.c.id.in_([row.id for row in old])))
    return bool(old)


def drop_facts(connection: Connection, which: ColumnElement[bool]) -> dict[str, int]:
    """Delete these facts and their terms. Returns the number of rows per table."""
    ids = select(memories.c.memory_id).where(which)
    terms = connection.execute(delete(memory_terms).where(memory_terms.c.memory_id.in_(ids)))
    gone = connection.execute(delete(memories).where(which))
    return {"memories": gone.rowcount, "memory_terms": terms.rowcount}


def add_up(connection: Connection, *, now: float) -> bool:
    """Add up the oldest finished day that is missing. Returns whether there was one."""
    is_usage, is_tools = (_add_up_next(connection, one, now) for one in (day_usage, day_tools))
    return is_usage or is_tools


def _add_up_next(connection: Connection, table: Table, now: float) -> bool:
    """Each table separately, because a newer one lacks earlier days."""
    last = connection.scalar(select(func.max(table.c.day)))
    since = 0.0 if last is None else midnight(last, later=1)
    used = usage.c.at >= since, usage.c.at < midnight(now - LATE)
    first = connection.scalar(select(func.min(usage.c.at)).where(*used))
    if first is None:
        return False
    work = _add_up if table is day_usage else _add_up_tools
    work(connection, midnight(first), midnight(first, later=1))
    return True


def _add_up(connection: Connection, day: float, end: float) -> None:
    """Usage of erased turns counts for no person (erasure.py)."""
    turn = select(turns.c.id).where(turns.c.turn_id == usage.c.turn_id).exists()
    is_theirs = and_(usage.c.conversation != "", or_(turn, usage.c.turn_id.startswith(ERRAND)))
    theirs = (
        select(
            case((is_theirs, usage.c.conversation), else_="").label("conversation"),
            case((is_theirs, usage.c.asker), else_=0).label("asker"),
            *(usage.c[name] for name in ("model", "prompt", "completion", "cached", "cost")),
        )
        .where(usage.c.at >= day, usage.c.at < end, usage.c.step != PAYER)
        .subquery()
    )
    by = theirs.c.conversation, theirs.c.asker, theirs.c.model
    sums = select(
        literal(day),
        *by,
        func.count(),
        func.sum(theirs.c.prompt),
        func.sum(theirs.c.completion),
        func.sum(theirs.c.cached),
        func.count() - func.count(theirs.c.cost),
        func.coalesce(func.sum(theirs.c.cost), 0.0),
    ).group_by(*by)
    names = ("day", "conversation", "asker", "model", "requests", "prompt", "completion", "cached")
    connection.execute(insert(day_usage).from_select((*names, "unpriced", "cost"), sums))


def _add_up_tools(connection: Connection, day: float, end: float) -> None:
    by_tool = parts(usage.c.at >= day, usage.c.at < end).subquery()
    sums = select(literal(day), *by_tool.c)
    connection.execute(insert(day_tools).from_select(("day", "tool", *SHARED), sums))
