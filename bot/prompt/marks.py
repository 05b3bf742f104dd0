"""The marks of the prompt's frame, as patterns: how `render`, `compose` and `notes` write it, by
their own constants, and how models write it after them.
"""

from __future__ import annotations

import re

from bot.domain.actions import SENT
from bot.domain.chat import NOTED
from bot.prompt import compose, notes, render

OPEN, CLOSE, COLON = r"[(（]", r"[)）]", r"[:：]"
MARK = r"(?:\*\*|__|[*_`])?"  # a model may make a heading of it
NAME = rf"[^\n()（）:：\[\]【】]{{1,{render.MAX_NAME}}}?"
WHO = rf"(?P<name>{NAME})\s?{OPEN}(?P<number>\d{{1,20}}){CLOSE}"
LINE = re.compile(rf"\s{{0,2}}{MARK}(?P<at>@?){WHO}{MARK}\s?{COLON}{MARK}[^\S\n]*")
LABELLED = re.compile(rf"\s*{MARK}[^\s:：]{{1,{render.MAX_NAME}}}{MARK}{COLON}")
FENCE = re.compile(r"\s{0,3}(?:```|~~~)")
ANNOUNCED = re.compile(
    r"[:：][*_]*\s*$|(?:[如以]下|下面)[。！!～~]?\s*$|^\s*(?:#{1,6}\s|\*\*[^*]+\*\*\s*$)"
)
"""A line that announces what stands below it: with a colon, in so many words, or as its heading."""
STAGE = re.compile(r"\s*(?:[(（].*[)）]|\*[^*]+\*)\s*$")  # what happens while nobody speaks

_name, _number = re.escape("{name}"), re.escape("{number}")
_who = re.escape(render.SPEAKER).replace(_name, rf"({NAME})").replace(_number, r"(\d+)")
_says = (
    re.escape(render.LINE.format(who=render.SPEAKER, text=""))
    .replace(_name, NAME)
    .replace(_number, r"\d+")
)
SAID_BY = re.compile(
    rf"(?:^(?:  )?(?={_says})|@|{re.escape(render.QUOTED.partition('{')[0])}){_who}", re.MULTILINE
)


_headings = (
    compose.QUESTION,
    compose.ADDED,
    compose.RECORD,
    compose.FORWARDED,
    compose.EARLIER,
    compose.PICTURES,
    notes.NOTES,
)
HEADINGS = "|".join(re.escape(one.partition("]")[0].strip("[]")) for one in _headings)
NUMBER = re.escape(compose.NUMBER).replace(r"\ ", r"\s*").replace(r"\{id\}", r"-?\w+")
HEADING = re.compile(
    rf"\s{{0,2}}{MARK}[\[［【](?:{HEADINGS})[^\]］】\n]{{0,40}}[\]］】]"
    rf"{MARK}(?P<number>{NUMBER})?[^\S\n]*"
)
LABEL = re.compile(r"[\[［【][^\]］】\n]{1,20}[\]］】]")
PICTURES = re.compile(re.escape(compose.PICTURES.strip()) + r"[^\n]*")

_before, _between, _after = (
    re.escape(part.strip()) for part in re.split(r"\{who\}|\{words\}", render.QUOTED)
)
_quote = (
    rf"(?:[\[［]{_before[2:]}\s*(?!\s){NAME}(?:{OPEN}\d+{CLOSE})?\s*{_between}.{{0,400}}?{_after}"
    rf"|{re.escape(render.QUOTED_ELSEWHERE.strip())})[^\S\n]*"
)
OUR_QUOTE = re.compile(_quote)
QUOTE_INSIDE = re.compile(rf"(^|[。！？!?…~～;；])[^\S\n]*{_quote}")
"""Elsewhere in a line it is what is spoken of."""
QUOTE = re.compile(
    rf"[\[［]{_before[2:]}(?!\s*\d{{1,3}}[\]］])(?:[\s:：][^\[\]［］\n]{{0,200}})?[\]］]"
    r"(?!\s*(?:参?见|[来出引摘]自|来源|《|https?:))[^\S\n]*"  # there it is a source
)

_part = re.escape(notes.PART).replace(r"\{number\}", r"\d+")
_fates = "|".join(
    (re.escape(notes.REFUSED).replace(r"\{reason\}", r"[^\n]*?"), notes.UNCONFIRMED, notes.QUEUED)
)
FATE = rf"(?:{_part})?(?:{_fates})"
ALL_SAID = re.compile(
    re.escape(notes.ALL_SAID[1:-1]).replace(r"\ ", r"\s*").join((OPEN + r"\s*", r"\s*" + CLOSE))
)
TRAILING_NOTE = re.compile(rf"\n?{OPEN}(?P<words>{FATE}){CLOSE}\s*$")
NOTE_LINE = re.compile(
    rf"\s*(?:{OPEN}{FATE}{CLOSE}|你上面的回答{FATE}|{notes.UNANSWERED}|{notes.BROKEN_OFF}"
    rf"|{notes.STOPPED}"
    rf"|{SENT}\s*\(message_id:[^\n)]*\))\s*"
)
BRACKETS = ("(", "（", "[", "［", "【")
PLAIN = ("你上面的回答", notes.UNANSWERED, notes.BROKEN_OFF, notes.STOPPED, SENT)
_inside = (
    notes.ALL_SAID,
    *notes.LEGACY,
    NOTED,
    notes.PART,
    notes.REFUSED,
    notes.UNCONFIRMED,
    notes.QUEUED,
)
SUSPECT = re.compile(
    rf"[(（\[［【]\s*(?:\d{{1,20}}\s?{CLOSE}|{HEADINGS}|{_before[2:]}|"
    + "|".join(re.escape(one.lstrip("(")[:2]) for one in _inside) + ")"
)  # fmt: skip
"""One of these is in every frame of ours, but for our own name in front."""
NARROW = str.maketrans("（）", "()")
STAND_INS = frozenset({*notes.LEGACY, notes.ALL_SAID, NOTED})
