"""The line of the moment, `2026-11-24 星期二，群「摸鱼群」，提问的是普通成员`, in a model's own
sentences: whole, in parts, with other marks around it. Pure.

A date alone is an answer, so is the name of the group, or who is asking where somebody wants to
know that: what gives the line away are two of its parts side by side, or its words on who is
asking between two commas.
"""

from __future__ import annotations

import re
from functools import lru_cache

from bot.prompt import marks
from bot.prompt.language import WORDINGS

ASKS_WHEN = re.compile(
    r"今[天日晚早年]|明天|昨天|后天|几[号月]|哪[一]?[天年月日]|日期|星期|礼拜|周[几末一二三四五六日]|[这上下本]周|什么时候|何时|时间"
    r"|多久|日历|日记|请假|通知|公告|邀请|信|报告|签到|打卡"
    r"|\b(?:dates?|days?|today|tomorrow|yesterday|time|when|weeks?|month|year|calendar|diary"
    r"|letter|notice|invit\w*|report)\b",
    re.IGNORECASE,
)
ASKS_TODAY = re.compile(
    r"今天|今日|几号|(?:星期|礼拜|周)几|日期|日历|日记|请假|通知|公告|邀请|信|报告|签到|打卡"
    r"|\b(?:dates?|today|what day|calendar|diary|letter|notice|invit\w*|report)\b",
    re.IGNORECASE,
)
CLOCK = re.compile(
    r"\s*[(（\[［【]\s*\d{1,2}[:：]\d\d(?:\s*-\s*\d{1,2}[:：]\d\d)?\s*[)）\]］】]\s*"
)
IN_BRACKETS = re.compile(r"\s*[(（\[［【][^()（）\n]*[)）\]］】][。.]?\s*")
ASKS_CLOCK = re.compile(r"[几哪]点|时间|现在|\b(?:clock|now)\b", re.IGNORECASE)
ASKS_WHERE = re.compile(r"群|\b(?:group|chat)\b", re.IGNORECASE)
ASKS_WHOSE = re.compile(
    r"谁|身份|群主|管理|成员|权限|提问|角色|\b(?:who|roles?|owners?|admins?|members?|asking)\b",
    re.IGNORECASE,
)

_days = marks.any_of(day for words in WORDINGS for day in words.weekdays)
_date = (
    r"(?:\d{2,4}\s?[-/.年]\s?)?\d{1,2}\s?[-/.月]\s?\d{1,2}\s?[日号]?(?:\s?[-/.]\s?\d{2,4})?"
    rf"[\s,，]*[(（]?(?:{_days})[)）]?"
)
DATE = re.compile(_date)
_roles = marks.any_of(marks.ROLES)
_role = (
    rf"(?:{_roles}|提问(?:的人?|者)是?(?:普通成员|群主|管理员|成员)"
    r"|(?:asked by )?(?:a member|an admin|the owner)(?: of the group)? is asking)"
)
WHO_ASKS = re.compile(_role, re.IGNORECASE)
_now = marks.any_of(words.now for words in WORDINGS)
_private = marks.any_of(words.private for words in WORDINGS)
_here = marks.any_of(words.here.partition("「")[0].strip() for words in WORDINGS)
BEFORE = r"(?:^|(?<=[\s(（【\[，,。.!！?？;；:：、」]))"
AFTER = r"(?=\s*(?:$|[)）\]】，,。.!！?？;；、\n]))"
ROLE = re.compile(rf"{BEFORE}(?:{_roles}){AFTER}", re.MULTILINE | re.IGNORECASE)
LETTER = re.compile(r"\w")
SENTENCE = re.compile(r"[^。！？!?；;\n]*[。！？!?；;\n]*")
LEFT = " \t，,、;；|·"


@lru_cache(maxsize=256)
def _line(group: str) -> re.Pattern[str]:
    """Two parts of the line, or more, in whatever brackets."""
    inside, bare = (re.escape(group), f"|{re.escape(group)}") if group else (r"[^「」\n]{1,30}", "")
    here = rf"(?:the\s+)?(?:{_here})\s*[「\"“『《]\s*{inside}\s*[」\"”』》]"
    part = rf"(?:{_date}|{here}|{_role}|{_private}{bare})"
    return re.compile(
        rf"{BEFORE}[(（\[【]?\s*(?:[\[［【]?(?:{_now})[\]］】:：]?\s*)?"
        rf"{part}(?:[\s,，、;；|·]*{part})+(?:\s*[)）\]】]|{AFTER})",
        re.MULTILINE | re.IGNORECASE,
    )


@lru_cache(maxsize=256)
def _here_of(group: str) -> re.Pattern[str]:
    return re.compile(rf"(?:the\s+)?(?:{_here})\s*「{re.escape(group)}」", re.IGNORECASE)


def without_moment(text: str, group: str, asked: str) -> str:
    """The text without the line of the moment; the very same text where it is not in it. Who asks
    for the date is left that; a sentence with words on both sides of it goes as a whole.
    """
    text = _unframed(text, group, asked) if "「" in text else text
    if not (DATE.search(text) or WHO_ASKS.search(text)):
        return text
    sentences = [
        _of_sentence(one, group, asked) if one.strip() else one for one in SENTENCE.findall(text)
    ]
    left = "".join(sentences)
    return text if left == text else left.strip()


def _of_sentence(sentence: str, group: str, asked: str) -> str:
    for match in _line(group).finditer(sentence):
        date = DATE.search(match[0])
        role = WHO_ASKS.search(match[0]) is not None
        wants_date = ASKS_TODAY.search(asked) is not None
        if wants_date and not role:
            continue
        without_date = DATE.sub("", match[0])
        if LETTER.search(without_date) is None:
            continue  # dates alone
        kept = date[0] if date and wants_date else ""
        return _around(sentence, match, kept)
    if (role_only := ROLE.search(sentence)) and not ASKS_WHOSE.search(asked):
        return _around(sentence, role_only, "")
    return sentence


def _around(sentence: str, match: re.Match[str], kept: str) -> str:
    """The sentence with what is `kept` in the place of the match; nothing where that is torn."""
    before, after = sentence[: match.start()], sentence[match.end() :]
    if not LETTER.search(after):
        return f"{before.rstrip(LEFT)}{after}" if LETTER.search(before) else kept
    rest = after.lstrip(f"{LEFT}。.)）]】\n")
    is_torn = LETTER.search(before) is not None or (after[:1] in ",，" and "a" <= rest[:1] <= "z")
    return f"{kept}{'' if is_torn else after if kept else rest}"


def _unframed(text: str, group: str, asked: str) -> str:
    """The text with the group's name as people write it."""
    if not group or group not in text or ASKS_WHERE.search(asked):
        return text
    return _here_of(group).sub(lambda _: group, text)


def is_date_alone(text: str, asked: str) -> bool:
    """Whether it is nothing but a date, or brackets with one, and nobody asked for any."""
    if CLOCK.fullmatch(text):
        return bool(asked) and not ASKS_CLOCK.search(asked) and not ASKS_WHEN.search(asked)
    is_date = DATE.fullmatch(text.strip(" \n。.()（）[]【】")) is not None or (
        DATE.search(text) is not None and IN_BRACKETS.fullmatch(text) is not None
    )
    return is_date and bool(asked) and ASKS_WHEN.search(asked) is None
