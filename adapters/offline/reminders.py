"""Parses `明天八点提醒我交作业` and `remind me at 8 to stretch`: when, how often, what. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import date, timedelta

DIGITS = {"〇": 0, "零": 0, "一": 1, "二": 2, "两": 2, "三": 3, "四": 4, "五": 5, "六": 6, "七": 7}
DIGITS |= {"八": 8, "九": 9}
NUMBER = r"\d{1,4}|[一二两三四五六七八九]?十[一二三四五六七八九]?|[零一二两三四五六七八九]"
WEEKDAYS = {"日": 0, "天": 0, "一": 1, "二": 2, "三": 3, "四": 4, "五": 5, "六": 6}
ENGLISH_DAYS = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")
DAYS = {"今": 0, "明": 1, "后": 2, "today": 0, "tonight": 0, "tomorrow": 1}
AFTERNOON = ("下午", "晚上", "傍晚", "今晚", "明晚", "每晚", "tonight", "pm")

ASKED = re.compile(r"提醒|叫我|喊我|\bremind\b", re.IGNORECASE)
NAMED = re.compile(r"提醒|\bremind\b", re.IGNORECASE)
LISTED = re.compile(
    r"(?:有|定了?)[^。]{0,4}(?:哪些|什么|啥)提醒|\b(?:my|what|which|list)\b.*\breminders\b",
    re.IGNORECASE,
)
CANCELLED = re.compile(
    r"(?:取消|删掉|删除|\bcancel\b|\bdelete\b)[^Jj]{0,10}(J\d{1,6})", re.IGNORECASE
)
AFTER = re.compile(
    rf"(?P<count>半|{NUMBER})\s*个?(?P<half>半)?\s*(?P<unit>秒|分钟|分|小时|钟头|天)(?:之|以)?后"
)
IN = re.compile(
    r"\bin (?P<count>\d{1,4}|an?|half an) (?P<unit>second|sec|minute|min|hour|day)s?\b",
    re.IGNORECASE,
)
EVERY = re.compile(rf"每隔?(?P<count>{NUMBER})?个?(?P<unit>分钟|小时|钟头)")
ENGLISH_EVERY = re.compile(
    r"\bevery (?P<count>\d{1,4}) (?P<unit>minute|min|hour)s?\b", re.IGNORECASE
)
DAILY = re.compile(
    r"每(?:天|日|晚)|每(?:个)?(?P<work>工作日)|每(?:周|星期|礼拜)(?P<day>[一二三四五六日天])"
    r"|\bevery (?:day|morning|evening|night)\b|\bevery (?P<weekday>weekday)\b"
    r"|\bevery (?P<english>sun|mon|tue|wed|thu|fri|sat)[a-z]*\b",
    re.IGNORECASE,
)
AT = re.compile(
    r"(?P<day>今天|今晚|明天|明早|明晚|后天)?的?(?P<part>凌晨|早上|上午|中午|下午|晚上|傍晚)?"
    rf"\s*(?P<hour>{NUMBER})\s*(?:点钟?|时|[:：])\s*(?P<minute>半|一刻|三刻|{NUMBER})?分?"
)
ENGLISH_AT = re.compile(
    r"(?:\b(?P<day>today|tonight|tomorrow)\b\s*)?\bat (?P<hour>\d{1,2})(?::(?P<minute>\d{2}))?"
    r"\s*(?P<part>am|pm)?\b(?:\s*(?P<later>today|tonight|tomorrow)\b)?",
    re.IGNORECASE,
)
SECONDS = {"秒": "s", "分": "m", "分钟": "m", "小时": "h", "钟头": "h", "天": "d"}
AROUND = re.compile(
    r"提醒(?:一下)?(?:我|大家|他|她)?(?:一下)?|[叫喊]我|请|麻烦|记得|帮我|"
    r"\b(?:please|can you|could you)\b|\bremind (?:me|us|everybody)\b",
    re.IGNORECASE,
)
EDGES = re.compile(
    r"^(?:\s|[,，。.!！?？、:：;；]|\bto\b|\bthat\b|\babout\b|去)+|[\s,，。.!！?？、:：;；]+$"
)


@dataclass(frozen=True, slots=True)
class Reminding:
    """What to do with reminders: `create` one (with `words`, and `when` or `rule` in the tool's
    format; both empty if no time was understood), `list` them, or `cancel` the one with this
    `number`.
    """

    action: str
    words: str = ""
    when: str = ""
    rule: str = ""
    number: str = ""


def read_reminding(text: str, today: str = "") -> Reminding | None:
    """What the text wants done with reminders; None if nothing. `today` is a date as 2026-03-14."""
    if found := CANCELLED.search(text):
        return Reminding("cancel", number=found[1].upper())
    if LISTED.search(text):
        return Reminding("list")
    if not ASKED.search(text):
        return None
    for pattern in (AFTER, IN):
        if found := pattern.search(text):
            return Reminding("create", _rest(text, found), when=_from_now(found))
    for pattern in (EVERY, ENGLISH_EVERY):
        if found := pattern.search(text):
            count = _number(found["count"] or "1")
            unit = "hours" if found["unit"][0] in "小钟hH" else "minutes"
            return Reminding("create", _rest(text, found), rule=f"every {count} {unit}")
    daily = DAILY.search(text)
    clock = ENGLISH_AT.search(text) or AT.search(text)
    if clock is None:  # without a time, 叫我 is about a name
        return Reminding("create", _rest(text)) if NAMED.search(text) else None
    hour, minute = _clock(clock, text)
    words = _rest(text, *filter(None, [daily, clock]))
    if daily is not None:
        return Reminding("create", words, rule=f"{minute} {hour} * * {_weekday(daily)}")
    when = f"{hour:02}:{minute:02}"
    named = clock["day"] or clock.groupdict().get("later") or ""
    later = DAYS.get(named.casefold(), DAYS.get(named[:1]))
    if later and today:
        when = f"{date.fromisoformat(today) + timedelta(days=later)}T{when}"
    return Reminding("create", words, when=when)


def _number(text: str) -> int:
    if text.isdecimal():
        return int(text)
    tens, ten, ones = text.rpartition("十")
    if not ten:
        return DIGITS[text]
    return 10 * DIGITS.get(tens, 1) + DIGITS.get(ones, 0)


def _from_now(found: re.Match[str]) -> str:
    count, unit = found["count"].casefold(), found["unit"].casefold()
    letter = SECONDS.get(unit) or unit[0]
    is_half_more = bool(found.groupdict().get("half"))
    if count in {"半", "half an"} or is_half_more:
        whole = 0 if count in {"半", "half an"} else _number(count)
        minutes = {"h": 60, "d": 1440}.get(letter, 1)
        return f"+{whole * minutes + minutes // 2}m"
    return f"+{1 if count in {'a', 'an'} else _number(count)}{letter}"


def _clock(found: re.Match[str], text: str) -> tuple[int, int]:
    hour = _number(found["hour"])
    minute = {"半": 30, "一刻": 15, "三刻": 45}.get(found["minute"] or "")
    if minute is None:
        minute = _number(found["minute"] or "0")
    said = f"{found['day'] or ''}{found['part'] or ''}{found.groupdict().get('later') or ''}"
    is_late = any(part in said.casefold() for part in AFTERNOON) or "每晚" in text
    if is_late and hour < 12:
        hour += 12
    elif (found["part"] or "").casefold() == "am" and hour == 12:
        hour = 0
    return hour, minute


def _weekday(found: re.Match[str]) -> str:
    if found["work"] or found["weekday"]:
        return "1-5"
    if found["day"]:
        return str(WEEKDAYS[found["day"]])
    if found["english"]:
        return str(ENGLISH_DAYS.index(found["english"].casefold()))
    return "*"


def _rest(text: str, *times: re.Match[str]) -> str:
    """The reminder's words: the text without its times."""
    for found in sorted(times, key=lambda one: one.start(), reverse=True):
        text = f"{text[: found.start()]} {text[found.end() :]}"
    text = " ".join(AROUND.sub(" ", text).split())
    return EDGES.sub("", EDGES.sub("", text))
