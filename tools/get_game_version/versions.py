"""Converts a source's version to the players' one. Pure; never invents a number."""

from __future__ import annotations

import datetime as dt
import re
from typing import Literal, TypeAlias, assert_never

from tools.get_game_version.names import fold

Form: TypeAlias = Literal["", "league", "counter_strike", "dotted"]

VERSION = re.compile(r"[\w.+-]{1,40}", re.ASCII)
RESOURCES = re.compile(r"(\d\d)-(\d\d)-(\d\d)-\d\d-")  # Arknights: 26-11-05-12-30-11-a1b2c3
# After a number, these mean that it counts money, people, times, sizes or hours.
COUNTED = (
    r"[%折倍$¥€£元点时万亿]|周年|小时|分钟|名玩家|[xkmGMK]b?\b|millions?|billions?|thousand|stars?|players?|copies|hours?|days?"
    r"|years?|usd|eur|rmb|cny|gbp|[ap]m\b|维护|开服|停服"
)
TITLED = re.compile(
    rf"(?<![\w.$¥€£])(v\.?\s?)?(\d+\.\d+(?:\.\d+){{0,3}}[a-h]?)(?![a-z\d]|\.\d|\s*(?:{COUNTED}))",
    re.IGNORECASE | re.ASCII,
)
KEYWORD = (
    r"(?:versions?|ver|patch(?:es)?|updates?|hotfix(?:es)?|builds?|releases?|版本|更新|补丁|修复)"
)
ABOUT_A_VERSION = re.compile(KEYWORD, re.IGNORECASE)
BEFORE = re.compile(
    rf"{KEYWORD}(?:\s*notes?|号|公告|日志|内容|说明)?[\s#:：.\-–—(（\[【《「]*$", re.IGNORECASE
)
BEHIND = re.compile(rf"[\s)）\]】》」:：\-–—]*{KEYWORD}", re.IGNORECASE)
NAMELESS = re.compile(
    r"(?:^|[^a-z\d\s]|\b(?:the|our|new))\s*$", re.IGNORECASE
)  # not another product's name: Proton 8.0 update
NOT_YET = re.compile(
    r"preview|delay|postpone|roadmap|coming|soon|teaser|sneak peek|planned|next week|tomorrow"
    r"|前瞻|预告|预览|展望|延期|推迟|跳票|即将|爆料|计划",
    re.IGNORECASE,
)
NEAR = dt.timedelta(days=7)
NEAR_IN_FULL = dt.timedelta(days=31)  # for a date with its year: 22.11.26


def read_version(raw: object) -> str | None:
    """A version as found; None for anything else, such as an error text."""
    text = str(raw) if isinstance(raw, str | int) and not isinstance(raw, bool) else ""
    return text if VERSION.fullmatch(text) and any(char.isdigit() for char in text) else None


def match_version(raw: object, match: str) -> str | None:
    """The first group of `match` in the value; without `match`, the whole value."""
    if not match:
        return read_version(raw)
    found = re.search(match, raw[:1000]) if isinstance(raw, str) else None
    return read_version(found[1]) if found else None


def say_version(raw: str, form: Form) -> str:
    """The players' form of this version; an unknown shape is unchanged."""
    match form:
        case "":
            return raw
        case "league":
            # Since 2025 patches are named by the year, ten ahead of the data: 16.14.1 is 26.14.
            if (parts := re.fullmatch(r"(\d+)\.(\d+)\.\d+", raw)) and int(parts[1]) >= 15:
                return f"{int(parts[1]) + 10}.{parts[2]}"
            return raw
        case "counter_strike":
            # PatchVersion without its dots, with one, two, one and one digit: 14035 is 1.40.3.5.
            parts = re.fullmatch(r"(\d)(\d\d)(\d)(\d)", raw)
            return ".".join(parts.groups()) if parts else raw
        case "dotted":
            # Each digit is a part: 1458 is 1.4.5.8. Five digits would be ambiguous.
            return ".".join(raw) if re.fullmatch(r"\d{3,4}", raw) else raw
        case _:
            assert_never(form)


def split_build(raw: str) -> tuple[str, str]:
    """A Battle.net version and the build after it: 12.0.7.61234 is 12.0.7, build 61234."""
    found = re.fullmatch(r"(\d+\.\d+(?:\.\d+)*)\.(\d{4,})", raw)
    return (found[1], found[2]) if found else (raw, "")


def version_in(
    text: str, day: dt.date, *, said_to_be_one: bool, names: frozenset[str] = frozenset()
) -> str:
    """The version that a text of that day clearly names, or empty.

    Excluded are dates, prices, announced versions, and numbers without a word for "version" or the
    game's name (`names`, folded) beside them. Unless `said_to_be_one` (tagged as patch notes), the
    text must mention a version.
    """
    if NOT_YET.search(text) or not (said_to_be_one or ABOUT_A_VERSION.search(text)):
        return ""
    found = (
        found
        for found in TITLED.finditer(text)
        if _is_named(found, names) and not _is_date(found[2], day)
    )
    return next((one[2] for one in found), "")


def _is_named(found: re.Match[str], names: frozenset[str]) -> bool:
    """Whether the number is called a version: by a v, a position at the start, or its context."""
    before = found.string[: found.start()]
    if found[1] or not fold(before) or BEFORE.search(before):
        return True
    if any(len(name) > 2 and fold(before).endswith(name) for name in names):
        return True
    return bool(NAMELESS.search(before) and BEHIND.match(found.string, found.end()))


def _is_date(number: str, day: dt.date) -> bool:
    parts = [int(part) for part in re.findall(r"\d+", number)]
    if (
        any(1990 <= part < 2100 for part in (parts[0], parts[-1]))
        and sum(part <= 31 for part in parts) == len(parts) - 1
    ):
        return True
    match parts:
        case one, other:
            return _is_near(day.year, one, other, day, NEAR) or _is_near(
                day.year, other, one, day, NEAR
            )
        case one, two, three:
            orders = (one, two, three), (three, one, two), (three, two, one)
            return any(
                _is_near(2000 + year, month, date, day, NEAR_IN_FULL)
                for year, month, date in orders
            )
        case _:
            return False


def _is_near(year: int, month: int, day_of_month: int, day: dt.date, near: dt.timedelta) -> bool:
    try:
        return abs(dt.date(year, month, day_of_month) - day) <= near
    except ValueError:
        return False


def read_day(raw: object) -> dt.date | None:
    """A day from ISO text, seconds since 1970 (UTC) or a resource version; else None."""
    try:
        match raw:
            case bool():
                return None
            case str():
                found = RESOURCES.match(raw)
                return (
                    dt.date(2000 + int(found[1]), int(found[2]), int(found[3]))
                    if found
                    else _iso(raw)
                )
            case int() | float():
                return dt.datetime.fromtimestamp(raw, dt.UTC).date()
            case _:
                return None
    except (ValueError, OverflowError, OSError):
        return None


def _iso(text: str) -> dt.date:
    return dt.datetime.fromisoformat(text).date()
