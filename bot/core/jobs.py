"""Jobs: messages and questions for a later moment, once or repeatedly."""

from __future__ import annotations

from collections.abc import Collection
from enum import StrEnum
from typing import ClassVar, Literal, Protocol, TypeAlias

from msgspec import Struct

from bot.core.actions import JobWords
from bot.core.conversation import Conversation
from bot.core.language import Language
from frostagent.types.results import ToolResult
from frostagent.types.tools import ToolContext
from frostagent.types.traits import Audience

SHOWN_WORDS = 60  # characters of each job in a list
RECALLABLE = 120.0  # seconds in which recalling the message that made a job cancels it


class JobKind(StrEnum):
    """TEXT: the words are sent as they are, without a model. RUN: the words are a question of the
    job's maker. FEED: new entries of a feed are sent; the words are its title. RECAP: the daily
    recap of a group, which has no maker (0); its `notes` are until when the latest one reaches.
    """

    TEXT = "text"
    RUN = "run"
    FEED = "feed"
    RECAP = "recap"


class JobState(StrEnum):
    """WAITING: for its moment. FIRING: its message or turn is in the journal under its `claim`, and
    the outcome is unknown. MISSED: nothing was said, which is still to be reported to its maker.
    REPORTING: that report is in the journal under its `claim`. ENDED: it never fires again. In
    other states `claim` is the latest one.
    """

    WAITING = "waiting"
    FIRING = "firing"
    MISSED = "missed"
    REPORTING = "reporting"
    ENDED = "ended"


JobKey: TypeAlias = tuple[int, int, float]
"""The account, the number that people type (7 for `J7`), and when the job was made: the number of a
deleted job may be given again.
"""


class Job(Struct, frozen=True, kw_only=True):
    """A job of `maker`, made in `where` by the message `message_id` (empty if it has no id).

    `rule` is empty for once, else in the format of `bot/jobs/rules.py`; it follows the local time
    of `zone` (empty: the machine's). `due` is its moment and `wake` when the scheduler must next
    handle it, both in seconds since 1970. `authority` is the upper limit for its run. `language` is
    its maker's, `zh` or `en`. `fired` and `missed` count its firings. `notes` is the state of a
    feed as JSON, or of a recap as a time.
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
    def reply_language(self) -> Language:
        return Language.ENGLISH if self.language == "en" else Language.CHINESE

    @property
    def short_words(self) -> str:
        """Its words as one line for lists."""
        line = " ".join(self.words.split())
        return line if len(line) <= SHOWN_WORDS else f"{line[:SHOWN_WORDS]}…"

    @property
    def key(self) -> JobKey:
        return self.where.platform_id, self.number, self.made


class JobMade(Struct, frozen=True, tag="job_made"):
    job: Job
    type: ClassVar[Literal["job_made"]] = "job_made"


class JobChanged(Struct, frozen=True, tag="job_changed"):
    """The new state of a job. Its place, maker and words never change. A job that has ended or was
    erased stays so.
    """

    job: Job
    type: ClassVar[Literal["job_changed"]] = "job_changed"


class JobsEnded(Struct, frozen=True, tag="jobs_ended"):
    """A person left the group, or the bot did (`maker` 0): none of their jobs there that was made
    before `left` (seconds since 1970, by our clock) fires again.
    """

    where: Conversation
    maker: int
    left: float
    type: ClassVar[Literal["jobs_ended"]] = "jobs_ended"


class Fate(StrEnum):
    """The outcome of a job's claim, that is of its message or turn. SAID: sent or answered.
    UNKNOWN: possibly sent. LOST: not sent. OPEN: in progress. BROKEN: a turn was interrupted after
    it had begun something that must not be done twice.
    """

    SAID = "said"
    UNKNOWN = "unknown"
    LOST = "lost"
    OPEN = "open"
    BROKEN = "broken"


class JobsSaid(Struct, frozen=True):
    """What a message says of jobs: those of them that are still in the journal."""

    words: JobWords
    jobs: tuple[Job, ...]


class JobQueries(Protocol):
    """Reads jobs from the journal; they are written as entries. Every method returns None if the
    journal cannot be read now, except that `said_as` then finds nothing.
    """

    async def next_wake(self, accounts: Collection[int]) -> float | None:
        """The earliest `wake` of these accounts' jobs; infinity if there is none."""
        ...

    async def due(self, accounts: Collection[int], now: float) -> tuple[Job, ...] | None:
        """The jobs of these accounts whose `wake` has come, the oldest first, limited in number."""
        ...

    async def in_progress(self, account: int) -> tuple[Job, ...] | None:
        """The jobs of the account that are FIRING or REPORTING, and the tasks whose moment has come
        and that are looked at later: their question may have waited in its lane.
        """
        ...

    async def fate(self, job: Job) -> Fate | None:
        """The outcome of the job's claim."""
        ...

    async def listed(
        self,
        account: int,
        *,
        where: Conversation | None = None,
        maker: int = 0,
        number: int = 0,
    ) -> tuple[Job, ...] | None:
        """The account's jobs that have not ended, by `due`, limited in number: of a conversation,
        of a person, or of both; or the one with this number.
        """
        ...

    async def said_as(self, where: Conversation, message_id: str) -> JobsSaid | None:
        """What this message says of which jobs; of a task, whether it is its latest answer."""
        ...

    async def latest_number(self, account: int) -> int | None:
        """The highest number of any job of the account; 0 for none."""
        ...


class Reminders(Protocol):
    """What a run may do with jobs, within its asker's rights. Results are text for the model, with
    the authority of those whose words they contain. All methods raise InvalidArguments, ToolDenied,
    ToolFailed.
    """

    async def create(
        self, context: ToolContext, words: str, *, when: str, rule: str, kind: JobKind
    ) -> ToolResult: ...

    async def listed(self, context: ToolContext) -> ToolResult:
        """The jobs that the asker may see there, one a line."""
        ...

    async def cancel(self, context: ToolContext, number: str) -> ToolResult: ...

    async def move(self, context: ToolContext, number: str, *, when: str, rule: str) -> ToolResult:
        """Change the moment or the rule of a job."""
        ...


class Subscriptions(Protocol):
    async def subscribe(
        self, context: ToolContext, url: str, *, minutes: int, summary: bool
    ) -> ToolResult:
        """Read the feed, and report its new entries to the conversation from now on, if asked with
        a `summary` of each by the cheap model. Returns text for the model. Raises InvalidArguments,
        ToolDenied, ToolFailed, and Suspend if an owner must decide.
        """
        ...
