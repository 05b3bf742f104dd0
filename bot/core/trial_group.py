"""A simulated group in which to try the bot: what the console's page shows, and its ports."""

from __future__ import annotations

from typing import Final, Protocol

from msgspec import Struct

from bot.core.console_views import ConsoleQueries, Feed
from bot.core.conversation import Conversation
from bot.core.query_results import UsageSum

BOT: Final = "bot"

TRIED: Final = "try"
"""The turn id of trials' requests in the journal of the bot, which pays for them."""


class TrialLine(Struct, frozen=True):
    """A line in the group, with the numbers of its pictures. `who` is BOT for the bot, and empty
    for an event, which has no id: `happened` is the name of a fault, `missed` if a line was lost,
    or empty.
    """

    who: str
    text: str
    message_id: str = ""
    pictures: tuple[int, ...] = ()
    happened: str = ""

    @property
    def is_ours(self) -> bool:
        return self.who == BOT


class Source(Struct, frozen=True):
    """The origin of words from the bot's journal: the numbers of the sender and of the group, 0 in
    a private chat.
    """

    user: int
    group: int = 0

    def is_of(self, user: int, group: int) -> bool:
        """Whether they are of this person, or of any person in this group; 0 matches none."""
        return bool((user and self.user == user) or (group and self.group == group))


class TrialOptions(Struct, frozen=True, kw_only=True):
    """How to try the bot: with its own model (`is_real`), which costs money, or the demo's; with
    the persona of this key, and an unsaved `text` of it, if any; and a `question` to prefill, with
    its asker and origin.
    """

    is_real: bool = False
    key: str = ""
    text: str = ""
    asker: str = ""
    question: str = ""
    source: Source | None = None


class TrialLimits(Struct, frozen=True):
    """The most that one trial may use, of this model, its fallbacks and helpers: US dollars,
    tokens, requests. The dollars of `unpriced` models are unknown.
    """

    model: str
    cost: float
    tokens: int
    requests: int
    unpriced: tuple[str, ...] = ()

    def allow(self, requests: int, tokens: int, cost: float, *, times: int = 1) -> bool:
        """Whether this usage is within `times` these limits; a cost of 0 is no limit."""
        return (
            requests <= times * self.requests
            and tokens <= times * self.tokens
            and not cost > times * self.cost > 0
        )


class Trial(Protocol):
    """A simulated group with the bot in it. `people` may speak, `faults` can be injected; `draft`
    is a prefilled question. `trouble` is a word for a deviation from what was wanted: `persona`
    (its text or key could not be used). `name` is unique to this trial.
    """

    name: str
    wanted: TrialOptions
    trouble: str
    faults: tuple[str, ...]
    draft: TrialLine | None

    @property
    def ceiling(self) -> TrialLimits | None:
        """Its limits, if any."""
        ...

    @property
    def lacks(self) -> str:
        """Why its model is asked no further, in a word: `used_up`, `often` (today's trials together
        used too much), `spent` (the bot's daily limit is used up); else empty.
        """
        ...

    @property
    def where(self) -> Conversation: ...

    @property
    def people(self) -> tuple[str, ...]: ...

    @property
    def lines(self) -> tuple[TrialLine, ...]:
        """Oldest first."""
        ...

    @property
    def feed(self) -> Feed:
        """A change for every new line."""
        ...

    @property
    def showing(self) -> ConsoleQueries:
        """Its own journal."""
        ...

    @property
    def is_busy(self) -> bool: ...

    async def settle(self) -> None:
        """Wait until all that was said so far can be read in its journal."""
        ...

    async def say(self, who: str, text: str, picture: bytes = b"", *, patience: float) -> bool:
        """Say something as that member, with a picture, if any, and wait at most `patience` seconds
        until all that follows is settled; the rest goes on in the background. False if there is no
        such member, or its picture took too long to decode. Raises MediaError if it is not a
        picture.
        """
        ...

    async def inject_fault(self, fault: str) -> None: ...

    async def picture(self, number: int) -> bytes:
        """A picture of a line, as JPEG. Raises MediaError if it is no longer available."""
        ...

    async def taken(self) -> UsageSum:
        """Its usage, including failed requests."""
        ...

    def propose(self, who: str, question: str, source: Source | None = None) -> None:
        """Prefill a question; its asker joins the group in place of the one who joined first."""
        ...

    def has_words_of(self, user: int, group: int) -> bool:
        """Whether any words of this person, or from this group, were brought here."""
        ...

    def erase(self) -> None: ...


class TrialRuns(Protocol):
    """Opens trials, one at a time. `last` is the usage of the latest finished trial with a real
    model.
    """

    last: UsageSum | None

    @property
    def ceiling(self) -> TrialLimits | None:
        """The limits of a trial with the bot's own model; None if it has no model."""
        ...

    @property
    def current(self) -> Trial | None:
        """The open trial, if any."""
        ...

    @property
    def can_end(self) -> bool:
        """Whether the open trial can be ended here."""
        ...

    def touch(self) -> None:
        """Keep the open trial alive: its page is in use."""
        ...

    async def open(self, wanted: TrialOptions) -> str:
        """End the open trial, and open another. Returns why it failed, in a word: `spent` (the
        daily limit is used up), `often` (today's trials used too much), `persona` (it could not be
        used), `forgotten` (the asker was erased meanwhile), `failed`; empty on success.
        """
        ...

    async def end(self) -> None:
        """End the trial that was opened here."""
        ...
