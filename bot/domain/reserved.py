"""Entries of the journal about requests to models beside the steps of a turn: those under way,
those that failed, and those of subagents.
"""

from __future__ import annotations

from enum import StrEnum
from typing import ClassVar, Literal, Protocol, TypeAlias

from msgspec import Struct

from bot.domain.chat import AssistantMessage, Usage
from bot.domain.events import Conversation


class UsageReserved(Struct, frozen=True, kw_only=True, tag="usage_reserved"):
    """A model is about to be asked on behalf of a turn, and will take about so much: a `usage` of
    that turn that was reserved under this `number` takes its place. `step` and `payer` as in
    UsageAdded.
    """

    turn_id: str
    number: int
    model: str
    usage: Usage
    at: float
    step: int = 1  # lines that older versions wrote ahead say none
    payer: tuple[Conversation, int] | None = None
    type: ClassVar[Literal["usage_reserved"]] = "usage_reserved"


class UsageReleased(Struct, frozen=True, kw_only=True, tag="usage_released"):
    """A request of a turn for which that was reserved took nothing."""

    turn_id: str
    number: int
    type: ClassVar[Literal["usage_released"]] = "usage_released"


class Errand(StrEnum):
    """The purpose of a request that is made for a turn, but not to answer it. LATER: it was made
    after the turn had closed, and nobody wrote down what for.
    """

    FACTS = "facts"
    SUMMARY = "summary"
    LATER = "later"


class RequestMade(Struct, frozen=True, kw_only=True, tag="request_made"):
    """A request for a turn ended that is no step of it: it failed, a subagent made it, or it was
    made on an errand.

    `outcome` is that of its `Attempt`, with the HTTP status where there was one (`overloaded:500`).
    `run` and `step` are the subagent's, empty and 0 where nobody knows whose it was; `run` is the
    `Errand` where it was one. `message` is a subagent's answer. `seconds` is how long it took, `at`
    when it ended, in seconds since 1970.
    """

    turn_id: str
    model: str
    outcome: str
    seconds: float
    at: float
    run: str = ""
    step: int = 0
    message: AssistantMessage | None = None
    type: ClassVar[Literal["request_made"]] = "request_made"


class Stood(Struct, frozen=True):
    """How a day stood before a reservation `at` that time for `who`: what all bots of a cluster had
    taken of it, in all and for them, in tokens and US dollars; nothing where nobody adds that up.
    """

    turn_id: str
    number: int
    who: int
    at: float
    all: tuple[float, float]
    theirs: tuple[float, float]


Found: TypeAlias = tuple[Stood, ...]


class DayKeeper(Protocol):
    """Keeps the limits of a day that the bots of a cluster share."""

    @property
    def counts(self) -> tuple[bool, bool]:
        """Whether all together have a limit, and whether people have any; asked in a thread."""
        ...

    def find(self, found: Found, /) -> None:
        """Hear what reservations found that are written down now."""
        ...
