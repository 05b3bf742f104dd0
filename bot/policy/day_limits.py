"""Limits of a day, in US dollars and in tokens, and what is left out as it comes near. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

from msgspec import Struct

OWNERS = 1.2  # of what all may cost, for owners
EXACT = 9  # digits of a percentage behind the point; what is beyond them is a trace of floats


class Amount(Struct, frozen=True):
    """Tokens, and US dollars as far as they are known."""

    tokens: float = 0.0
    cost: float = 0.0

    def plus(self, other: Amount) -> Amount:
        """Both together."""
        return Amount(self.tokens + other.tokens, self.cost + other.cost)

    def less(self, other: Amount) -> Amount:
        """This without the other."""
        return Amount(self.tokens - other.tokens, self.cost - other.cost)

    @property
    def at_least_zero(self) -> Amount:
        """This, but less than nothing of neither."""
        return Amount(max(0.0, self.tokens), max(0.0, self.cost))

    @property
    def known_cost(self) -> float | None:
        """The cost; None where there are tokens and no cost: nobody may know their price."""
        cost = max(0.0, round(self.cost, 9))  # what was taken back leaves a trace of rounding
        return cost if cost or not self.tokens else None


NOTHING = Amount()


@dataclass(frozen=True, slots=True)
class Cap:
    """The most of a day; 0 is no limit."""

    cost: float = 0.0
    tokens: int = 0

    def used(self, amount: Amount) -> float:
        """How much of it that is: 1 is all of it."""
        cost = amount.cost / self.cost if self.cost else 0.0
        return max(cost, amount.tokens / self.tokens if self.tokens else 0.0)


def percent_of(share: float) -> int:
    """Rounded down: 100 only where all is used. 0.29 is 29, though 100 times that float is less."""
    percent = int(round(100 * share, EXACT))
    return percent if share >= 1 else min(percent, 99)


NO_CAP = Cap()


@dataclass(frozen=True, slots=True)
class LimitOverride:
    """A limit that an owner of the bot set for somebody in place of the usual: None is as usual, 0
    is no limit.
    """

    cost: float | None = None
    tokens: int | None = None

    def over(self, usual: Cap) -> Cap:
        """The limit that comes of it."""
        return Cap(
            usual.cost if self.cost is None else self.cost,
            usual.tokens if self.tokens is None else self.tokens,
        )


LIFTED = LimitOverride(0.0, 0)
AS_USUAL = LimitOverride()


@dataclass(frozen=True, slots=True)
class DayLimits:
    """The most that each person, each group, and everybody together may take in a day."""

    user: Cap = NO_CAP
    group: Cap = NO_CAP
    all: Cap = NO_CAP

    @property
    def are_off(self) -> bool:
        """Whether there is no limit at all."""
        return self == DayLimits()


class LimitLevel(IntEnum):
    """How much of a limit is used, in per cent: from there on the cheap model answers, there are
    no pictures and no subagents, no tools and half the history, nothing.
    """

    ALL = 0
    CHEAP = 70
    PLAIN = 85
    BARE = 95
    SPENT = 100


def limit_level(everybody: float, *others: float, is_owner: bool) -> LimitLevel:
    """The rung of somebody by the shares that are used, of all and of their own; an owner has
    everything until all is used, and a fifth more.
    """
    if is_owner:
        return LimitLevel.SPENT if everybody >= OWNERS else LimitLevel.ALL
    used = 100 * max((everybody, *others))
    if used < LimitLevel.CHEAP:
        return LimitLevel.ALL  # as of most
    return next(rung for rung in reversed(LimitLevel) if used >= rung)
