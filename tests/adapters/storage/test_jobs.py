"""Jobs in the journal: what is to be looked at, what became of a firing, and how they end."""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import pytest
from msgspec.structs import replace
from sqlalchemy import select

from adapters.storage.batches import EntryBatches
from adapters.storage.database import Database
from adapters.storage.queries.jobs import due, fate, in_progress, latest_number, listed, next_wake, said_as
from adapters.storage.retention import Retention
from adapters.storage.tables import jobs
from bot.core.actions import JobWords
from bot.core.conversation import Conversation
from bot.core.jobs import Fate, JobChanged, JobKind, JobMade, JobsEnded, JobState
from bot.core.journal import Entry, MessageErased, SendChanged, SendState
from frostagent.types.messages import AssistantMessage
from frostagent.types.runs import Stop
from frostagent.types.traits import Audience
from tests.adapters.storage.entries import NOW, began, closing, job, opening, put, read, sending
from tests.cases import each_case
from tests.fakes import BOT, GROUP, said

DAY = 86_400.0
ELSEWHERE = Conversation(10002, "group", 9)


def numbers(database: Database, *, at: float = NOW + 60) -> list[int]:
    """The jobs that are to be looked at."""
    return [one.number for one in read(database, due, [BOT], at)]


def test_a_job_comes_back_as_it_was_made(batches: EntryBatches, database: Database) -> None:
    made = job(
        7,
        "喝水\0",
        where=Conversation(BOT, "private", 5, 4242),
        kind=JobKind.RUN,
        rule="cron 0 8 * * *",
        zone="Asia/Shanghai",
        authority=Audience.GROUP_ADMIN,
        language="en",
        state=JobState.FIRING,
        claim="s1",
        fired=3,
        missed=1,
    ).job
    batches.write(put(job(1, where=ELSEWHERE), replace(job(7), job=made)))
    assert read(database, due, [BOT], NOW + 60) == (replace(made, words="喝水�"),)
    assert read(database, listed, BOT) == (replace(made, words="喝水�"),)


def test_only_what_is_due_of_these_accounts_is_looked_at_the_oldest_first(
    batches: EntryBatches, database: Database
) -> None:
    later, sooner = job(1, wake=NOW + 60), job(2, wake=NOW + 30)
    batches.write(put(later, sooner, job(1, where=ELSEWHERE, wake=NOW)))
    assert read(database, next_wake, [BOT]) == NOW + 30
    assert read(database, next_wake, []) == math.inf
    assert numbers(database, at=NOW + 29) == []
    assert numbers(database) == [2, 1]
    assert read(database, latest_number, BOT) == 2
    assert read(database, latest_number, 5) == 0


@pytest.mark.parametrize(
    ("column", "value"), [("kind", "dance"), ("state", "asleep"), ("authority", "nobody"), ("conversation", "here")]
)
def test_a_job_of_a_later_version_hides_no_other_one(
    batches: EntryBatches, database: Database, column: str, value: str
) -> None:
    batches.write(put(job(1, wake=NOW + 1), job(2, wake=NOW + 2, state=JobState.FIRING)))
    batches.run(lambda connection: connection.execute(jobs.update().where(jobs.c.number == 1).values({column: value})))
    assert numbers(database) == [2]
    assert [one.number for one in read(database, listed, BOT)] == [2]
    assert [one.number for one in read(database, in_progress, BOT)] == [2]
    if column != "conversation":
        assert read(database, next_wake, [BOT]) == NOW + 2


def test_a_job_is_found_by_its_number_among_more_than_a_list_shows(batches: EntryBatches, database: Database) -> None:
    batches.write(put(*(job(number, due=NOW + number) for number in range(1, 503)), job(502, where=ELSEWHERE)))
    assert [one.number for one in read(database, partial(listed, number=502), BOT)] == [502]
    assert read(database, partial(listed, number=503), BOT) == ()


def test_a_task_whose_moment_has_come_and_that_is_looked_at_later_is_in_progress(
    batches: EntryBatches, database: Database
) -> None:
    later: dict[str, Any] = {"due": NOW, "wake": NOW + 60}
    batches.write(put(job(1, kind=JobKind.RUN, **later), job(2, kind=JobKind.TEXT, **later)))
    batches.write(put(job(3, kind=JobKind.RUN, due=NOW, wake=NOW)))
    batches.write(put(job(4, kind=JobKind.RUN, state=JobState.MISSED, **later)))
    assert [one.number for one in read(database, in_progress, BOT)] == [1]


def test_in_progress_are_those_that_do_not_know_what_became_of_it(batches: EntryBatches, database: Database) -> None:
    made = [job(number, state=state) for number, state in enumerate(JobState)]
    batches.write(put(*made, job(1, where=ELSEWHERE, state=JobState.FIRING)))
    assert [one.state for one in read(database, in_progress, BOT)] == [JobState.FIRING, JobState.REPORTING]


def test_what_has_ended_stays_so(batches: EntryBatches, database: Database) -> None:
    alive = job(1).job
    batches.write(put(job(1), JobChanged(replace(alive, state=JobState.ENDED)), JobChanged(alive)))
    assert numbers(database) == []
    assert read(database, listed, BOT) == ()
    assert read(database, latest_number, BOT) == 1


def test_a_late_change_of_a_deleted_job_does_not_reach_the_next_of_its_number(
    batches: EntryBatches, database: Database
) -> None:
    old, new = job(1).job, job(1, made=NOW + 1).job
    assert old.key != new.key
    batches.write(put(job(1)))
    batches.run(lambda connection: connection.execute(jobs.delete()))
    batches.write(put(JobMade(new), JobChanged(replace(old, state=JobState.FIRING, claim="s1", wake=NOW + 999))))
    batches.write(put(JobChanged(replace(old, state=JobState.ENDED))))
    batches.write(put(JobChanged(replace(new, maker=5, state=JobState.ENDED))))
    assert read(database, due, [BOT], NOW + 60) == (new,)


def test_who_leaves_a_group_has_no_jobs_there_and_the_bot_itself_has_none(
    batches: EntryBatches, database: Database
) -> None:
    batches.write(put(job(1), job(2, maker=5), job(3, where=Conversation(BOT, "group", 1))))
    batches.write(put(JobsEnded(GROUP, 777, NOW + 1)))
    assert numbers(database) == [2, 3]
    batches.write(put(JobsEnded(GROUP, 0, NOW + 1)))
    assert numbers(database) == [3]


def test_a_notice_of_leaving_ends_only_what_was_set_before(batches: EntryBatches, database: Database) -> None:
    batches.write(put(job(1), job(2, made=NOW + 1), job(3, made=NOW + 2)))
    batches.write(put(JobsEnded(GROUP, 777, NOW + 1)))
    assert numbers(database) == [2, 3]
    batches.write(put(JobsEnded(GROUP, 0, NOW + 2)))
    assert numbers(database) == [3]


@pytest.mark.parametrize(
    ("made", "message_id", "left"), [(NOW - 120, "1", []), (NOW - 121, "1", [1]), (NOW, "2", [1]), (NOW, "", [1])]
)
def test_a_recall_within_two_minutes_ends_what_the_message_made(
    batches: EntryBatches, database: Database, made: float, message_id: str, left: list[int]
) -> None:
    batches.write(put(job(1, made=made, message_id=message_id)))
    batches.write(put(MessageErased(GROUP, ""), MessageErased(GROUP, "1")))
    assert numbers(database) == left


@each_case(
    ("state", "became"),
    [
        (SendState.CONFIRMED, Fate.SAID),
        (SendState.UNKNOWN, Fate.UNKNOWN),
        (SendState.QUEUED, Fate.OPEN),
        (SendState.SENDING, Fate.OPEN),
        (SendState.DROPPED, Fate.LOST),
        (SendState.REFUSED, Fate.LOST),
        (SendState.WITHDRAWN, Fate.LOST),
    ],
)
def test_the_send_of_a_firing_tells_what_became_of_it(
    batches: EntryBatches, database: Database, state: SendState, became: Fate
) -> None:
    batches.write(put(sending("s1", "", "喝水"), SendChanged(send_id="s1", state=state, at=NOW)))
    assert read(database, fate, job(1, state=JobState.FIRING, claim="s1").job) is became
    assert read(database, fate, job(1, state=JobState.FIRING, claim="erased").job) is Fate.SAID


RUN = job(1, kind=JobKind.RUN, state=JobState.FIRING, claim="t1").job
OPENED = opening("t1", said("喝水"))
CUT_OFF = replace(closing(OPENED), stop=Stop.INTERRUPTED)
AGAIN = opening("t2", said("喝水"), retry_of="t1")


@pytest.mark.parametrize(
    ("entries", "became"),
    [
        pytest.param([OPENED], Fate.OPEN, id="it goes on"),
        pytest.param([OPENED, closing(OPENED, AssistantMessage("好"))], Fate.SAID, id="it has ended"),
        pytest.param([OPENED, CUT_OFF], Fate.LOST, id="a crash cut it off"),
        pytest.param([OPENED, began("t1"), CUT_OFF], Fate.BROKEN, id="a crash cut it off in a call"),
        pytest.param(
            [OPENED, replace(sending("s1", "t1"), final=False), CUT_OFF], Fate.BROKEN, id="it had said something"
        ),
        pytest.param([OPENED, CUT_OFF, sending("s1", "t1", "抱歉")], Fate.SAID, id="its maker was told"),
        pytest.param([OPENED, CUT_OFF, AGAIN], Fate.OPEN, id="it is asked again"),
        pytest.param([OPENED, CUT_OFF, AGAIN, closing(AGAIN)], Fate.SAID, id="it was asked again"),
        pytest.param([], Fate.SAID, id="it is erased"),
    ],
)
def test_the_turn_of_a_firing_tells_what_became_of_it(
    batches: EntryBatches, database: Database, entries: list[Entry], became: Fate
) -> None:
    batches.write(put(*entries))
    assert read(database, fate, RUN) is became


@pytest.mark.parametrize(
    ("send_id", "turn_id", "words", "numbers"),
    [
        ("user-777-J1.boot-7", "", JobWords.FIRED, [1]),
        ("user-777-M2+1+4.boot-7", "", JobWords.MISSED, [2, 1]),  # the fourth is gone
        ("user-777-D2.boot-7", "", JobWords.DEAD_FEED, [2]),
        ("boot-7", "t1", JobWords.FIRED, [3]),
        ("boot-7", "", None, []),
        ("user-777-boot-7", "", None, []),
        ("user-777-M4.boot-7", "", None, []),
        ("user-777-J5.boot-7", "", None, []),  # made since then
    ],
)
def test_a_message_tells_of_which_jobs_it_is(
    batches: EntryBatches,
    database: Database,
    send_id: str,
    turn_id: str,
    words: JobWords | None,
    numbers: list[int],
) -> None:
    task = job(3, kind=JobKind.RUN, claim="t1")
    others = (
        job(2, due=NOW),
        job(5, made=NOW + 99),
        job(1, where=ELSEWHERE),
        job(2, where=Conversation(BOT, "group", 9)),
    )
    sent = SendChanged(send_id=send_id, state=SendState.CONFIRMED, at=NOW, message_id="9")
    batches.write(put(OPENED, job(1), *others, task, sending(send_id, turn_id, "喝水"), sent))
    found = read(database, said_as, GROUP, "9")
    assert (found and found.words, [one.number for one in found.jobs] if found else []) == (words, numbers)
    assert read(database, said_as, GROUP, "8") is None
    assert read(database, said_as, ELSEWHERE, "9") is None


def test_what_ended_a_month_ago_is_deleted_and_nothing_that_waits(batches: EntryBatches, database: Database) -> None:
    old: dict[str, Any] = {"due": NOW - 31 * DAY, "wake": NOW - 31 * DAY}
    batches.write(put(job(1, **old), job(2, **old), job(3)))
    batches.write(put(JobChanged(replace(job(1, **old).job, state=JobState.ENDED))))
    batches.write(put(JobChanged(replace(job(3).job, state=JobState.ENDED))))
    batches.run(lambda connection: Retention(0, 0).sweep(connection, now=NOW, surplus=0.0))
    with database.reading() as connection:
        assert list(connection.scalars(select(jobs.c.number))) == [2, 3]
