"""What counts as a change of a job that was read before."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from bot.core.conversation import Conversation
from bot.core.erasure import SubjectErased
from bot.core.jobs import Job, JobChanged, JobKind, JobsEnded, JobState
from bot.core.journal import Entry, MessageErased
from bot.jobs.changes import JobChanges
from tests.cases import each_case
from tests.fakes import BOT, GROUP

JOB = Job(number=1, where=GROUP, maker=5, kind=JobKind.TEXT, words="喝水", made=1, due=2, wake=2, message_id="7")
ELSEWHERE = Conversation(BOT, "group", 9)
MINE = Conversation(BOT, "private", GROUP.session_id)


@each_case(
    ("change", "is_current"),
    [
        (JobChanged(replace(JOB, state=JobState.ENDED)), False),
        (JobChanged(JOB), True),  # its own latest change
        (JobChanged(replace(JOB, wake=9)), True),  # the scheduler looks at it later
        (JobChanged(replace(JOB, due=9, wake=9)), False),
        (JobChanged(replace(JOB, number=2)), True),
        (JobChanged(replace(JOB, made=9, due=9)), True),  # the number was given again
        (JobsEnded(GROUP, 5, 9), False),
        (JobsEnded(GROUP, 0, 9), False),
        (JobsEnded(GROUP, 6, 9), True),
        (JobsEnded(ELSEWHERE, 5, 9), True),
        (MessageErased(GROUP, "7"), False),
        (MessageErased(GROUP, "8"), True),
        (MessageErased(ELSEWHERE, "7"), True),
        (SubjectErased(user=5), False),
        (SubjectErased(user=6), True),
        (SubjectErased(group=GROUP.session_id), False),
        (SubjectErased(group=9), True),
    ],
)
def test_a_change_after_the_read_makes_a_job_stale(change: Entry | SubjectErased, is_current: bool) -> None:
    changes = JobChanges()
    changes.see(JobChanged(JOB))
    since = changes.count
    if isinstance(change, SubjectErased):
        changes.forget(change)
    else:
        changes.see(change)
    assert changes.is_current(JOB, since=since) is is_current
    assert changes.is_current(JOB, since=changes.count)


def test_a_group_and_a_person_of_one_number_are_two() -> None:
    number = GROUP.session_id
    changes = JobChanges()
    changes.forget(SubjectErased(group=number))
    assert changes.is_current(replace(JOB, where=MINE, maker=number), since=0)


def test_what_is_not_known_any_more_counts_as_changed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bot.jobs.changes.MAX_CHANGES", 2)
    changes = JobChanges()
    since = changes.count
    for number in (2, 3, 2, 3):
        changes.see(JobChanged(replace(JOB, number=number)))
    assert changes.is_current(JOB, since=since)
    changes.see(JobChanged(replace(JOB, number=4)))
    assert not changes.is_current(JOB, since=since)
    assert changes.is_current(JOB, since=changes.count)
