"""Patterns of the prompt's frame, as `render` and `compose` write it and as models imitate it."""

from __future__ import annotations

import re
from collections.abc import Iterable

from bot.core.engine_words import SENT
from bot.prompt import render
from bot.prompt.prompt_language import WORDINGS
from bot.prompt.wording import Wording
from frostagent.text.lazy_regex import lazy_regex
from frostagent.types.messages import NOTED


def any_pattern(words: Iterable[str]) -> str:
    return "|".join(map(re.escape, words))


OPEN, CLOSE, COLON = r"[(（]", r"[)）]", r"[:：]"
SIGNS = "#＃"
HASH = f"[{SIGNS}]"
MARK = r"(?:\*\*|__|[*_`])?"  # a model may format it as a heading
NAME = rf"[^\n()（）#＃:：\[\]【】]{{1,{render.MAX_NAME}}}?"
# `name#2`, or `name(12345)` as older versions wrote it
NUMBERED = rf"(?P<sign>{HASH}|{OPEN})(?P<number>\d{{1,20}}){CLOSE}?"
WHO = rf"(?P<name>{NAME})\s?{NUMBERED}"
REPLY = r"(?:\s?↩[^\n:：「]{0,60}(?:「[^\n]{0,60}?」)?)?"
LINE = lazy_regex(rf"\s{{0,2}}{MARK}(?P<at>@?){WHO}{REPLY}{MARK}\s?{COLON}{MARK}[^\S\n]*")
LABELLED = lazy_regex(rf"\s*{MARK}(?P<name>[^\s:：]{{1,{render.MAX_NAME}}}){MARK}{COLON}")
FENCE = lazy_regex(r"\s{0,3}(?:```|~~~)")
ANNOUNCED = lazy_regex(
    r"[:：][*_]*\s*$|(?:[如以]下|下面|(?:结果|情况|名单|票数)是?)[。！!～~]?\s*$|^\s*(?:#{1,6}\s|\*\*[^*]+\*\*\s*$)"
)
"""A line that announces the lines below: by a colon, by its words, or as a heading."""
STAGE = lazy_regex(r"\s*(?:[(（].*[)）]|\*[^*]+\*)\s*$")  # a stage direction

_quoting = any_pattern(words.quoted.partition("{")[0] for words in WORDINGS)
_who = rf"({NAME})(?:#(\d+)|\((\d+)\))"
SAID_BY = lazy_regex(
    rf"(?:^(?:  )?(?={NAME}(?:#\d+|\(\d+\))(?: ↩[^\n]*?)?: )|@|↩|{_quoting}){_who}", re.MULTILINE
)
"""A name and its number, in either form."""

HEADINGS = any_pattern(
    heading
    for words in WORDINGS
    for heading in (
        words.question,
        words.added,
        words.record,
        words.forwarded,
        words.earlier,
        words.pictures,
        words.now,
        words.recalled,
        words.notes,
        words.links,
    )
)
ID = r"[^\S\n]*消息号\s*-?\w+"  # of a question, in rounds of older versions
HEADING = lazy_regex(
    rf"\s{{0,2}}{MARK}[\[［【](?:{HEADINGS})(?P<moment>\s*\d\d:\d\d[^\]］】\n]{{0,20}})?"
    rf"[^\]］】\n]{{0,40}}[\]］】]{MARK}(?P<number>{ID})?[^\S\n]*"
)
LABEL = lazy_regex(r"[\[［【][^\]］】\n]{1,20}[\]］】]")
_beside = any_pattern(
    words.heading(heading)
    for words in WORDINGS
    for heading in (words.pictures, words.now, words.recalled, words.links)
)
_days = any_pattern(day for words in WORDINGS for day in words.weekdays)
ROLES = tuple(role for words in WORDINGS for role in words.roles.values())
BESIDE = lazy_regex(
    rf"(?:{_beside})[^\n]*|\[\d{{4}}-\d\d-\d\d (?:{_days})\]"
    rf"|\d{{4}}-\d\d-\d\d (?:{_days})[^\n]*(?:{any_pattern(ROLES)})[^\n]{{0,2}}"
)
"""Lines that are ours: images, the facts of the moment (with or without heading), a date."""


def _quotation(words: Wording) -> str:
    before, between, after = (
        re.escape(part.strip()) for part in re.split(r"\{who\}|\{words\}", words.quoted)
    )
    number = rf"(?:{HASH}\d+|{OPEN}\d+{CLOSE})?"
    return (
        rf"[\[［]{before[2:]}\s*(?!\s){NAME}{number}\s*{between}.{{0,400}}?{after}"
        rf"|{re.escape(words.elsewhere.strip())}|{re.escape(words.unreadable.strip())}"
    )


_quote = rf"(?:{'|'.join(map(_quotation, WORDINGS))})[^\S\n]*"
OUR_QUOTE = lazy_regex(_quote)
QUOTE_INSIDE = lazy_regex(rf"(^|[。！？!?…~～;；])[^\S\n]*{_quote}")
"""Elsewhere in a line the answer talks about a quotation."""
_begins = any_pattern(words.quoted.partition("{")[0].strip()[1:] for words in WORDINGS)
_lost = any_pattern(one[1:10] for words in WORDINGS for one in (words.elsewhere, words.unreadable))
QUOTE = lazy_regex(
    rf"[\[［](?:{_begins})(?!\s*\d{{1,3}}[\]］])(?:[\s:：][^\[\]［］\n]{{0,200}})?[\]］]"
    r"(?!\s*(?:参?见|[来出引摘]自|来源|《|https?:))[^\S\n]*"  # there it is a reference
)

_abouts = [words.about for words in WORDINGS]
_parts = "|".join(re.escape(about.part).replace(r"\{number\}", r"\d+") for about in _abouts)
_fates = "|".join(
    fate
    for about in _abouts
    for fate in (
        re.escape(about.refused).replace(r"\{reason\}", r"[^\n]*?"),
        re.escape(about.unconfirmed),
        re.escape(about.queued),
    )
)
FATE = rf"(?:{_parts})?(?:{_fates})"
ALL_SAID = lazy_regex(
    re.escape(render.ALL_SAID[1:-1]).replace(r"\ ", r"\s*").join((OPEN + r"\s*", r"\s*" + CLOSE))
)
_wholes = [
    whole for about in _abouts for whole in (about.unanswered, about.stopped, about.broken_off)
]
_answers = [about.answer.strip() for about in _abouts]
NOTE_LINE = lazy_regex(
    rf"\s*(?:{OPEN}{FATE}{CLOSE}|(?:{any_pattern(_answers)})\s*{FATE}|{any_pattern(_wholes)}"
    rf"|{SENT}\s*\(message_id:[^\n)]*\))\s*"
)
BRACKETS = ("(", "（", "[", "［", "【", "#", "＃")
PLAIN = (*_answers, *_wholes, *ROLES, SENT)
STAND_INS = frozenset({"(没有回答)", "(被打断了)", render.ALL_SAID, NOTED})
"""Lines that small models write instead of an answer."""
_inside = (
    *STAND_INS,
    *(words for about in _abouts for words in (about.part, about.refused, about.unconfirmed)),
    *(about.queued for about in _abouts),
)
SUSPECT = lazy_regex(
    rf"[(（\[［【]\s*(?:\d{{1,20}}\s?{CLOSE}|\d{{4}}-\d\d-\d\d|{HEADINGS}|{_begins}|{_lost}|"
    + "|".join(
        re.escape(one.lstrip("(").partition("{")[0][:2]) for one in _inside if one[:1] != "{"
    )
    + rf")|{HASH}\d"
)
"""Each frame contains one of these, unless it consists of the bot's name only."""
NARROW = str.maketrans("（）", "()")
