"""Hours in which the bot keeps quiet, in local time, as BOT_QUIET, BOT_QUIET_MODE and GROUPS_FILE
set them. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from enum import StrEnum
from itertools import starmap
from typing import Final

DAY = 24 * 60  # minutes
STEP = re.compile(
    r"(\d{1,4})\s*(days?|d|天|hours?|h|个?小时|钟头|minutes?|min|m|分钟|分)", re.IGNORECASE
)
MINUTES = {"d": DAY, "天": DAY, "h": 60, "小": 60, "个": 60, "钟": 60, "m": 1, "分": 1}
LONGEST = 30 * DAY  # minutes, the longest that /quiet accepts


class Quiet(StrEnum):
    """WEAK: the bot answers only messages that clearly address it. ALL: it answers only owners."""

    WEAK = "weak"
    ALL = "all"


@dataclass(frozen=True, slots=True)
class Hours:
    """From minute `begins` of the day up to `ends`; past midnight if `ends` is smaller."""

    begins: int
    ends: int

    def holds(self, minute: int) -> bool:
        if self.begins <= self.ends:
            return self.begins <= minute < self.ends
        return minute >= self.begins or minute < self.ends


@dataclass(frozen=True, slots=True)
class QuietRule:
    hours: tuple[Hours, ...] = ()
    mode: Quiet = Quiet.WEAK

    def holds(self, minute: int) -> bool:
        """Whether it is quiet in that minute of the day."""
        return any(each.holds(minute) for each in self.hours)


@dataclass(frozen=True, slots=True)
class QuietChange:
    """How one group differs; None: as everywhere."""

    hours: tuple[Hours, ...] | None = None
    mode: Quiet | None = None

    def over(self, rule: QuietRule) -> QuietRule:
        return QuietRule(
            rule.hours if self.hours is None else self.hours,
            rule.mode if self.mode is None else self.mode,
        )


NEVER_QUIET: Final = QuietRule()
AS_EVERYWHERE: Final = QuietChange()


def read_change(hours: Iterable[tuple[int, int]] | None, mode: str | None) -> QuietChange:
    return QuietChange(
        None if hours is None else tuple(starmap(Hours, hours)),
        None if mode is None else Quiet(mode),
    )


def read_rule(hours: Iterable[tuple[int, int]], mode: str) -> QuietRule:
    return QuietRule(tuple(starmap(Hours, hours)), Quiet(mode))


def quiet_minutes(hours: Collection[Hours], minute: int) -> int:
    """Minutes of quiet that follow that minute of the day; at least DAY if it is always quiet."""
    left = 0
    while left < DAY:
        now = (minute + left) % DAY
        if not (more := [(each.ends - now - 1) % DAY + 1 for each in hours if each.holds(now)]):
            break
        left += max(more)
    return left


def parse_duration(text: str) -> int | None:
    """`2h`, `1h30m`, `90分钟` -> minutes, from 1 minute to 30 days; None if the text is no such
    duration.
    """
    words = "".join(text.split())
    found = STEP.findall(words)
    if not found or "".join(number + unit for number, unit in found) != words:
        return None
    minutes = sum(int(number) * MINUTES[unit[0].lower()] for number, unit in found)
    return minutes if 0 < minutes <= LONGEST else None
