"""Tells whether a job was changed after it was read.

The scheduler and the job book read jobs, wait for a server or a lane, and then write them back. In
between a person may cancel or move the job, or the notice of a leaving member or of a recall may
end it. Every such change is shown here before it is written, so that nothing stale is said and no
change is undone. All changes of an account's jobs are made in one process.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from typing import ClassVar, Final

from msgspec.structs import replace

from bot.core.erasure import SubjectErased
from bot.core.jobs import Job, JobChanged, JobsEnded
from bot.core.journal import Entry, MessageErased

MAX_CHANGES = 5_000
UNCHANGED: Final = 0, None


class JobChanges:
    """Counts the changes of jobs. Fits `JournalObserver`."""

    sees: ClassVar[frozenset[type[Entry]]] = frozenset({JobChanged, JobsEnded, MessageErased})

    def __init__(self) -> None:
        self._latest: dict[Hashable, tuple[int, Job | None]] = {}
        self._evicted = 0  # the latest change that is not known any more
        self.count = 0

    def see(self, entry: Entry) -> None:
        match entry:
            case JobChanged(job=job):
                self._note(job.key, job)
            case JobsEnded(where=where, maker=maker):
                self._note((where, maker))
            case MessageErased(conversation=where, message_id=message_id):
                self._note((where, message_id))
            case _:
                pass

    def forget(self, note: SubjectErased) -> None:
        """A person or a group was erased, with their jobs."""
        self._note(note.user or f"group {note.group}")

    def is_current(self, job: Job, *, since: int) -> bool:
        """Whether nobody has changed the job since there were `since` changes, when its read began.
        Its own latest change is the job itself; `wake` alone is the scheduler's note to itself.
        """
        if since < self._evicted:
            return False
        at, latest = self._latest.get(job.key, UNCHANGED)
        if at > since and (latest is None or replace(latest, wake=job.wake) != job):
            return False
        return all(self._latest.get(about, UNCHANGED)[0] <= since for about in _about(job))

    def _note(self, about: Hashable, job: Job | None = None) -> None:
        self.count += 1
        self._latest.pop(about, None)
        self._latest[about] = self.count, job
        if len(self._latest) > MAX_CHANGES:
            self._evicted, _ = self._latest.pop(next(iter(self._latest)))


def _about(job: Job) -> Iterator[Hashable]:
    """What else may end the job: its maker or the bot leaves, its message is recalled, its maker or
    its group is erased.
    """
    yield job.where, job.maker
    yield job.where, 0
    if job.message_id:
        yield job.where, job.message_id
    yield job.maker
    if job.where.is_group:
        yield f"group {job.where.session_id}"
