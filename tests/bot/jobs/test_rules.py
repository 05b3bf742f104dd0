"""When jobs fire: what people write, the clock on the wall, and words for it."""

from __future__ import annotations

from datetime import datetime
from itertools import pairwise
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.core.language import Language
from bot.jobs.rules import (
    RuleProblem,
    latest_moment,
    next_moment,
    read_moment,
    read_rule,
    tell_moment,
    tell_rule,
    wall_clock,
    zone_named,
)
from tests.cases import each_case

BERLIN, HAVANA, SHANGHAI = "Europe/Berlin", "America/Havana", "Asia/Shanghai"
ZH, EN = Language.CHINESE, Language.ENGLISH


def at(text: str, zone: str = BERLIN, *, fold: int = 0) -> float:
    return datetime.fromisoformat(text).replace(tzinfo=ZoneInfo(zone), fold=fold).timestamp()


NOON = at("2026-03-28T12:00")


@each_case(
    ("text", "moment"),
    [
        ("2026-03-28T13:00", at("2026-03-28T13:00")),
        ("2026-3-28 13:00:30", at("2026-03-28T13:00:30")),
        (" 2026-03-29T03:30 ", at("2026-03-29T03:30")),
        ("2026-10-25T02:30+02:00", at("2026-10-25T02:30")),
        ("2026-10-25T02:30+0100", at("2026-10-25T02:30", fold=1)),
        ("2026-03-28T12:30Z", at("2026-03-28T13:30")),
        ("13:00", at("2026-03-28T13:00")),
        ("11:00", at("2026-03-29T11:00")),
        ("+90m", NOON + 5400),
        ("+ 2 H", NOON + 7200),
        ("+45s", NOON + 45),
    ],
)
def test_a_moment_is_read_by_the_clock_on_the_wall(text: str, moment: float) -> None:
    assert read_moment(text, zone=BERLIN, now=NOON) == moment


@each_case(
    ("text", "meant"),
    [
        ("2026-03-29T02:30", "does not exist: the clocks go forward over it that day; is 2026-03-29T01:30 or "),
        ("2026-10-25T02:30", "write 2026-10-25T02:30+02:00 for the first or 2026-10-25T02:30+01:00 for the second"),
        ("2026-03-28T08:00", "has passed, it is 2026-03-28T12:00 now; is 2026-03-29T08:00 meant?"),
        ("2026-03-27T13:00", "is 2026-03-28T13:00 meant?"),
        ("2026-03-28T12:00", "has passed"),
        ("2026-02-30T08:00", "is on no calendar"),
        ("2026-13-01T08:00", "is on no calendar"),
        ("25:00", "is no moment"),
        ("tomorrow", "write the local time as 2026-11-29T08:00"),
        ("2026-03-29", "is no moment"),
        ("", "is no moment"),
        ("0001-01-01T00:00", "is no moment"),
        ("2999-12-31T23:59", "at most five years"),
        ("+999999w", "at most five years"),
        ("2040-01-01T08:00", "at most five years"),
    ],
)
def test_what_is_no_moment_is_refused_in_words_that_say_what_may_be_meant(text: str, meant: str) -> None:
    with pytest.raises(RuleProblem) as refused:
        read_moment(text, zone=BERLIN, now=NOON)
    assert meant in str(refused.value)


@each_case(
    ("text", "rule", "zh", "en"),
    [
        ("", "", "", ""),
        ("once", "", "", ""),
        ("every 30 minutes", "every 30", "每 30 分钟", "every 30 minutes"),
        ("every 10 minutes", "every 10", "每 10 分钟", "every 10 minutes"),
        ("*/10 * * * *", "cron */10 * * * *", "按规则 */10 * * * *", "by the rule */10 * * * *"),
        ("0,10 8 * * *", "cron 0,10 8 * * *", "按规则 0,10 8 * * *", "by the rule 0,10 8 * * *"),
        ("2h", "every 120", "每 2 小时", "every 2 hours"),
        ("every 1 day", "every 1440", "每 24 小时", "every 24 hours"),
        ("0 8 * * *", "cron 0 8 * * *", "每天 08:00", "every day at 08:00"),
        ("cron 0 8 * * 1-5", "cron 0 8 * * 1-5", "周一至周五 08:00", "Monday to Friday at 08:00"),
        ("5 20 * * sun", "cron 5 20 * * SUN", "每周日 20:05", "every Sun at 20:05"),
        ("0 8 * * 7", "cron 0 8 * * 7", "每周日 08:00", "every Sun at 08:00"),
        ("0 9 1 * *", "cron 0 9 1 * *", "每月 1 日 09:00", "on day 1 of every month at 09:00"),
        ("0 9 l * *", "cron 0 9 L * *", "按规则 0 9 L * *", "by the rule 0 9 L * *"),
        ("0 */2 * * *", "cron 0 */2 * * *", "按规则 0 */2 * * *", "by the rule 0 */2 * * *"),
    ],
)
def test_a_rule_is_read_and_told(text: str, rule: str, zh: str, en: str) -> None:
    assert read_rule(text, zone=BERLIN, now=NOON) == rule
    assert (tell_rule(rule, ZH), tell_rule(rule, EN)) == (zh, en)


@each_case(
    ("text", "meant"),
    [
        ("0 8 * * 9", "'9' is no weekday; write 0 to 6 with 0 for Sunday"),
        ("0 8 * * FOO", "'FOO' is no weekday"),
        ("0 8 * 13 *", "'13' is no month"),
        ("0 8 * JUNE *", "'JUNE' is no month"),
        ("0 25 * * *", "is wrong in its hour"),
        ("0 8 31 2 *", "is wrong in its day-of-month"),
        ("daily", "is no rule; write five fields of cron"),
        ("0 0 8 * * *", "is no rule"),
        ("every 9 minutes", "more often than every 10 minutes"),
        ("*/5 * * * *", "more often than every 10 minutes"),
        ("0,1 8 * * *", "more often than every 10 minutes"),
        ("0,9 8 * * *", "more often than every 10 minutes"),
        ("*/9 * * * *", "more often than every 10 minutes"),
        ("0,5 8 1 * *", "more often than every 10 minutes"),
        ("every 999999 days", "is no rule"),
        ("0 8 * * *" * 20, "is no rule"),
    ],
)
def test_what_is_no_rule_is_refused_in_words_that_say_what_may_be_meant(text: str, meant: str) -> None:
    with pytest.raises(RuleProblem) as refused:
        read_rule(text, zone=BERLIN, now=NOON)
    assert meant in str(refused.value)


def days(rule: str, zone: str, since: str, count: int) -> list[str]:
    """The moments of a rule after that one, as the clock on the wall shows them."""
    found, due = list[str](), at(since, zone)
    for _ in range(count):
        coming = next_moment(rule, zone=zone, due=due, after=due)
        assert coming is not None
        due = coming
        found.append(wall_clock(due, zone).isoformat(timespec="minutes"))
    return found


def test_what_is_daily_stays_at_its_time_on_the_wall_over_both_changes() -> None:
    assert days("cron 0 8 * * *", BERLIN, "2026-03-28T08:00", 2) == ["2026-03-29T08:00+02:00", "2026-03-30T08:00+02:00"]
    assert days("cron 0 8 * * *", BERLIN, "2026-10-24T08:00", 2) == ["2026-10-25T08:00+01:00", "2026-10-26T08:00+01:00"]


def test_what_is_in_the_hour_that_is_skipped_or_comes_twice_comes_once() -> None:
    assert days("cron 30 2 * * *", BERLIN, "2026-03-28T02:30", 2) == [
        "2026-03-29T03:00+02:00",
        "2026-03-30T02:30+02:00",
    ]
    assert days("cron 30 2 * * *", BERLIN, "2026-10-24T02:30", 2) == [
        "2026-10-25T02:30+02:00",
        "2026-10-26T02:30+01:00",
    ]


def test_a_midnight_that_there_is_not_is_the_first_moment_of_its_day() -> None:
    assert days("cron 0 0 * * *", HAVANA, "2026-03-07T00:00", 2) == [
        "2026-03-08T01:00-04:00",
        "2026-03-09T00:00-04:00",
    ]
    assert len(set(days("cron 0 0 * * *", HAVANA, "2026-10-31T00:00", 3))) == 3


def test_every_so_many_minutes_is_counted_whatever_the_clocks_do() -> None:
    assert days("every 60", BERLIN, "2026-03-29T01:00", 2) == ["2026-03-29T03:00+02:00", "2026-03-29T04:00+02:00"]


def test_a_day_that_only_some_months_have_is_left_out_in_the_others() -> None:
    assert days("cron 0 8 31 * *", SHANGHAI, "2026-01-31T08:00", 2) == [
        "2026-03-31T08:00+08:00",
        "2026-05-31T08:00+08:00",
    ]
    assert days("cron 0 8 29 2 *", SHANGHAI, "2026-01-31T08:00", 1) == ["2028-02-29T08:00+08:00"]


def test_what_comes_once_has_no_next_moment() -> None:
    assert next_moment("", zone=BERLIN, due=NOON, after=NOON) is None
    assert latest_moment("", zone=BERLIN, due=NOON, now=NOON + 1e6) == NOON


RULES = st.sampled_from(["cron 0 8 * * *", "cron 30 2 * * *", "cron 0 */3 * * 1-5", "every 10", "every 1441"])


@given(RULES, st.sampled_from([BERLIN, HAVANA, SHANGHAI]), st.floats(0, 400 * 86_400), st.floats(0, 3 * 86_400))
def test_moments_rise_and_the_latest_is_the_last_that_has_come(rule: str, zone: str, since: float, away: float) -> None:
    due = next_moment(rule, zone=zone, due=NOON, after=NOON + since)
    assert due is not None
    assert due > NOON + since
    now = due + away
    coming = [due]
    while coming[-1] <= now:
        later = next_moment(rule, zone=zone, due=due, after=coming[-1])
        assert later is not None
        coming.append(later)
    assert all(earlier < later for earlier, later in pairwise(coming))
    assert latest_moment(rule, zone=zone, due=due, now=now) == coming[-2]


@each_case(
    ("seconds", "zh", "en"),
    [
        (13 * 3600, "周日 3月29日 01:00，还有 13 小时", "Sun 29 Mar 01:00, in 13 h"),
        (3599, "周六 3月28日 12:59，还有 60 分钟", "Sat 28 Mar 12:59, in 60 min"),
        (10, "周六 3月28日 12:00，马上", "Sat 28 Mar 12:00, at once"),
        (300 * 86_400, "周五 2027年1月22日 12:00，还有 300 天", "Fri 22 Jan 2027 12:00, in 300 days"),
    ],
)
def test_a_moment_is_told_in_words(seconds: float, zh: str, en: str) -> None:
    moment = NOON + seconds
    assert tell_moment(moment, zone=BERLIN, now=NOON, language=ZH) == zh
    assert tell_moment(moment, zone=BERLIN, now=NOON, language=EN) == en


def test_a_zone_without_rules_of_its_own_has_the_offset_of_the_machine() -> None:
    offset = datetime.fromtimestamp(NOON).astimezone().utcoffset()
    for name in ("CST-8", "No/Such", ":/no/such/file"):
        assert zone_named(name).utcoffset(None) == offset
    assert wall_clock(NOON, "").timestamp() == NOON
