"""Daily limits, in US dollars and in tokens: the rules, which are pure, and the limits that replace
the usual ones for a person or a group.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import IntEnum
from typing import Final, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from bot.core.conversation import Conversation
from bot.settings_store import SettingsStore, TableSetting
from frostagent.types.ports import Clock

OWNERS: Final = 1.2  # times the total limit: owners are answered up to here
EXACT: Final = 9  # digits of a percentage after the point; the rest is rounding error

ALL: Final = "all"
"""The key of the total."""

Holder: TypeAlias = int | Conversation
"""Whose limit: a person's, by QQ number, or a group's."""

Whose: TypeAlias = Holder | str
"""Whose sum: a person's, a group's, or the total."""


class Amount(Struct, frozen=True):
    """Tokens, and the known cost in US dollars."""

    tokens: float = 0.0
    cost: float = 0.0

    def plus(self, other: Amount) -> Amount:
        return Amount(self.tokens + other.tokens, self.cost + other.cost)

    def less(self, other: Amount) -> Amount:
        return Amount(self.tokens - other.tokens, self.cost - other.cost)

    @property
    def at_least_zero(self) -> Amount:
        return Amount(max(0.0, self.tokens), max(0.0, self.cost))

    @property
    def known_cost(self) -> float | None:
        """The cost; None if there are tokens but no cost, as the price may be unknown."""
        cost = max(0.0, round(self.cost, 9))  # subtraction leaves a rounding error
        return cost if cost or not self.tokens else None


NOTHING: Final = Amount()


@dataclass(frozen=True, slots=True)
class Cap:
    """The most that may be used in a day; 0 is no limit."""

    cost: float = 0.0
    tokens: int = 0

    def used(self, amount: Amount) -> float:
        """The share of this limit that an amount uses; 1 is all of it."""
        cost = amount.cost / self.cost if self.cost else 0.0
        return max(cost, amount.tokens / self.tokens if self.tokens else 0.0)


NO_CAP: Final = Cap()


def percent_of(share: float) -> int:
    """A percentage rounded down, so that 100 means all is used. 0.29 gives 29, although 100 * 0.29
    < 29.
    """
    percent = int(round(100 * share, EXACT))
    return percent if share >= 1 else min(percent, 99)


@dataclass(frozen=True, slots=True)
class LimitOverride:
    """A limit that replaces the usual one: None is as usual, 0 is no limit."""

    cost: float | None = None
    tokens: int | None = None

    def over(self, usual: Cap) -> Cap:
        return Cap(
            usual.cost if self.cost is None else self.cost,
            usual.tokens if self.tokens is None else self.tokens,
        )


LIFTED: Final = LimitOverride(0.0, 0)
AS_USUAL: Final = LimitOverride()


@dataclass(frozen=True, slots=True)
class DayLimits:
    """The daily limits of each person, of each group, and of all together."""

    user: Cap = NO_CAP
    group: Cap = NO_CAP
    all: Cap = NO_CAP

    @property
    def are_off(self) -> bool:
        return self == DayLimits()


class LimitLevel(IntEnum):
    """The percentage of a limit that is used. From each level on the bot does less: CHEAP uses the
    cheap model, PLAIN omits pictures and subagents, BARE omits tools and half the history, SPENT
    stops answering.
    """

    ALL = 0
    CHEAP = 70
    PLAIN = 85
    BARE = 95
    SPENT = 100


def limit_level(everybody: float, *others: float, is_owner: bool) -> LimitLevel:
    """A person's level, from the shares used of the total limit, the group's and their own. An
    owner stays at ALL until OWNERS times the total limit is used.
    """
    if is_owner:
        return LimitLevel.SPENT if everybody >= OWNERS else LimitLevel.ALL
    used = 100 * max((everybody, *others))
    if used < LimitLevel.CHEAP:
        return LimitLevel.ALL  # the usual case
    return next(level for level in reversed(LimitLevel) if used >= level)


class LimitsSet(Struct, frozen=True):
    """The permanent limit, and the limit for the day that ends at `until` (seconds since 1970)."""

    good: LimitOverride | None = None
    today: LimitOverride | None = None
    until: float = 0.0

    def at(self, now: float) -> LimitOverride | None:
        return self.today if self.today is not None and now < self.until else self.good


def _holder(key: str) -> Holder:
    return int(key) if key.isdecimal() else Conversation.parse(key)


LIMITS: Final = TableSetting[Holder, LimitsSet](
    "limits",
    dict[str, LimitsSet],
    key=_holder,
    lasts=lambda own, now: own.good is not None or own.at(now) is not None,
)


class OwnLimits:
    """The limits of single people and groups: those set by command, which are stored, override
    those of groups in the operator's file. `are_some` is True if there is any; followers are called
    whenever it may have changed.
    """

    def __init__(self, *, settings: SettingsStore, clock: Clock) -> None:
        self._settings = settings
        self._clock = clock
        self._filed: Mapping[int, LimitOverride] = {}
        self._followers: list[Callable[[], None]] = []
        self.are_some = False
        settings.follow(LIMITS, self._changed)
        self._changed()

    def follow(self, changed: Callable[[], None]) -> None:
        """Call `changed` whenever limits may have changed, except at the end of a day."""
        self._followers.append(changed)

    async def load(self) -> bool:
        """Read the limits set by command. Returns False if they cannot be read now."""
        return await self._settings.load(LIMITS)

    @property
    def filed(self) -> Mapping[int, LimitOverride]:
        """The limits in the operator's file, by group number."""
        return self._filed

    def set_filed(self, filed: Mapping[int, LimitOverride]) -> None:
        self._filed = filed
        self._changed()

    def of(self, whose: Holder) -> LimitOverride | None:
        """The limit set by command that applies now, if any."""
        own = self._settings.get(LIMITS, whose)
        return own.at(self._clock.now()) if own is not None else None

    def cap(self, whose: Holder, limits: DayLimits) -> Cap:
        """The limit that applies today; `limits` are the usual ones."""
        usual = limits.user if isinstance(whose, int) else limits.group
        if not isinstance(whose, int) and (filed := self._filed.get(whose.session_id)):
            usual = filed.over(usual)
        own = self.of(whose)
        return usual if own is None else own.over(usual)

    def all(self) -> Mapping[Holder, LimitOverride]:
        now, own = self._clock.now(), self._settings.all(LIMITS).items()
        return {whose: cap for whose, one in own if (cap := one.at(now)) is not None}

    async def keep(self, whose: Holder, cap: LimitOverride | None, *, until: float = 0.0) -> bool:
        """Set this limit until then (seconds since 1970), or permanently if `until` is 0; None
        restores the usual one. Returns False, and changes nothing, if it cannot be written now.
        """

        def renewed(own: LimitsSet | None) -> LimitsSet:
            return replace(own or LimitsSet(), today=cap, until=until) if until else LimitsSet(cap)

        return await self._settings.update(LIMITS, whose, renewed)

    def _changed(self) -> None:
        self.are_some = bool(self._settings.all(LIMITS) or self._filed)
        for follower in self._followers:
            follower()
