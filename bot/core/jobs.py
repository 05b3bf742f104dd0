"""Jobs: what is to be said or asked at a moment, once or again and again."""

from __future__ import annotations

from collections.abc import Collection
from enum import StrEnum
from typing import ClassVar, Literal, Protocol, TypeAlias

from msgspec import Struct

from bot.core.conversation import Conversation
from bot.core.language import Language
from frostagent.types.results import ToolResult
from frostagent.types.tools import ToolContext
from frostagent.types.traits import Audience

RECALLABLE = 120.0  # seconds in which a recall of the message that made a job cancels it


class JobKind(StrEnum):
    """TEXT: its words are said, without a model. RUN: they are a question, asked by its maker.
    FEED: what is new in a feed is said; its words are the title.
    """

    TEXT = "text"
    RUN = "run"
    FEED = "feed"


class JobState(StrEnum):
    """WAITING for its moment; FIRING: its words, or its turn, are in the journal under its `claim`,
    and what became of them is not known yet. MISSED: its maker is to hear that nothing was said;
    REPORTING: those words are in the journal under its `claim`. ENDED: it never fires again. Else
    `claim` is the latest one.
    """

    WAITING = "waiting"
    FIRING = "firing"
    MISSED = "missed"
    REPORTING = "reporting"
    ENDED = "ended"


JobKey: TypeAlias = tuple[int, int]
"""The account, and the number that people type: 7 of `J7`."""


class Job(Struct, frozen=True, kw_only=True):
    """A job of `maker`, made in `where` by the message `message_id` (empty if it has no id).

    `rule` is empty for once, else as `bot/jobs/rules.py` reads it, by the clock on the wall of
    `zone` (empty: the machine's). `due` is the moment that it is about, `wake` when somebody is to
    look at it, both in seconds since 1970. `authority` is the most that its run may have,
    `language` that of its maker, `zh` or `en`. Its words were said `fired` times, and `missed`
    times not. `notes` are what is known of a feed, as JSON.
    """

    number: int
    where: Conversation
    maker: int
    kind: JobKind
    words: str
    made: float
    due: float
    wake: float
    rule: str = ""
    zone: str = ""
    message_id: str = ""
    authority: Audience = Audience.EVERYONE
    language: str = "zh"
    state: JobState = JobState.WAITING
    claim: str = ""
    fired: int = 0
    missed: int = 0
    notes: str = ""

    @property
    def tongue(self) -> Language:
        """The language of its maker."""
        return Language.ENGLISH if self.language == "en" else Language.CHINESE

    @property
    def key(self) -> JobKey:
        """What tells it apart."""
        return self.where.platform_id, self.number


class JobMade(Struct, frozen=True, tag="job_made"):
    """Somebody made a job."""

    job: Job
    type: ClassVar[Literal["job_made"]] = "job_made"


class JobChanged(Struct, frozen=True, tag="job_changed"):
    """A job stands as told here now, but for what never changes of it: its place, its maker, its
    words. One that has ended, or is erased, stays so.
    """

    job: Job
    type: ClassVar[Literal["job_changed"]] = "job_changed"


class JobsEnded(Struct, frozen=True, tag="jobs_ended"):
    """This person left the group, or the bot did (0): none of their jobs there fires again."""

    where: Conversation
    maker: int
    type: ClassVar[Literal["jobs_ended"]] = "jobs_ended"


class Fate(StrEnum):
    """What became of the words, or the turn, that a job claimed: they were SAID, or may have been
    and nobody knows (UNKNOWN), were LOST, or are still OPEN. A turn that was BROKEN off had begun
    something that must not be done twice.
    """

    SAID = "said"
    UNKNOWN = "unknown"
    LOST = "lost"
    OPEN = "open"
    BROKEN = "broken"


class JobQueries(Protocol):
    """The jobs of the journal, to be read; they are written as entries. None where it cannot be
    read now.
    """

    async def next_wake(self, accounts: Collection[int]) -> float | None:
        """When the next job of these accounts is to be looked at; infinity where there is none."""
        ...

    async def due(self, accounts: Collection[int], now: float) -> tuple[Job, ...] | None:
        """The jobs of these accounts that are to be looked at by now, the oldest first, a few of
        many.
        """
        ...

    async def claimed(self, account: int) -> tuple[Job, ...] | None:
        """The jobs of the account that have claimed something and do not know what became of it."""
        ...

    async def fate(self, job: Job) -> Fate | None:
        """What became of what the job has claimed."""
        ...

    async def listed(
        self, account: int, *, where: Conversation | None = None, maker: int = 0
    ) -> tuple[Job, ...] | None:
        """The jobs of the account that have not ended, by their moments: of a conversation, of a
        person, or of both.
        """
        ...

    async def said_as(self, where: Conversation, message_id: str) -> Job | None:
        """The job whose latest words are this message there."""
        ...

    async def latest_number(self, account: int) -> int | None:
        """The highest number that a job of the account ever had; 0 for none."""
        ...


class Reminders(Protocol):
    """What a run may do with jobs, each by its asker's rights: the answers are words for the model,
    with the authority of those whose words they tell. All raise InvalidArguments, ToolDenied,
    ToolFailed.
    """

    async def create(
        self, context: ToolContext, words: str, *, when: str, rule: str, kind: JobKind
    ) -> ToolResult:
        """Make a job."""
        ...

    async def listed(self, context: ToolContext) -> ToolResult:
        """The jobs that its asker may see there, a line each."""
        ...

    async def cancel(self, context: ToolContext, number: str) -> ToolResult:
        """End a job."""
        ...

    async def move(self, context: ToolContext, number: str, *, when: str, rule: str) -> ToolResult:
        """Give a job another moment, or another rule."""
        ...


class Subscriptions(Protocol):
    """Has a conversation told what is new in a feed."""

    async def subscribe(self, context: ToolContext, url: str, *, minutes: int) -> ToolResult:
        """Read the feed, and tell of what is new in it from now on; words for the model. Raises
        InvalidArguments, ToolDenied, ToolFailed, and Suspend if an owner is to decide.
        """
        ...
