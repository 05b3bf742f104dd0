"""Moments, rules and time zones of jobs: reading, computing and wording them. Pure.

A rule is empty (once), `cron 0 8 * * 1-5`, or `every 30` (minutes).
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta, timezone, tzinfo
from datetime import time as clock
from functools import lru_cache
from itertools import islice, pairwise
from pathlib import Path
from typing import Final
from zoneinfo import ZoneInfo

from cronsim import CronSim, CronSimError

from bot.core.language import CATALOGUE, Language, Phrase

MINUTE, HOUR, DAY = 60.0, 3600.0, 86_400.0
TIGHTEST: Final = 10  # minutes between two firings of a job, at least
FURTHEST: Final = 5 * 366 * DAY  # seconds ahead, at most
LONGEST_RULE: Final = 100  # characters
LOOKED_AT: Final = 64  # firings of a rule that are checked

CRON, EVERY = "cron", "every"
LOCAL_TIME = Path("/etc/localtime")

MOMENT = re.compile(r"(2\d{3})-(\d{1,2})-(\d{1,2})(?:[T ](\d{1,2}):(\d{2})(?::(\d{2}))?)?")
TIME_OF_DAY = re.compile(r"(\d{1,2}):(\d{2})")
OFFSET = re.compile(r"(?:Z|([+-])(\d{2}):?(\d{2}))$")
FROM_NOW = re.compile(r"\+\s*(\d{1,6})\s*(s|m|min|h|d|w)", re.IGNORECASE)
SECONDS = {"s": 1.0, "m": MINUTE, "min": MINUTE, "h": HOUR, "d": DAY, "w": 7 * DAY}
EVERY_RULE = re.compile(
    r"(?:every\s+)?(\d{1,6})\s*(minutes?|mins?|m|hours?|h|days?|d)", re.IGNORECASE
)
WORDS = re.compile(r"[A-Z]+")
WEEKDAYS = ("MON", "TUE", "WED", "THU", "FRI", "SAT", "SUN")
MONTHS = ["JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC"]
SYMBOLS = {name: place for place, name in enumerate(WEEKDAYS)} | {
    str(number): (number - 1) % 7 for number in range(8)
}

UNREADABLE = (
    "when: {text!r} is no moment; write the local time as 2026-11-29T08:00, or +90m for 90 minutes "
    "from now"
)
NO_SUCH_DAY = "when: {text!r} is on no calendar"
PAST = "when: {there} has passed, it is {now} now; is {meant} meant?"
SKIPPED = (
    "when: {text} does not exist: the clocks go forward over it that day; is {before} or "
    "{after} meant?"
)
TWICE = (
    "when: {text} comes twice that day, as the clocks go back; write {text}{first} for the first "
    "or {text}{second} for the second"
)
TOO_FAR = "when: that is too far ahead; at most five years"
NO_RULE = (
    "rule: {text!r} is no rule; write five fields of cron (0 8 * * 1-5 is 08:00 from Monday to "
    "Friday), or every 30 minutes"
)
NO_WEEKDAY = "rule: {text!r} is no weekday; write 0 to 6 with 0 for Sunday, or SUN MON TUE …"
NO_MONTH = "rule: {text!r} is no month; write 1 to 12, or JAN FEB MAR …"
BAD_FIELD = "rule: {text!r} is wrong in its {field}"
NEVER = "rule: {text!r} never comes"
TOO_TIGHT = "rule: {text!r} fires more often than every {least} minutes, which is not allowed"

DAYS = Phrase("周一 周二 周三 周四 周五 周六 周日", "Mon Tue Wed Thu Fri Sat Sun")
EVERY_DAY = Phrase("每天 {clock}", "every day at {clock}")
WORKDAYS = Phrase("周一至周五 {clock}", "Monday to Friday at {clock}")
EVERY_WEEK = Phrase("每{day} {clock}", "every {day} at {clock}")
EVERY_MONTH = Phrase("每月 {number} 日 {clock}", "on day {number} of every month at {clock}")
EVERY_MINUTES = Phrase("每 {count} 分钟", "every {count} minutes")
EVERY_HOURS = Phrase("每 {count} 小时", "every {count} hours")
BY_CRON = Phrase("按规则 {fields}", "by the rule {fields}")
IN_DAYS = Phrase("还有 {count} 天", "in {count} days")
IN_HOURS = Phrase("还有 {count} 小时", "in {count} h")
IN_MINUTES = Phrase("还有 {count} 分钟", "in {count} min")
AT_ONCE = Phrase("马上", "at once")
LATE = Phrase("（迟到 {minutes} 分钟）", " ({minutes} min late)")
MONTH_NAMES = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"]
CATALOGUE.register(__name__, globals())


class RuleProblem(ValueError):
    """An unusable moment or rule; the message says what is valid."""


# --- zones ----------------------------------------------------------------------------------------


@lru_cache(maxsize=16)
def zone_named(name: str) -> tzinfo:
    """The time zone of this TZ name, the machine's if it is empty. If its rules cannot be read, the
    present offset.
    """
    file = Path(name.removeprefix(":")) if name.startswith((":/", "/")) else LOCAL_TIME
    try:
        if name and file is LOCAL_TIME:
            return ZoneInfo(name.removeprefix(":"))
        with file.open("rb") as data:
            return ZoneInfo.from_file(data)
    except (LookupError, ValueError, OSError):
        return timezone(timedelta(seconds=time.localtime().tm_gmtoff))


def wall_clock(at: float, zone: str) -> datetime:
    """The local time of a moment in the zone."""
    return datetime.fromtimestamp(at, zone_named(zone))


# --- rules ----------------------------------------------------------------------------------------


def read_rule(text: str, *, zone: str, now: float) -> str:
    """The rule in this text, normalised; empty for once. Raises RuleProblem."""
    words = " ".join(text.split())
    if words.casefold() in {"", "once", "none"}:
        return ""
    if len(words) > LONGEST_RULE:
        raise RuleProblem(NO_RULE.format(text=f"{words[:LONGEST_RULE]}…"))
    if found := EVERY_RULE.fullmatch(words):
        unit = found[2][0].casefold()
        minutes = int(found[1]) * {"m": 1, "h": 60, "d": 1440}[unit]
        if minutes < TIGHTEST:
            raise RuleProblem(TOO_TIGHT.format(text=words, least=TIGHTEST))
        if minutes * MINUTE > FURTHEST:
            raise RuleProblem(NO_RULE.format(text=words))
        return f"{EVERY} {minutes}"
    fields = words.removeprefix(f"{CRON} ").upper()
    _check_fields(fields)
    _check_firings(fields, zone, now)
    return f"{CRON} {fields}"


def _check_fields(fields: str) -> None:
    parts = fields.split()
    if len(parts) != 5:
        raise RuleProblem(NO_RULE.format(text=fields))
    for place, known, problem in ((3, MONTHS, NO_MONTH), (4, WEEKDAYS, NO_WEEKDAY)):
        for word in WORDS.findall(parts[place]):
            if word not in {*known, "L"}:
                raise RuleProblem(problem.format(text=word))
    try:
        CronSim(fields, datetime.combine(date(2026, 1, 1), clock()))  # an arbitrary day
    except CronSimError as error:
        field = str(error).removeprefix("Bad ")
        if (at := {"month": 3, "day-of-week": 4}.get(field)) is not None:
            wrong = NO_MONTH if at == 3 else NO_WEEKDAY
            raise RuleProblem(wrong.format(text=parts[at])) from None
        raise RuleProblem(BAD_FIELD.format(text=fields, field=field)) from None


def _check_firings(fields: str, zone: str, now: float) -> None:
    moments = list(islice(_firings(fields, zone, now), LOOKED_AT))
    if not moments:
        raise RuleProblem(NEVER.format(text=fields))
    # A clock change may bring two moments together: such a gap is not the rule's.
    gaps = [later - earlier for earlier, later in pairwise(moments)]
    if sum(gap < TIGHTEST * MINUTE for gap in gaps) > 1 or gaps[:1] == [0.0]:
        raise RuleProblem(TOO_TIGHT.format(text=fields, least=TIGHTEST))


def _firings(fields: str, zone: str, after: float, *, reverse: bool = False) -> Iterator[float]:
    there = wall_clock(after, zone)
    return (moment.timestamp() for moment in CronSim(fields, there, reverse=reverse))


def next_moment(rule: str, *, zone: str, due: float, after: float) -> float | None:
    """The first moment of the rule after `after`; None if there is none, as for an empty rule.
    `due` is a moment of the rule.
    """
    kind, _, rest = rule.partition(" ")
    if kind == EVERY:
        step = int(rest) * MINUTE
        return due + step * (max(0.0, (after - due) // step) + 1)
    return next(_firings(rest, zone, after), None) if kind == CRON else None


def latest_moment(rule: str, *, zone: str, due: float, now: float) -> float:
    """The latest moment of the rule that is not after `now`, starting with `due`."""
    kind, _, rest = rule.partition(" ")
    if kind == EVERY:
        step = int(rest) * MINUTE
        return due + step * max(0.0, (now - due) // step)
    if kind == CRON:
        return max(due, next(_firings(rest, zone, now + 1, reverse=True), due))
    return due


# --- moments --------------------------------------------------------------------------------------


def read_moment(text: str, *, zone: str, now: float) -> float:
    """The moment in this text, in seconds since 1970. Raises RuleProblem if it cannot be read, has
    passed, or if the local clock skips it or shows it twice.
    """
    words = " ".join(text.split())
    if found := FROM_NOW.fullmatch(words):
        return _checked(now + int(found[1]) * SECONDS[found[2].casefold()], zone, now)
    if found := TIME_OF_DAY.fullmatch(words):
        return _next_time_of_day(words, int(found[1]), int(found[2]), zone=zone, now=now)
    offset = OFFSET.search(words)
    bare = words[: offset.start()] if offset else words
    if not (found := MOMENT.fullmatch(bare.strip())) or found[4] is None:
        raise RuleProblem(UNREADABLE.format(text=text[:60]))
    try:
        year, month, day, hour, minute, second = (int(part or 0) for part in found.groups())
        wall = datetime.combine(date(year, month, day), clock(hour, minute, second))
    except ValueError:
        raise RuleProblem(NO_SUCH_DAY.format(text=text[:60])) from None
    if offset:
        return _checked(wall.replace(tzinfo=_offset(offset)).timestamp(), zone, now)
    return _checked(_moment_of(wall, zone), zone, now)


def _offset(found: re.Match[str]) -> tzinfo:
    if found[1] is None:
        return UTC
    ahead = timedelta(hours=min(int(found[2]), 23), minutes=int(found[3]))
    return timezone(ahead if found[1] == "+" else -ahead)


def _next_time_of_day(text: str, hour: int, minute: int, *, zone: str, now: float) -> float:
    today = wall_clock(now, zone).date()
    for later in range(2):
        day = today + timedelta(days=later)
        try:
            at = _moment_of(datetime.combine(day, clock(hour, minute)), zone)
        except ValueError as error:
            if isinstance(error, RuleProblem):
                raise
            raise RuleProblem(UNREADABLE.format(text=text)) from None
        if at > now:
            return at
    raise RuleProblem(UNREADABLE.format(text=text))


def _moment_of(wall: datetime, zone: str) -> float:
    """The moment of a local time. Raises RuleProblem if the clock skips it or shows it twice."""
    there = zone_named(zone)
    first, second = (wall.replace(tzinfo=there, fold=fold) for fold in (0, 1))
    text = wall.isoformat(timespec="minutes")
    if first.utcoffset() == second.utcoffset():
        return first.timestamp()
    # For a skipped time, the offset before the change is the smaller one.
    skipped = datetime.fromtimestamp(first.timestamp(), there).replace(tzinfo=None) != wall
    if skipped:
        after, before = (datetime.fromtimestamp(one.timestamp(), there) for one in (first, second))
        raise RuleProblem(SKIPPED.format(text=text, before=_iso(before), after=_iso(after)))
    raise RuleProblem(TWICE.format(text=text, first=_sign(first), second=_sign(second)))


def _sign(there: datetime) -> str:
    """`+02:00`."""
    return there.isoformat()[-6:]


def _iso(there: datetime) -> str:
    return there.replace(tzinfo=None).isoformat(timespec="minutes")


def _checked(at: float, zone: str, now: float) -> float:
    if at > now + FURTHEST:
        raise RuleProblem(TOO_FAR)
    if at > now:
        return at
    there, here = wall_clock(at, zone), wall_clock(now, zone)
    day = here.date() if there.time() > here.time() else here.date() + timedelta(days=1)
    meant = f"{day}T{there:%H:%M}"
    raise RuleProblem(PAST.format(there=_iso(there), now=_iso(here), meant=meant))


# --- in words -------------------------------------------------------------------------------------


def tell_moment(at: float, *, zone: str, now: float, language: Language) -> str:
    """`周六 11月29日 08:00，还有 13 小时`."""
    date = tell_date(at, zone=zone, now=now, language=language)
    return f"{date}{language.either('，', ', ')}{tell_left(at - now, language)}"


def tell_date(at: float, *, zone: str, now: float, language: Language) -> str:
    """`周六 11月29日 08:00`, with the year if it is another one."""
    there = wall_clock(at, zone)
    day = DAYS.format(language).split()[there.weekday()]
    is_far = there.year != wall_clock(now, zone).year
    date = language.either(
        f"{f'{there.year}年' if is_far else ''}{there.month}月{there.day}日",
        f"{there.day} {MONTH_NAMES[there.month - 1]}{f' {there.year}' if is_far else ''}",
    )
    return f"{day} {date} {there:%H:%M}"


def tell_left(seconds: float, language: Language) -> str:
    """`还有 13 小时`."""
    for phrase, unit, least in ((IN_DAYS, DAY, 2), (IN_HOURS, HOUR, 2), (IN_MINUTES, MINUTE, 1)):
        if (count := int((seconds + MINUTE / 2) // unit)) >= least:
            return phrase.format(language, count=count)
    return AT_ONCE.format(language)


def tell_rule(rule: str, language: Language) -> str:
    """`每天 08:00`; empty for once."""
    kind, _, rest = rule.partition(" ")
    if kind == EVERY:
        minutes = int(rest)
        if minutes % 60:
            return EVERY_MINUTES.format(language, count=minutes)
        return EVERY_HOURS.format(language, count=minutes // 60)
    if kind != CRON:
        return ""
    minute, hour, number, month, weekday = rest.split()
    if not (minute.isdecimal() and hour.isdecimal() and month == "*"):
        return BY_CRON.format(language, fields=rest)
    clock = f"{int(hour):02}:{int(minute):02}"
    match number, weekday:
        case "*", "*":
            return EVERY_DAY.format(language, clock=clock)
        case "*", "1-5" | "MON-FRI":
            return WORKDAYS.format(language, clock=clock)
        case "*", weekday if weekday in SYMBOLS:
            day = DAYS.format(language).split()[SYMBOLS[weekday]]
            return EVERY_WEEK.format(language, day=day, clock=clock)
        case number, "*" if number.isdecimal():
            return EVERY_MONTH.format(language, number=int(number), clock=clock)
        case _:
            return BY_CRON.format(language, fields=rest)
