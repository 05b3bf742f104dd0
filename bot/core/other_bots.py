"""The three seams between a bot and the other bots of its service.

Several bots can share one journal, each with its own accounts. `AccountScope` says which accounts
and conversations are a bot's own, an `Announcer` informs the other bots, and `OtherBots` asks them.
A single bot has every account (`EVERY_ACCOUNT`), and `ALONE` in place of the others.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Protocol, TypeAlias

from msgspec import Struct

from bot.core.console_views import BotStatus, OwnerDecision
from bot.core.conversation import Conversation
from bot.core.erasure import SubjectErased
from bot.core.settlement import Settled

# --- scope ----------------------------------------------------------------------------------------


class AccountScope(Protocol):
    """The accounts of a bot. The conversations of an account, replies of its owners, and its join
    requests belong to the account's bot.
    """

    @property
    def number(self) -> int:
        """The bot's number; 0 for the first."""
        ...

    @property
    def suffix(self) -> str:
        """A suffix of names in a folder that bots share; empty for a single bot."""
        ...

    @property
    def is_first(self) -> bool:
        """Whether this bot handles work that is done once for all accounts."""
        ...

    def has(self, account: int) -> bool: ...

    def has_place(self, where: Conversation) -> bool:
        """Whether the conversation is this bot's; one without an account is every bot's."""
        ...


class EveryAccount(Struct, frozen=True):
    """The scope of a single bot."""

    number: int = 0
    suffix: str = ""
    is_first: bool = True

    def has(self, _account: int) -> bool:
        return True

    def has_place(self, _where: Conversation) -> bool:
        return True


EVERY_ACCOUNT: Final = EveryAccount()


# --- announcements --------------------------------------------------------------------------------


class UsageTaken(Struct, frozen=True, tag="taken"):
    """Usage of requests to models, or a reservation, or a (negative) correction, in tokens and US
    dollars. `where` and `who` are the payer (None and 0: none). It counts for the day of `at`;
    `told` is when it was announced; both in seconds since 1970.
    """

    where: Conversation | None
    who: int
    tokens: float
    cost: float
    at: float
    told: float


class RowChanged(Struct, frozen=True, tag="row_set"):
    """A new value of a row that belongs to no conversation."""

    name: str
    value: str


class PlaceChanged(Struct, frozen=True, tag="place_told"):
    """A new value of a conversation's setting, possibly set by a bot without its account, on a page
    that shows all conversations.
    """

    where: Conversation
    name: str
    value: str


class AlarmRaised(Struct, frozen=True, tag="alarmed"):
    """Owners were alerted to this kind of problem: other bots do not repeat it for a while. With a
    `text` they were not: a bot that can reach them sends it, and then announces that without a
    text. Without a kind it is not an alarm, and always sent. `is_quoting`: it contains other
    people's words.
    """

    kind: str
    text: str = ""
    is_quoting: bool = False


Announcement: TypeAlias = UsageTaken | RowChanged | PlaceChanged | SubjectErased | AlarmRaised


class Announcer(Protocol):
    """Informs the other bots."""

    @property
    def can_alarm(self) -> bool:
        """Whether one of them can reach the owners."""
        ...

    def tell(self, announcement: Announcement, /) -> None:
        """Announce it as soon as the others can be reached; never waits, never raises."""
        ...


# --- requests -------------------------------------------------------------------------------------


class OtherBots(Protocol):
    """Asks the other bots for what owners see of all bots, and to apply an owner's decision."""

    @property
    def waiting(self) -> int:
        """The number of pending decisions there when they were last asked."""
        ...

    async def add_statuses(self, own: BotStatus, /, *, with_drafts: bool = False) -> BotStatus:
        """The status of all bots together: this bot's `own`, and the others' answers. With the
        words of drafts only if `with_drafts`.
        """
        ...

    async def decide(self, decision: OwnerDecision, /) -> Settled:
        """Have the account's bot apply a decision; "away" if no bot has the account."""
        ...

    async def render_context(self, where: Conversation, /) -> Sequence[str] | None:
        """The part of a prompt before a conversation of another bot; None if no bot answers."""
        ...


class Alone:
    """Implements `Announcer` and `OtherBots` for a single bot."""

    can_alarm: Final = False
    waiting: Final = 0

    def tell(self, _announcement: Announcement, /) -> None:
        """There is no one to inform."""

    async def add_statuses(self, own: BotStatus, /, **_asked: bool) -> BotStatus:
        return own

    async def decide(self, _decision: OwnerDecision, /) -> Settled:
        return Settled("away", "")

    async def render_context(self, _where: Conversation, /) -> None:
        """There is no bot that could answer."""


ALONE: Final = Alone()
