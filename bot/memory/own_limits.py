"""The limits of a day that owners set by command for a person or a group, over restarts, and those
of single groups in the operator's file, which hold where no owner has set one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from bot.policy.day_limits import Cap, DayLimits, LimitOverride
from bot.settings_store import SettingsStore, TableSetting
from frostagent.types.conversation import Conversation
from frostagent.types.ports import Clock

Holder: TypeAlias = int | Conversation
"""Whose limit: a person's, or a group's."""


class LimitsSet(Struct, frozen=True):
    """The limits set for good, and those for a day that ends then (seconds since 1970)."""

    good: LimitOverride | None = None
    today: LimitOverride | None = None
    until: float = 0.0

    def at(self, now: float) -> LimitOverride | None:
        """The one that holds at that time."""
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
    """The limits that hold for people and groups now."""

    def __init__(self, *, settings: SettingsStore, clock: Clock) -> None:
        self._settings = settings
        self._clock = clock
        self.filed: Callable[[], Mapping[int, LimitOverride]] = dict  # by the group's number

    async def load(self) -> bool:
        """Read those set by command. Returns False if they cannot be read now."""
        return await self._settings.load(LIMITS)

    def of(self, whose: Holder) -> LimitOverride | None:
        """The limits that hold for them now; None where that is the usual."""
        own = self._settings.get(LIMITS, whose)
        return own.at(self._clock.now()) if own is not None else None

    def cap(self, whose: Holder, limits: DayLimits) -> Cap:
        """The most they may take today, where everybody else has these limits."""
        usual = limits.user if isinstance(whose, int) else limits.group
        if not isinstance(whose, int) and (filed := self.filed().get(whose.session_id)):
            usual = filed.over(usual)
        own = self.of(whose)
        return usual if own is None else own.over(usual)

    @property
    def are_some(self) -> bool:
        """Whether there is any."""
        return bool(self._settings.all(LIMITS) or self.filed())

    def all(self) -> Mapping[Holder, LimitOverride]:
        """All that hold now."""
        now, own = self._clock.now(), self._settings.all(LIMITS).items()
        return {whose: cap for whose, one in own if (cap := one.at(now)) is not None}

    async def keep(self, whose: Holder, cap: LimitOverride | None, *, until: float = 0.0) -> bool:
        """Keep to this up to `until` (seconds since 1970), or for good; None: to the usual. False
        where that cannot be written down now: nothing is changed then.
        """

        def renewed(own: LimitsSet | None) -> LimitsSet:
            return replace(own or LimitsSet(), today=cap, until=until) if until else LimitsSet(cap)

        return await self._settings.update(LIMITS, whose, renewed)
