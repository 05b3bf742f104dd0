"""The three seams between a bot and the other bots of its service.

Several bots can share one journal, each with accounts of its own. `AccountScope` tells a bot which
accounts and places are its own, an `Announcer` tells the others what concerns them, and `OtherBots`
asks them. A bot alone has every account (`EVERY_ACCOUNT`), and `ALONE` in place of the others.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Protocol, TypeAlias

from msgspec import Struct

from bot.core.console_views import BotStatus, OwnerDecision
from bot.core.conversation import Conversation
from bot.core.erasure import SubjectErased
from bot.core.settlement import Settled

# --- which places are mine ------------------------------------------------------------------------


class AccountScope(Protocol):
    """The accounts of a bot. What is said to and by an account belongs to it: its conversations,
    its owners' replies, and what it is asked to grant.
    """

    @property
    def number(self) -> int:
        """That of the bot; 0 for the first."""
        ...

    @property
    def suffix(self) -> str:
        """For names in a folder that the bots share; empty for a bot alone."""
        ...

    @property
    def is_first(self) -> bool:
        """Whether this bot does what is done once for all accounts."""
        ...

    def has(self, account: int) -> bool:
        """Whether the account is this bot's."""
        ...

    def has_place(self, where: Conversation) -> bool:
        """Whether the conversation is this bot's; one without an account is every bot's."""
        ...


class EveryAccount(Struct, frozen=True):
    """The scope of a bot alone."""

    number: int = 0
    suffix: str = ""
    is_first: bool = True

    def has(self, _account: int) -> bool:
        """Always."""
        return True

    def has_place(self, _where: Conversation) -> bool:
        """Always."""
        return True


EVERY_ACCOUNT: Final = EveryAccount()


# --- tell the others ------------------------------------------------------------------------------


class UsageTaken(Struct, frozen=True, tag="taken"):
    """Requests to models took this, or will, or less than was thought: in tokens and US dollars,
    for somebody somewhere (`who` is 0 and `where` None for nobody). It counts for the day of `at`;
    when it was `told` is in seconds since 1970, too.
    """

    where: Conversation | None
    who: int
    tokens: float
    cost: float
    at: float
    told: float


class RowChanged(Struct, frozen=True, tag="row_set"):
    """The value that is kept in a row for no conversation is this now."""

    name: str
    value: str


class PlaceChanged(Struct, frozen=True, tag="place_told"):
    """The value kept under a name for a conversation is this now, which may be set by a bot
    that has not its account: on a page that shows all of them.
    """

    where: Conversation
    name: str
    value: str


class AlarmRaised(Struct, frozen=True, tag="alarmed"):
    """The owners are told of a trouble of this kind: nobody else tells it for a while. Where there
    is a `text`, they are not yet, and it is for whoever can reach them, who then says so by one
    without; without a kind it is no alarm, and always said. One that `is_quoting` has words of
    others in it.
    """

    kind: str
    text: str = ""
    is_quoting: bool = False


Announcement: TypeAlias = UsageTaken | RowChanged | PlaceChanged | SubjectErased | AlarmRaised


class Announcer(Protocol):
    """Tells the other bots what concerns them."""

    @property
    def can_alarm(self) -> bool:
        """Whether one of them can reach the owners."""
        ...

    def tell(self, announcement: Announcement, /) -> None:
        """Let them know, as soon as they can be reached; never waits, never raises."""
        ...


# --- ask the others -------------------------------------------------------------------------------


class OtherBots(Protocol):
    """Asks the other bots for what an owner sees of all, and to apply an owner's decision."""

    @property
    def waiting(self) -> int:
        """How many decisions waited there for an owner when they were last asked."""
        ...

    async def add_statuses(self, own: BotStatus, /, *, with_drafts: bool = False) -> BotStatus:
        """The status of all bots together: this bot's `own`, and what the others answer. The words
        of drafts only `with_drafts`.
        """
        ...

    async def decide(self, decision: OwnerDecision, /) -> Settled:
        """Have a decision applied by the bot that has its account: "away" if none has it."""
        ...

    async def render_context(self, where: Conversation, /) -> Sequence[str] | None:
        """The part of a prompt before a conversation of another bot; None if no bot answers."""
        ...


class Alone:
    """Fits `Announcer` and `OtherBots`: there are no other bots."""

    can_alarm: Final = False
    waiting: Final = 0

    def tell(self, _announcement: Announcement, /) -> None:
        """Do nothing."""

    async def add_statuses(self, own: BotStatus, /, **_asked: bool) -> BotStatus:
        """This bot's own status."""
        return own

    async def decide(self, _decision: OwnerDecision, /) -> Settled:
        """No bot has the account."""
        return Settled("away", "")

    async def render_context(self, _where: Conversation, /) -> None:
        """No bot answers."""


ALONE: Final = Alone()
