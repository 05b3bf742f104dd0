"""The conversations in which the bot keeps quiet now, by the hours of the settings or by command.
It still observes messages there.
"""

from __future__ import annotations

import math
import time
from bisect import bisect_left
from collections.abc import Callable
from typing import Final

from msgspec import Struct

from bot.core.conversation import Conversation
from bot.quiet.rule import DAY, Quiet, QuietRule, quiet_minutes
from bot.settings_store import PlaceSetting, SettingsStore
from frostagent.types.ports import Clock

MUTE: Final = "mute"


class QuietOverride(Struct, frozen=True):
    """By command: muted until `/unmute` (`is_mute`), or quiet until then (seconds since 1970)."""

    is_mute: bool
    until: float = math.inf

    def __str__(self) -> str:
        return MUTE if self.is_mute else f"{self.until:.0f}"


def _read(value: str) -> QuietOverride | None:
    if value == MUTE:
        return QuietOverride(is_mute=True)
    return QuietOverride(is_mute=False, until=float(value)) if value.isdecimal() else None


QUIET: Final = PlaceSetting[QuietOverride]("hush", read=_read, is_shared=True)


class QuietHours:
    """Decides whom the bot does not answer now. `rule_of` returns the rule of the settings."""

    def __init__(
        self,
        *,
        rule_of: Callable[[Conversation], QuietRule],
        settings: SettingsStore,
        clock: Clock,
    ) -> None:
        self._rule_of = rule_of
        self._settings = settings
        self._clock = clock

    # --- by command ---------------------------------------------------------------------------

    def override(self, where: Conversation) -> QuietOverride | None:
        """The override by command, unless it has expired."""
        override = self._settings.get(QUIET, where)
        return None if override is None or override.until <= self._clock.now() else override

    def is_muted(self, where: Conversation) -> bool:
        override = self.override(where)
        return override is not None and override.is_mute

    @property
    def muted(self) -> tuple[Conversation, ...]:
        overrides = self._settings.all(QUIET).items()
        return tuple(where for where, override in overrides if override.is_mute)

    async def keep_quiet(self, where: Conversation, until: float) -> bool:
        """Returns False, and changes nothing, if the override cannot be written now."""
        return await self._settings.set(QUIET, where, QuietOverride(is_mute=False, until=until))

    async def mute(self, where: Conversation) -> bool:
        """Returns False as `keep_quiet` does."""
        return await self._settings.set(QUIET, where, QuietOverride(is_mute=True))

    async def end_override(self, where: Conversation) -> bool:
        """Return to the settings there. Returns False as `keep_quiet` does."""
        return await self._settings.set(QUIET, where, None)

    # --- by command or by the settings --------------------------------------------------------

    def holds_in(self, where: Conversation, rule: QuietRule | None = None) -> bool:
        """Whether it is quiet there, by command or by the settings. `rule` saves a lookup."""
        if self.override(where) is not None:
            return True
        return _is_hour(rule or self._rule_of(where), self._clock.now())

    def keeps_from(
        self,
        where: Conversation,
        *,
        is_owner: bool,
        is_weak: bool,
        is_uncalled: bool,
        rule: QuietRule | None = None,
    ) -> bool:
        """Whether quiet suppresses the answer to a message: an owner's only if it `is_uncalled`;
        another person's if it `is_weak`, or always if the mode is ALL.
        """
        rule = rule or self._rule_of(where)
        if not self.holds_in(where, rule):
            return False
        if is_owner:
            return is_uncalled
        return is_weak or rule.mode is Quiet.ALL

    def leaves_to_admins(self, where: Conversation) -> bool:
        """Whether only the commands of a group's admins are answered there."""
        if self.is_muted(where):
            return True
        rule = self._rule_of(where)
        return where.is_group and rule.mode is Quiet.ALL and self.holds_in(where, rule)

    def is_hour(self, where: Conversation, at: float) -> bool:
        """Whether the settings make it quiet there at that time (seconds since 1970)."""
        return _is_hour(self._rule_of(where), at)

    def end(self, where: Conversation) -> float:
        """The first moment from now on at which it is no longer quiet there, in seconds since 1970;
        0 if there is none.
        """
        override, at = self.override(where), self._clock.now()
        if override is not None:
            at = override.until
        if not math.isfinite(at):
            return 0.0
        hours = self._rule_of(where).hours
        while left := quiet_minutes(hours, _minute(time.localtime(at))):
            if left >= DAY:
                return 0.0
            at = _later(at - at % 60, left)
        return at


def _is_hour(rule: QuietRule, at: float) -> bool:
    return bool(rule.hours) and rule.holds(_minute(time.localtime(at)))


def _later(at: float, minutes: int) -> float:
    """`minutes` after `at`, or the moment at which daylight saving time shifts the clock, if
    earlier.
    """
    here = time.localtime(at).tm_gmtoff
    steps = range(1, minutes)

    def is_moved(step: int) -> bool:
        return time.localtime(at + step * 60).tm_gmtoff != here

    # A binary search: a night has hundreds of minutes, but at most one shift.
    return at + 60 * (1 + bisect_left(steps, True, key=is_moved))


def _minute(there: time.struct_time) -> int:
    return there.tm_hour * 60 + there.tm_min
