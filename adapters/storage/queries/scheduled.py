"""Jobs of all accounts as pages, with the outcome of their last firing."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from heapq import merge
from itertools import islice
from typing import Any

from sqlalchemy import Connection, Row, func, select

from adapters.storage.queries.jobs import LIVE
from adapters.storage.queries.scanning import readable
from adapters.storage.queries.turns import ending_of
from adapters.storage.rows import SEND_SEGMENTS
from adapters.storage.tables import jobs, messages, runs, sends, speakers, turns
from bot.core import codec
from bot.core.actions import plain_words
from bot.core.console_views import FIRST_JOB, ROWS, JobMark, JobRow, JobRows, LastFiring
from bot.core.conversation import Conversation


def scheduled(
    connection: Connection, after: JobMark = FIRST_JOB, where: Conversation | None = None
) -> JobRows:
    """The jobs after that mark, of all accounts or of one conversation, in the order in which the
    scheduler handles them.
    """
    wake, last = after
    query = (
        select(jobs)
        .where(LIVE, jobs.c.wake >= wake, (jobs.c.wake > wake) | (jobs.c.id > last))
        .order_by(jobs.c.wake, jobs.c.id)
        .limit(ROWS + 1)
    )
    if where is None:
        # One index look-up per account: for all at once SQLite would sort all waiting jobs.
        parts = [query.where(jobs.c.account == one) for one in _accounts_with_jobs(connection)]
    else:
        parts = [query.where(jobs.c.conversation == str(where))]
    told = merge(*map(connection.execute, parts), key=lambda row: (row.wake, row.id))
    found = list(islice(told, ROWS + 1))
    shown = found[:ROWS]
    lasts = _last_firings(connection, [row.claim for row in shown if row.claim])
    called = _names_for_jobs(connection, shown)
    return JobRows(
        tuple(_job_row(row, lasts, called) for row in shown),
        (shown[-1].wake, shown[-1].id) if len(found) > ROWS else None,
    )


def count_jobs(connection: Connection) -> dict[int, int]:
    """The number of jobs that have not ended, by account."""
    query = select(jobs.c.account, func.count().label("number")).where(LIVE)
    found = connection.execute(query.group_by(jobs.c.account))
    return {row.account: row.number for row in found}


def _accounts_with_jobs(connection: Connection) -> Iterator[int]:
    first = select(func.min(jobs.c.account)).where(LIVE)
    account = connection.scalar(first)
    while account is not None:
        yield account
        account = connection.scalar(first.where(jobs.c.account > account))


def _last_firings(connection: Connection, claims: Sequence[str]) -> dict[str, LastFiring]:
    """What became of the sends and turns with these ids."""
    sent = select(sends).where(sends.c.send_id.in_(claims)).order_by(sends.c.id)

    def read(row: Row[Any]) -> tuple[str, LastFiring]:
        text = plain_words(codec.read(SEND_SEGMENTS, row.segments))
        return row.send_id, LastFiring(at=row.changed, outcome=row.state, text=text)

    found = dict(readable(read, connection.execute(sent)))
    opened = select(turns.c.turn_id, turns.c.opened, ending_of()).outerjoin(
        runs, runs.c.turn_id == turns.c.turn_id
    )
    for row in connection.execute(opened.where(turns.c.turn_id.in_(claims)).order_by(turns.c.id)):
        found[row.turn_id] = LastFiring(at=row.opened, outcome=row.ending, turn_id=row.turn_id)
    return found


def _names_for_jobs(connection: Connection, rows: Sequence[Row[Any]]) -> dict[tuple[str, int], str]:
    """The last known name of each maker by conversation and number, and of each group by 0."""
    called = dict[tuple[str, int], str]()
    for here in dict.fromkeys(row.conversation for row in rows):
        makers = {row.maker for row in rows if row.conversation == here}
        query = select(speakers.c.user_id, speakers.c.name).where(
            speakers.c.conversation == here, speakers.c.user_id.in_(makers)
        )
        called |= {(here, user): name for user, name in connection.execute(query)}
        latest = select(messages.c.group_name).where(messages.c.conversation == here)
        called[here, 0] = connection.scalar(latest.order_by(messages.c.id.desc()).limit(1)) or ""
    return called


def _job_row(
    row: Row[Any],
    lasts: Mapping[str, LastFiring],
    called: Mapping[tuple[str, int], str],
) -> JobRow:
    return JobRow(
        where=Conversation.parse(row.conversation),
        number=row.number,
        maker=row.maker,
        words=row.words,
        kind=row.kind,
        rule=row.rule,
        zone=row.zone,
        due=row.due,
        state=row.state,
        fired=row.fired,
        missed=row.missed,
        group=called[row.conversation, 0],
        name=called.get((row.conversation, row.maker), ""),
        last=lasts.get(row.claim),
    )
