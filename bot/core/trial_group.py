"""A simulated group to try the bot in: what the console's page shows of it, and its ports."""

from __future__ import annotations

from typing import Final, Protocol

from msgspec import Struct

from bot.core.console_views import ConsoleQueries, Feed
from bot.core.conversation import Conversation
from bot.core.query_results import UsageSum

BOT: Final = "bot"

TRIED: Final = "try"
"""What stands for a turn at requests of trials in the journal of the bot, which pays for them."""


class TrialLine(Struct, frozen=True):
    """Something said in the group: by whom (BOT for the bot, nobody for what happened there), with
    the numbers of its pictures. What is no message has no id; what `happened` is a fault's name,
    `missed` where nobody heard a line, or only told in words.
    """

    who: str
    text: str
    message_id: str = ""
    pictures: tuple[int, ...] = ()
    happened: str = ""

    @property
    def is_ours(self) -> bool:
        """Whether the bot said it."""
        return self.who == BOT


class Source(Struct, frozen=True):
    """Where words of the bot's journal are from: the numbers of who said them, and of the group, 0
    in a private chat.
    """

    user: int
    group: int = 0

    def is_of(self, user: int, group: int) -> bool:
        """Whether they are of this person, or of anybody in this group; 0 is nobody, and none."""
        return bool((user and self.user == user) or (group and self.group == group))


class TrialOptions(Struct, frozen=True, kw_only=True):
    """How the bot is to be tried: with its own model (`is_real`), which costs money, or the demo's;
    as the persona of this key, by an unsaved `text` of it where there is one; and a question that
    is to stand ready there, with the name of whoever asked it, and where it is from.
    """

    is_real: bool = False
    key: str = ""
    text: str = ""
    asker: str = ""
    question: str = ""
    source: Source | None = None


class TrialLimits(Struct, frozen=True):
    """The most that one trial of this model, and of those that stand in for it or help it, may
    take: US dollars, tokens, requests. What the `unpriced` ones take is no known dollars.
    """

    model: str
    cost: float
    tokens: int
    requests: int
    unpriced: tuple[str, ...] = ()

    def allow(self, requests: int, tokens: int, cost: float, *, times: int = 1) -> bool:
        """Whether this much is within `times` these limits; a cost of 0 is no limit."""
        return (
            requests <= times * self.requests
            and tokens <= times * self.tokens
            and not cost > times * self.cost > 0
        )


class Trial(Protocol):
    """One simulated group, and the bot in it. `people` may speak, `faults` can go wrong on purpose;
    `draft` is a question that stands ready. One that is not as it was wanted has a `trouble`, in a
    word: `persona` (its text or key could not be used). `name` is of this one alone.
    """

    name: str
    wanted: TrialOptions
    trouble: str
    faults: tuple[str, ...]
    draft: TrialLine | None

    @property
    def ceiling(self) -> TrialLimits | None:
        """The most it takes; None where there is no limit."""
        ...

    @property
    def lacks(self) -> str:
        """Why its model is asked nothing more, in a word: `used_up`, `often` (all of today's
        together took too much), `spent` (the bot's day has no money left); empty while it is.
        """
        ...

    @property
    def where(self) -> Conversation: ...

    @property
    def people(self) -> tuple[str, ...]: ...

    @property
    def lines(self) -> tuple[TrialLine, ...]:
        """The lines that were said, oldest first."""
        ...

    @property
    def feed(self) -> Feed:
        """Tells of every line, as it comes."""
        ...

    @property
    def showing(self) -> ConsoleQueries:
        """Its own journal."""
        ...

    @property
    def is_busy(self) -> bool:
        """Whether the bot is at an answer."""
        ...

    async def settle(self) -> None:
        """Wait until what was said so far can be read there."""
        ...

    async def say(self, who: str, text: str, picture: bytes = b"", *, patience: float) -> bool:
        """Say something as that member, with a picture where there is one, and wait until all that
        comes of it is settled, for so many seconds at most: the rest goes on without us. Whether
        it was said: not in the name of nobody there, nor where its picture took too long to unpack.
        Raises MediaError for a picture that is none.
        """
        ...

    async def inject_fault(self, fault: str) -> None:
        """Let one of the faults go wrong."""
        ...

    async def picture(self, number: int) -> bytes:
        """A picture of a line, as JPEG. Raises MediaError where it cannot be shown any more."""
        ...

    async def taken(self) -> UsageSum:
        """The sum its requests took, failed ones among them."""
        ...

    def propose(self, who: str, question: str, source: Source | None = None) -> None:
        """Let a question stand ready; whoever asked it joins, and the one who joined long ago
        leaves.
        """
        ...

    def has_words_of(self, user: int, group: int) -> bool:
        """Whether anything that this person said, or anybody in this group, was brought here."""
        ...

    def erase(self) -> None:
        """Let go of all that was said here."""
        ...


class TrialRuns(Protocol):
    """Opens a trial when somebody asks for one. There is one at a time. `last` is what the latest
    one took that is over and had a real model.
    """

    last: UsageSum | None

    @property
    def ceiling(self) -> TrialLimits | None:
        """The most that a trial with the bot's own model may take; None where it has none."""
        ...

    @property
    def current(self) -> Trial | None:
        """The one that is open."""
        ...

    @property
    def can_end(self) -> bool:
        """Whether the one that is open can be ended here."""
        ...

    def touch(self) -> None:
        """Somebody is at it: it stays a while."""
        ...

    async def open(self, wanted: TrialOptions) -> str:
        """End the one that is open, and open another; what came in between, in a word: `spent` (the
        day has no money left), `often` (today's trials took too much), `persona` (it could not be
        used), `forgotten` (whoever asked the question, meanwhile), `failed`; empty where it is
        open.
        """
        ...

    async def end(self) -> None:
        """End the one that was opened here."""
        ...
