"""The items of lanes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from bot.core.conversation import Conversation
from bot.core.events import MessageReceived
from bot.core.jobs import JobKey
from bot.core.journal import Entry, OpenTurn
from bot.policy.wake import NeedsQuoted, Rules, Wake, Why
from frostagent.types.suspension import Decision

YOUNG = 120.0  # seconds a question waits for its answer: later none is expected


@dataclass(frozen=True, slots=True)
class Resume:
    """A suspended turn to resume; `question` is None if it no longer waits. If the bot is muted, it
    waits for the end of the mute, until `at_latest` (monotonic seconds): then it ends.
    """

    turn_id: str
    decisions: Mapping[str, Decision]
    question: MessageReceived | None
    at_latest: float = 0.0


class Facts(Struct, frozen=True):
    """What is known of a message at one moment: on arrival, and again at its turn in the lane.
    Computed once each time, for all who decide about the message. `at` is that moment, in seconds
    since 1970; `rules` are those of its conversation. `is_missed`: found in a history.
    `is_earlier`: possibly said before this process began. `is_lost`: what an earlier process did
    for it is unknown.
    """

    at: float
    rules: Rules
    is_missed: bool = False
    is_earlier: bool = False
    is_lost: bool = False


class Scheduled(Struct, frozen=True):
    """The job that a question is of. What is `claimed` by the id of its turn is written down with
    the turn's beginning; None if the job was changed meanwhile, so that no turn begins. `dismissed`
    hears why no turn begins, `ended` that it is over.
    """

    key: JobKey
    claimed: Callable[[str], Entry | None]
    dismissed: Callable[[Why], None]
    ended: Callable[[], None]


class Task(Struct, frozen=True):
    """A message to answer.

    `since` is when it was received, by our clock, which may differ from the server's. `retry` is
    its interrupted turn. `told`: it is older than this process, and not in the journal. `lost`: in
    addition its outcome is unknown, so its asker is asked to repeat it. `lines` are the asker's
    other lines that belong to it, oldest first; `beside` are those of all its lines that called no
    one. It begins when it is `due`; further lines postpone that until `at_latest` (monotonic
    seconds). `looked_up`: only the look-up of its quote showed that it is for the bot.
    `scheduled`: no one said it; its moment has come.
    """

    message: MessageReceived
    verdict: Wake | NeedsQuoted
    since: float
    retry: OpenTurn | None = None
    told: bool = False
    lost: bool = False
    lines: tuple[MessageReceived, ...] = ()
    beside: tuple[MessageReceived, ...] = ()
    due: float = 0.0
    at_latest: float = 0.0
    looked_up: bool = False
    scheduled: Scheduled | None = None

    @property
    def said(self) -> tuple[MessageReceived, ...]:
        """All lines of the question, oldest first."""
        return (*self.lines, self.message)

    @property
    def called(self) -> MessageReceived:
        """The latest line that called the bot."""
        lines = (line for line in reversed(self.said) if line not in self.beside)
        return next(lines, self.message)

    @property
    def may_grow(self) -> bool:
        """Whether further lines of its asker may join it: it is new, and certainly for the bot."""
        is_new = self.retry is None and not (self.told or self.lost or self.scheduled)
        return is_new and isinstance(self.verdict, Wake)

    def without(self, is_gone: Callable[[MessageReceived], bool]) -> Task | None:
        """The question without these lines; None if no other line calls the bot."""
        kept = [line for line in self.said if not is_gone(line)]
        if len(kept) == 1 + len(self.lines):
            return self
        if all(line in self.beside for line in kept):
            return None
        return replace(self, message=kept[-1], lines=tuple(kept[:-1]))

    @property
    def wake(self) -> Wake:
        """The wake; until it is looked up, a quote counts as one of the bot."""
        return self.verdict if isinstance(self.verdict, Wake) else Wake("quote")

    @property
    def may_be_answered(self) -> bool:
        """Whether an unknown message of the bot without a quote counts as its answer: private
        answers never quote.
        """
        return self.lost or (self.told and not self.message.conversation.is_group)


def make_task(message: MessageReceived, verdict: Wake | NeedsQuoted, facts: Facts) -> Task:
    return Task(message, verdict, facts.at, told=facts.is_earlier, lost=facts.is_lost)


Work: TypeAlias = Task | Resume


def person_of(work: Work) -> int:
    """The person whose turn it is; 0 if unknown."""
    message = work.message if isinstance(work, Task) else work.question
    return message.sender.user_id if message else 0


def due_of(work: Work, *, muted_until: Callable[[Conversation], float] | None = None) -> float:
    """When it may begin, in monotonic seconds. A turn resumed under a mute waits until the bot may
    speak, at most until `at_latest`.
    """
    if isinstance(work, Task):
        return work.due
    if work.question is None or muted_until is None:
        return 0.0
    return min(work.at_latest, muted_until(work.question.conversation))
