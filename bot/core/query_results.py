"""The journal's tales of the past: what was spent, and how one answer came about."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from typing import Protocol

from msgspec import Struct

from bot.core.conversation import Conversation


class UsageSum(Struct, frozen=True):
    """The sum that some requests took, in tokens (`prompt` includes `cached`), and what they cost
    in US dollars; of `unpriced` of them nobody knows that.
    """

    requests: int = 0
    prompt: int = 0
    cached: int = 0
    completion: int = 0
    cost: float = 0.0
    unpriced: int = 0


class StoryCall(Struct, frozen=True):
    """A tool call: its name, the word it ended with (empty while it goes on), its seconds. `denied`
    is what the model was told where it was not allowed.
    """

    name: str
    code: str
    seconds: float
    denied: str = ""


class Publication(Struct, frozen=True):
    """A draft that was published, by whom, and in other words where he changed it."""

    number: int
    by: str
    changed: bool = False


class Story(Struct, frozen=True, kw_only=True):
    """How a message to the bot fared. `wakes` and `reason` are its verdict, None where there is
    none, and `until` when it was to last, 0 where nobody knew; `turn_id` is empty where no model
    was asked.

    Times are in seconds since 1970, 0 where they are not known: when it was said and taken, when
    its turn opened and closed. `stop` is how its run ended, empty while it goes on. `sends` counts
    the messages that were sent, `failed` those that were not; `drafts` are the numbers of what
    was kept for the owners, `published` those of them that were said after all. What `is_gone` was
    recalled, or was never for a model: a command, a word on a request. What `waits` is a question
    whose turn has not come; a run that waits for an owner's word does so until it `expires`. Where
    it is `unsaid`, the last words of an answer were not sent. `loss` is why the latest of the
    `failed` messages was not.
    """

    asker: int
    is_gone: bool = False
    waits: bool = False
    wakes: bool | None = None
    weak: bool = False
    reason: str = ""
    until: float = 0.0
    turn_id: str = ""
    taken: float = 0.0
    opened: float = 0.0
    closed: float = 0.0
    stop: str = ""
    expires: float = 0.0
    error: str = ""
    steps: int = 0
    calls: tuple[StoryCall, ...] = ()
    models: tuple[str, ...] = ()
    usage: UsageSum = UsageSum()
    sends: int = 0
    failed: int = 0
    unsaid: bool = False
    loss: str = ""
    drafts: tuple[int, ...] = ()
    published: tuple[Publication, ...] = ()

    @property
    def is_known(self) -> bool:
        """Whether there is anything to tell."""
        return self.wakes is not None or bool(self.turn_id or self.taken)


class Ignored(Struct, frozen=True):
    """A message that the bot may not even hear: where and by whom it was said, why nobody heard it,
    and when it was said, in seconds since 1970.
    """

    where: Conversation
    sender: int
    reason: str
    at: float


class PlaceSum(Struct, frozen=True):
    """A conversation in use: how many messages were heard there, and when the last one."""

    where: Conversation
    messages: int
    last: float


class Spender(Struct, frozen=True):
    """A person or a group (`number`) and what was taken for it, in tokens and US dollars; the
    `name` is empty where nobody knows one.
    """

    number: int
    name: str
    tokens: int
    cost: float


class DayCounts(Struct, frozen=True, kw_only=True):
    """The counts of some hours at a glance: `turns` by their `Ending`, messages for the bot that
    no model was asked about (`dropped`) by reason, and what each model took.

    Invariant: each turn and each dropped message is counted once, so that what became of the
    `questions` adds up to them.
    """

    turns: tuple[tuple[str, int], ...] = ()
    dropped: tuple[tuple[str, int], ...] = ()
    models: tuple[tuple[str, UsageSum], ...] = ()

    @property
    def questions(self) -> int:
        """The number of rows that a list of the same hours has."""
        return sum(count for _, count in self.turns) + self.unanswered

    @property
    def unanswered(self) -> int:
        """The number of messages that no model was asked about."""
        return sum(count for _, count in self.dropped)

    def of(self, ending: str) -> int:
        """The number of turns with this ending."""
        return dict(self.turns).get(ending, 0)


class DaySum(DayCounts, frozen=True, kw_only=True):
    """The same and more: the kinds and turns of the last that `failed`; the people and groups for
    whom most was taken; how many drafts of its turns were `published`, by whom.
    """

    failed: tuple[tuple[str, str], ...] = ()
    people: tuple[Spender, ...] = ()
    groups: tuple[Spender, ...] = ()
    published: tuple[tuple[str, int], ...] = ()


class SpentSum(Struct, frozen=True):
    """The sum that requests took for the questions of somebody somewhere, in tokens and US dollars;
    `where` is None and `who` 0 where nobody knows whose they were.
    """

    where: Conversation | None
    who: int
    tokens: int
    cost: float


class Eraser(Protocol):
    """Forgets for good what is kept of somebody, or of a group; what people have said after
    `since`, in seconds since 1970, stays.
    """

    async def forget_user(self, user: int, *, since: float = math.inf) -> int:
        """Erase a person; how many rows went. Raises BotError where it cannot be done now."""
        ...

    async def forget_group(self, group: int, *, since: float = math.inf) -> int:
        """Erase a group; how many rows went. Raises BotError where it cannot be done now."""
        ...

    async def sweep(self) -> None:
        """Leave no byte of what was erased. Raises BotError where it cannot be done now."""
        ...


class Choices(Protocol):
    """The choices made by command, kept over restarts."""

    async def choices(self) -> Mapping[Conversation, str] | None:
        """The persona's key in each conversation where one was chosen; None where that cannot be
        read now.
        """
        ...

    async def groups(self) -> Collection[Conversation] | None:
        """The groups in which anything was ever heard; None where that cannot be read now."""
        ...

    async def settings(self, name: str) -> Mapping[Conversation, str] | None:
        """The values set under this name, by conversation; None where that cannot be read now."""
        ...


class JournalQueries(Protocol):
    """Reads the journal for people; nothing is known where it cannot be read."""

    async def usage(
        self,
        *,
        since: float,
        where: Conversation | None = None,
        asker: int | None = None,
        turn_id: str | None = None,
    ) -> UsageSum | None:
        """The sum spent since then: there, by questions of somebody, by a turn, or in all."""
        ...

    async def day(
        self, *, since: float, until: float, where: Conversation | None = None
    ) -> DaySum | None:
        """The sums of the time from then on, before `until`: there, or in all."""
        ...

    async def places(self, *, since: float) -> tuple[PlaceSum, ...] | None:
        """The conversations heard since then, the busiest first."""
        ...

    async def story(self, where: Conversation, message_id: str = "") -> Story | None:
        """How the message of this id fared, or the one it answers; of the last turn there without
        an id. None where that cannot be read now.
        """
        ...

    async def taken(self, *, since: float, until: float) -> tuple[SpentSum, ...] | None:
        """What was taken from then on, to `until`, by payer: for the limits of a day."""
        ...

    async def latest_payers(
        self, *, latest: int
    ) -> tuple[tuple[str, Conversation, int], ...] | None:
        """So many turns, the latest first: the id, where it was, and who pays; 0 is the group."""
        ...
