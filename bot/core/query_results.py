"""Results of queries of the journal: usage, and the story of an answer."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from typing import Protocol

from msgspec import Struct

from bot.core.conversation import Conversation


class UsageSum(Struct, frozen=True):
    """The usage of some requests, in tokens (`prompt` includes `cached`), and their cost in US
    dollars, without the `unpriced` ones, whose cost is unknown.
    """

    requests: int = 0
    prompt: int = 0
    cached: int = 0
    completion: int = 0
    cost: float = 0.0
    unpriced: int = 0


class StoryCall(Struct, frozen=True):
    """A tool call: its name, its result code (empty while it runs), its seconds. `denied` is what
    the model was told if the call was not allowed or not possible here.
    """

    name: str
    code: str
    seconds: float
    denied: str = ""


class Publication(Struct, frozen=True):
    """A published draft, by whom, and whether they changed its words."""

    number: int
    by: str
    changed: bool = False


class Story(Struct, frozen=True, kw_only=True):
    """The story of a message to the bot. `wakes` (None if there is none) and `reason` are its
    verdict, and `until` is when that ends, 0 if unknown; `turn_id` is empty if no model was asked.

    Times are in seconds since 1970, 0 if unknown: when it was taken, and when its turn opened and
    closed. `stop` is how its run ended, empty while it runs. `sends` counts the messages sent,
    `failed` those that failed; `drafts` are the numbers kept for owners, `published` those
    published since. `is_gone`: recalled, or never meant for a model, such as a command or an
    approval. `waits`: its turn has not begun. A run that waits for an owner does so until
    `expires`. `unsaid`: the last words of the answer were not sent. `loss` is why the latest
    `failed` message failed.
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
        return self.wakes is not None or bool(self.turn_id or self.taken)


class Ignored(Struct, frozen=True):
    """A message that the bot ignored by its rules: where, by whom, why, and when, in seconds since
    1970.
    """

    where: Conversation
    sender: int
    reason: str
    at: float


class PlaceSum(Struct, frozen=True):
    """A conversation in use: the number of messages received there, and the time of the last."""

    where: Conversation
    messages: int
    last: float


class Spender(Struct, frozen=True):
    """A person or a group (`number`) and its usage, in tokens and US dollars; `name` is empty if
    unknown.
    """

    number: int
    name: str
    tokens: int
    cost: float


class DayCounts(Struct, frozen=True, kw_only=True):
    """Counts of some hours: `turns` by `Ending`, messages for the bot that reached no model
    (`dropped`) by reason, and the usage of each model. Invariant: each turn and each dropped
    message is counted once, so that they add up to `questions`.
    """

    turns: tuple[tuple[str, int], ...] = ()
    dropped: tuple[tuple[str, int], ...] = ()
    models: tuple[tuple[str, UsageSum], ...] = ()

    @property
    def questions(self) -> int:
        """The number of rows in a list of the same hours."""
        return sum(count for _, count in self.turns) + self.unanswered

    @property
    def unanswered(self) -> int:
        return sum(count for _, count in self.dropped)

    def of(self, ending: str) -> int:
        return dict(self.turns).get(ending, 0)


class DaySum(DayCounts, frozen=True, kw_only=True):
    """`DayCounts` with the kinds and turns of the last that `failed`, the people and groups with
    the highest usage, and the number of `published` drafts by person.
    """

    failed: tuple[tuple[str, str], ...] = ()
    people: tuple[Spender, ...] = ()
    groups: tuple[Spender, ...] = ()
    published: tuple[tuple[str, int], ...] = ()


class SpentSum(Struct, frozen=True):
    """The usage for a person's questions in a conversation, in tokens and US dollars; None and 0 if
    they are unknown.
    """

    where: Conversation | None
    who: int
    tokens: int
    cost: float


class Eraser(Protocol):
    """Permanently erases data of a person or a group, except what people said after `since`
    (seconds since 1970).
    """

    async def forget_user(self, user: int, *, since: float = math.inf) -> int:
        """Returns the number of erased rows. Raises BotError if it cannot be done now."""
        ...

    async def forget_group(self, group: int, *, since: float = math.inf) -> int:
        """Returns the number of erased rows. Raises BotError if it cannot be done now."""
        ...

    async def sweep(self) -> None:
        """Overwrite every byte of what was erased. Raises BotError if it cannot be done now."""
        ...


class Choices(Protocol):
    """Choices made by command, kept over restarts. All methods return None if they cannot be read
    now.
    """

    async def choices(self) -> Mapping[Conversation, str] | None:
        """The persona's key in each conversation that has chosen one."""
        ...

    async def groups(self) -> Collection[Conversation] | None:
        """The groups in which any message was ever received."""
        ...

    async def settings(self, name: str) -> Mapping[Conversation, str] | None:
        """The values set under this name, by conversation."""
        ...


class JournalQueries(Protocol):
    """Queries of the journal for people. All methods return None if it cannot be read now."""

    async def usage(
        self,
        *,
        since: float,
        where: Conversation | None = None,
        asker: int | None = None,
        turn_id: str | None = None,
    ) -> UsageSum | None:
        """The usage since then: of a conversation, an asker's questions, a turn, or in total."""
        ...

    async def day(
        self, *, since: float, until: float, where: Conversation | None = None
    ) -> DaySum | None:
        """The counts from `since` to before `until`, of a conversation or in total."""
        ...

    async def places(self, *, since: float) -> tuple[PlaceSum, ...] | None:
        """The conversations with messages since then, the busiest first."""
        ...

    async def story(self, where: Conversation, message_id: str = "") -> Story | None:
        """The story of the message of this id, or of the one it answers; without an id, of the last
        turn there.
        """
        ...

    async def taken(self, *, since: float, until: float) -> tuple[SpentSum, ...] | None:
        """The usage from `since` to `until`, by payer: for daily limits."""
        ...

    async def latest_payers(
        self, *, latest: int
    ) -> tuple[tuple[str, Conversation, int], ...] | None:
        """The latest turns, newest first: the id, the conversation, the payer (0: the group)."""
        ...
