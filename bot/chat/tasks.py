"""The work of lanes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from bot.core.events import MessageReceived
from bot.core.jobs import JobKey
from bot.core.journal import Entry, OpenTurn
from bot.policy.wake import NeedsQuoted, Rules, Wake, Why
from frostagent.types.conversation import Conversation
from frostagent.types.suspension import Decision

YOUNG = 120.0  # seconds a question waits for its answer: later nobody expects one


@dataclass(frozen=True, slots=True)
class Resume:
    """A suspended turn that is to go on; `question` is what it was asked, None where no such turn
    waits.

    Where the bot is muted it waits for the end of that, but to `at_latest` only (by the clock's
    monotonic seconds): then it ends.
    """

    turn_id: str
    decisions: Mapping[str, Decision]
    question: MessageReceived | None
    at_latest: float = 0.0


class Facts(Struct, frozen=True):
    """What is known of a message at one moment: when it comes, and anew when its turn in its lane
    has come. Each is asked for once then, and whoever decides about the message reads it here.

    That moment is `at`, in seconds since 1970. `rules` are those of its place. It `is_missed` if it
    was found in a history, and `is_earlier` if it may have been said before this process began; it
    `is_lost` if nobody knows what an earlier process did for it.
    """

    at: float
    rules: Rules
    is_missed: bool = False
    is_earlier: bool = False
    is_lost: bool = False


class Scheduled(Struct, frozen=True):
    """The job that a question is of. What is `claimed` by the id of its turn is written down with
    the turn's beginning; `dismissed` hears why no turn begins, `ended` that it is over.
    """

    key: JobKey
    claimed: Callable[[str], Entry]
    dismissed: Callable[[Why], None]
    ended: Callable[[], None]


class Task(Struct, frozen=True):
    """A message to answer, once it is certain that it is for us.

    It was taken at `since`, by our clock: the server's may be another. `retry` is its interrupted
    turn. `told`: it is older than this process, and no journal knows of it. `lost`: nor is it known
    what was done for it already, so its asker is asked to ask again. `lines` are what they said
    before it and what belongs to it, oldest first; of all of it, `beside` are those that called
    nobody. It begins when it is `due`, which what still comes puts off, but to `at_latest` only (by
    the clock's monotonic seconds). `looked_up`: that it is for us was not known when it came, only
    when what it quotes was looked up. Nobody said one that is `scheduled`: its moment has come.
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
        """All that belongs to the question, oldest first."""
        return (*self.lines, self.message)

    @property
    def called(self) -> MessageReceived:
        """The latest of it that called the bot."""
        lines = (line for line in reversed(self.said) if line not in self.beside)
        return next(lines, self.message)

    @property
    def may_grow(self) -> bool:
        """Whether what else its asker says may belong to it: it is new, and certainly for us."""
        is_new = self.retry is None and not (self.told or self.lost or self.scheduled)
        return is_new and isinstance(self.verdict, Wake)

    def without(self, is_gone: Callable[[MessageReceived], bool]) -> Task | None:
        """The rest of it without these lines; None where what is left called nobody."""
        kept = [line for line in self.said if not is_gone(line)]
        if len(kept) == 1 + len(self.lines):
            return self
        if all(line in self.beside for line in kept):
            return None
        return replace(self, message=kept[-1], lines=tuple(kept[:-1]))

    @property
    def wake(self) -> Wake:
        """The wake; a quote of the bot's words until somebody knows better."""
        return self.verdict if isinstance(self.verdict, Wake) else Wake("quote")

    @property
    def may_be_answered(self) -> bool:
        """Whether own words that nobody knows, and that quote nothing, count as its answer: in
        private none quotes.
        """
        return self.lost or (self.told and not self.message.conversation.is_group)


def make_task(message: MessageReceived, verdict: Wake | NeedsQuoted, facts: Facts) -> Task:
    """The task of a message that has just come."""
    return Task(message, verdict, facts.at, told=facts.is_earlier, lost=facts.is_lost)


Work: TypeAlias = Task | Resume


def person_of(work: Work) -> int:
    """Whose turn it takes."""
    message = work.message if isinstance(work, Task) else work.question
    return message.sender.user_id if message else 0


def due_of(work: Work, *, muted_until: Callable[[Conversation], float] | None = None) -> float:
    """When it may begin, by the clock's monotonic seconds; what is to go on where the bot is muted,
    once it may speak there or may wait no longer.
    """
    if isinstance(work, Task):
        return work.due
    if work.question is None or muted_until is None:
        return 0.0
    return min(work.at_latest, muted_until(work.question.conversation))
