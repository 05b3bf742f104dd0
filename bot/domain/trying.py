"""A simulated group to try the bot in: what the console's page shows of it, and its ports."""

from __future__ import annotations

from typing import Final, Protocol

from msgspec import Struct

from bot.domain.books import UsageSum
from bot.domain.events import Conversation
from bot.domain.feed import Feed
from bot.domain.shown import Showing

BOT: Final = "bot"


class TriedLine(Struct, frozen=True):
    """Something said in the group: by whom (BOT for the bot, nobody for what happened there), with
    the numbers of its pictures. What is no message has no id.
    """

    who: str
    text: str
    message_id: str = ""
    pictures: tuple[int, ...] = ()

    @property
    def is_ours(self) -> bool:
        """Whether the bot said it."""
        return self.who == BOT


class Wanted(Struct, frozen=True, kw_only=True):
    """How the bot is to be tried: with its own model (`is_real`), which costs money, or the demo's;
    as the persona of this key, by an unsaved `text` of it where there is one; and a question that
    is to stand ready there, with the name of whoever asked it.
    """

    is_real: bool = False
    key: str = ""
    text: str = ""
    asker: str = ""
    question: str = ""


class Ceiling(Struct, frozen=True):
    """The most that one trial of this model may take: US dollars, tokens, requests; 0 US dollars
    where its price is not known.
    """

    model: str
    cost: float
    tokens: int
    requests: int


class Trial(Protocol):
    """One simulated group, and the bot in it. `people` may speak, `faults` can go wrong on purpose;
    `draft` is a question that stands ready; without a `ceiling` there is no limit to what it takes.
    """

    wanted: Wanted
    ceiling: Ceiling | None
    faults: tuple[str, ...]
    draft: TriedLine | None

    @property
    def where(self) -> Conversation: ...

    @property
    def people(self) -> tuple[str, ...]: ...

    @property
    def lines(self) -> tuple[TriedLine, ...]:
        """The lines that were said, oldest first."""
        ...

    @property
    def feed(self) -> Feed:
        """Tells of every line, as it comes."""
        ...

    @property
    def showing(self) -> Showing:
        """Its own journal."""
        ...

    @property
    def is_busy(self) -> bool:
        """Whether the bot is at an answer."""
        ...

    async def settle(self) -> None:
        """Wait until what was said so far can be read there."""
        ...

    async def is_used_up(self) -> bool:
        """Whether its model may be asked nothing more."""
        ...

    async def say(self, who: str, text: str, picture: bytes = b"") -> None:
        """Say something as that member, with a picture where there is one, and wait until all that
        comes of it is settled. Raises MediaError for a picture that is none.
        """
        ...

    async def obey(self, fault: str) -> None:
        """Let one of the faults go wrong."""
        ...

    async def picture(self, number: int) -> bytes:
        """A picture of a line, as JPEG. Raises MediaError where it cannot be shown any more."""
        ...

    async def taken(self) -> UsageSum:
        """The sum its requests took, failed ones among them."""
        ...

    def propose(self, who: str, question: str) -> None:
        """Let a question stand ready; whoever asked it joins."""
        ...


class Trying(Protocol):
    """Opens a trial when somebody asks for one. There is one at a time. `last` is what the latest
    one took that is over and had a real model.
    """

    last: UsageSum | None

    @property
    def ceiling(self) -> Ceiling | None:
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

    async def open(self, wanted: Wanted) -> str:
        """End the one that is open, and open another; what came in between, in a word: `spent` (the
        day has no money left), `failed`; empty where it is open.
        """
        ...

    async def end(self) -> None:
        """End the one that was opened here."""
        ...
