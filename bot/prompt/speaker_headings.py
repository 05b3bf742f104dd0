"""A table of the headings by which other bots mark speakers in their prompts. Pure.

Models have seen the logs of many bots and write such headings themselves: `[UserID:1,Nickname:
Tom]:`, `<sender>Tom</sender>`, `[Tom/10:00:00]:`, `[2026-11-28 10:00] Tom:`, JSON of speaker and
text. A form counts always, or only with the name of the bot or of a person in the prompt (`Sure`).
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from enum import Enum
from functools import lru_cache
from typing import Any, NamedTuple

from frostagent.text.lazy_regex import lazy_regex

MAX_NAME = 24
LONGEST = 400  # characters of a line in which its heading ends
SIGNS_OF_FRAMES = r"\n()（）#＃:：\[\]【】［］<>"
NAME = rf"(?P<name>[^\s/{SIGNS_OF_FRAMES}][^{SIGNS_OF_FRAMES}]{{0,{MAX_NAME - 1}}}?)"
NUMBER = r"(?P<number>\d{1,20})"
OPEN, CLOSE, COLON = r"[\[【［]", r"[\]】］]", r"\s?[:：]"
MARK = r"(?:\*\*|__|[*_])?"
CLOCK = r"\d{1,2}:\d\d(?::\d\d)?"
DAY = r"(?:\d{4}[-/.年]\d{1,2}[-/.月]|\d{1,2}[-/月])\d{1,2}日?"
MOMENT = rf"(?:(?:{DAY}|周.|星期.|今天|昨天)[ T]?\s?(?:{CLOCK})?|{CLOCK})"
TIMED = rf"(?:{DAY}[ T])?{CLOCK}"
USER_ID, QQ, ID = r"(?:user ?_?id|用户id)", r"qq号?", r"(?:id|uid|账号)"

# Keys of `[key:value,key:value]`, attributes and JSON.
_SPEAKER = """\
nickname nick sender sendername sender_name speaker
昵称 发送者 发送人 发言人 发言者 说话人 群名片"""
_NAME = "name username user_name user from author card 用户 用户名 名字 姓名"
_ACCOUNT = "userid user_id uid qq qq号 用户id sender_id"
_BESIDE = """\
time timestamp date type message_id messageid msg_id group group_id role
时间 日期 群 群号 身份"""
_TEXT = "text content message msg words said reply response answer 内容 消息 文本 发言 回复"
STRICT = frozenset(f"{_SPEAKER} {_ACCOUNT}".split())  # always name a speaker
NAMES = frozenset(f"{_SPEAKER} {_NAME}".split())
IDS = frozenset(f"{_ACCOUNT} id 账号".split())
BESIDE = frozenset(_BESIDE.split())
TEXTS = frozenset(_TEXT.split())
FIELD = lazy_regex(
    r"\s*(?P<key>[A-Za-z_]+(?: [A-Za-z]+)?|[\u3400-\u9fff]{1,4}(?:ID|id)?|QQ号)"
    r"\s*[:：=]\s*(?P<value>.*)"
)
FIELDS = lazy_regex(
    rf"\s{{0,2}}{MARK}{OPEN}(?P<fields>[^\[\]【】［］\n]{{3,160}}){CLOSE}"
    rf"{MARK}(?P<colon>{COLON})?{MARK}[^\S\n]*"
)
PARTS = lazy_regex(r"[,，;；|]")
MORE = lazy_regex(r"\s+(?=(?:[A-Za-z_]{2,12}|[\u3400-\u9fff]{2,4})\s?[:：=])")


class Sure(Enum):
    """How certain it is that a form is a heading."""

    CERTAIN = "is never anything but a heading"
    KNOWN = "is certain with a name that is known, and doubtful without"
    DOUBTFUL = "is hardly ever anything else: asked for again"
    NAMED = "is a heading only with a name that is known"


_WHO = rf"{NAME}(?:\s?[(（]{NUMBER}[)）])?"
_AT = rf"(?:[\[【［(（]{MOMENT}[\]】］)）]|{DAY}[ T]{CLOCK})"
_TAG = (
    r"(?:<(?P<element>message|msg|chat)>\s?)?<(?P<tag>sender|speaker|nickname|发送者|发言人)>"
    rf"{NAME}</(?P=tag)>"
)
_ATTRIBUTE = r"(?:sender|speaker|nickname|user_?name|name|from|author)\s?=\s?[\"']"
_ELEMENT = (
    rf"<(?P<element>message|msg|user|sender|speaker|chat)\s[^<>\n]{{0,80}}?{_ATTRIBUTE}"
    rf"{NAME}[\"'][^<>\n]{{0,80}}(?<!/)>"
)
_WORDS = r"(?=\s*(?:<(?:content|text|message|msg)>|[^\s<]))"
_FORMS: tuple[tuple[Sure, str], ...] = (
    (Sure.KNOWN, rf"{OPEN}{NAME}[/|]\s?{TIMED}{CLOSE}{MARK}{COLON}"),
    (Sure.KNOWN, rf"{NAME}\s?[(（]{QQ}\s?[:：=]?\s?{NUMBER}[)）]{MARK}{COLON}"),
    (Sure.CERTAIN, rf"{NAME}\s?[(（]{USER_ID}\s?[:：=]?\s?{NUMBER}[)）]{MARK}{COLON}"),
    (Sure.CERTAIN, rf"{_TAG}(?:{COLON}|(?=\s*\S))"),
    (Sure.CERTAIN, rf"{_ELEMENT}{_WORDS}"),
    (Sure.DOUBTFUL, rf"{_AT}\s?{OPEN}?{NAME}{CLOSE}?(?:\s?[(（]{NUMBER}[)）])?{MARK}{COLON}"),
    (
        Sure.DOUBTFUL,
        rf"{NAME}\s?[(（]{ID}\s?[:：=]?\s?(?P<number>\d{{4,20}})[)）]{MARK}{COLON}",
    ),
    (Sure.DOUBTFUL, rf"{NAME}\s?[(（](?P<number>\d{{7,11}})[)）]{MARK}{COLON}"),
    (Sure.DOUBTFUL, rf"{_TAG}\s*$"),
    (Sure.DOUBTFUL, rf"{_ELEMENT}\s*$"),
    (Sure.NAMED, rf"{OPEN}{NAME}[/|]\s?{MOMENT}{CLOSE}"),
    (Sure.NAMED, rf"{OPEN}{_WHO}{CLOSE}{MARK}{COLON}"),
    (Sure.NAMED, rf"{OPEN}{NAME}\s?[(（]{NUMBER}[)）]{CLOSE}"),
    (Sure.NAMED, rf"{NAME}\s?[<\[【]{NUMBER}[>\]】]{MARK}{COLON}"),
    (Sure.NAMED, rf"{_WHO}\s{{1,3}}(?:{DAY}\s)?\d{{1,2}}:\d\d:\d\d\s*$"),
    (Sure.NAMED, rf"<{NAME}>\s?[:：]?(?=\s?[^\s<])"),
)
FORMS = tuple(
    (sure, lazy_regex(rf"\s{{0,2}}{MARK}{form}{MARK}[^\S\n]*", re.IGNORECASE))
    for sure, form in _FORMS
)
OPENING = lazy_regex(r"\s*<(content|text|message|msg)>", re.IGNORECASE)
MAY_BEGIN = lazy_regex(
    r"^\s{0,2}(?:\*\*|__|[*_])?(?:[\[【［<(（]|20\d\d[-/.年])"
    r"|[(（]\d{7,11}[)）]|(?:qq号?|id|账号)\s?[:：=]?\s?\d{1,20}[)）]|[<\[【]\d{1,20}[>\]】]|:\d\d\s*$",
    re.MULTILINE | re.IGNORECASE,
)
SIGNS = ("[", "【", "［", "<", "{", "(", "（", "20", ":")


class SpeakerHeading(NamedTuple):
    """The speaker of a line whose text begins at `end`, inside this XML element, if any."""

    name: str
    number: str
    end: int
    sure: Sure
    element: str = ""

    def words_of(self, text: str) -> str:
        """The text after the heading, without the tags around it."""
        words = text[self.end :]
        words = _unclosed(words, self.element) if self.element else words
        if opened := OPENING.match(words):
            words = _unclosed(words[opened.end() :], opened[1])
        return words


class JsonLine(NamedTuple):
    name: str
    number: str
    text: str
    certain: bool


def may_have_heading(text: str) -> bool:
    """Whether the text may contain another bot's kind of heading."""
    if not any(map(text.__contains__, SIGNS)):
        return False
    return _may_be_json(text) or MAY_BEGIN.search(text) is not None


def heading_of(line: str) -> SpeakerHeading | None:
    return _heading_of(line[:LONGEST])


@lru_cache(maxsize=512)  # each line is checked several times
def _heading_of(line: str) -> SpeakerHeading | None:
    if fields := _fields_of(line):
        return fields
    for sure, form in FORMS:
        if match := form.match(line):
            found = match.groupdict(default="")
            number, element = found.get("number", ""), found.get("element", "")
            return SpeakerHeading(match["name"].strip(), number, match.end(), sure, element)
    return None


def _unclosed(words: str, element: str) -> str:
    closing, told = f"</{element}>", words.rstrip()
    return told.removesuffix(closing) if told.endswith(closing) else words


def speakers_in_json(text: str) -> list[JsonLine]:
    """The lines of a JSON text: one object, a list of objects, or one per line. Empty if any of it
    is not a speaker's line.
    """
    if not _may_be_json(text):
        return []
    objects = list(_objects(text.strip()))
    spoken = [one for one in map(_spoken, objects) if one is not None]
    return spoken if len(spoken) == len(objects) else []


def _fields_of(line: str) -> SpeakerHeading | None:
    match = FIELDS.match(line)
    if match is None:
        return None
    parts = filter(str.strip, PARTS.split(match["fields"]))
    fields = [FIELD.fullmatch(one) for part in parts for one in _apart(part)]
    known = {_key(field["key"]): field["value"].strip() for field in fields if field}
    if None in fields or not known or not known.keys() <= NAMES | IDS | BESIDE:
        return None
    name = next((known[key] for key in known if key in NAMES), "")
    number = next((known[key] for key in known if key in IDS), "")
    if not name and not number.isdigit():
        return None
    certain = bool(known.keys() & STRICT) and (len(known) > 1 or match["colon"] is not None)
    if not certain and match["colon"] is None:
        return None
    return SpeakerHeading(
        name[:MAX_NAME], number, match.end(), Sure.CERTAIN if certain else Sure.NAMED
    )


def _apart(part: str) -> list[str]:
    """Split the fields of a part. Fields may be separated by spaces, and keys may contain them."""
    key, colon, value = (
        re.split(r"([:：=])", part, maxsplit=1) if FIELD.match(part) else ("", "", part)
    )
    first, *more = MORE.split(value)
    return [f"{key}{colon}{first}", *more]


def _key(key: str) -> str:
    folded = key.strip().casefold()
    return folded if folded in NAMES | IDS | BESIDE else folded.replace(" ", "_")


def _may_be_json(text: str) -> bool:
    words = text.strip()
    return words[:1] in {"{", "["} and words[-1:] in {"}", "]"} and '"' in words


def _objects(words: str) -> Iterator[Any]:
    try:
        given = json.loads(words)
        yield from given if isinstance(given, list) else [given]
    except (ValueError, RecursionError):
        for line in filter(str.strip, words.splitlines()):
            try:
                yield json.loads(line)
            except (ValueError, RecursionError):
                yield None


def _spoken(given: Any) -> JsonLine | None:
    if not isinstance(given, dict):
        return None
    known = {_key(key): value for key, value in given.items()}
    texts = [value for key, value in known.items() if key in TEXTS]
    if len(texts) != 1 or not isinstance(texts[0], str) or len(known) != len(given):
        return None
    if not known.keys() <= NAMES | IDS | BESIDE | TEXTS:
        return None
    name, number = "", ""
    for key, value in known.items():
        if isinstance(value, dict):  # {"sender": {"nickname": "Tom", "user_id": 1}, ...}
            inner = {_key(one): str(told) for one, told in value.items()}
            name = name or next((inner[one] for one in inner if one in NAMES), "")
            number = number or next((inner[one] for one in inner if one in IDS), "")
        elif key in NAMES:
            name = name or str(value)
        elif key in IDS:
            number = number or str(value)
    if known.get("role") == "assistant" and not name:
        return JsonLine("", "", texts[0], certain=True)
    if not name and not number:
        return None
    return JsonLine(name.strip(), number, texts[0], bool(known.keys() & STRICT))
