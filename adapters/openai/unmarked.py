"""Calls that a model writes in words of its own, without any mark that a server could read: in the
form of ReAct, as a tool's name before its arguments, in Python, or as the bare name of silence.

A tool's name is what makes them calls; the like of it with any other name is somebody's text. A
silence is never a quotation: nobody wants to read that nobody wants to say anything.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from json import JSONDecoder
from typing import Any

import orjson

from adapters.openai.names import read_name
from adapters.openai.written_calls import WORD, Written, only_text, read_python
from bot.domain.chat import ToolSpec

SILENCE = "stay_silent"
SILENT = r"(?i:stay_silent|no_reply)(?:\(\))?"
OPEN = r"[\[【(（<「\"'“*_]"
CLOSE = r"[\]】)）>」\"'”*_/.。!]"
ALONE = rf"{OPEN}{{0,3}}{SILENT}{CLOSE}{{0,4}}(?:</{SILENT}>)?"
SAID = r"[\n。.!?！？…)）”\"~]\n"  # the end of a sentence: a list of names is an answer

# Where such a call may begin; to be used with re.MULTILINE.
BEGINNING = (
    rf"(?P<action>^[ \t*]*(?:Action|✿FUNCTION✿)[ \t*]*[:：][ \t*`]*(?P<acted>{WORD}))"
    rf"|(?P<named>^[ \t]*(?P<called>{WORD})[ \t]*+\(?[ \t]*+(?=\{{\s*(?:[\"'}}]|\Z)))"
    rf"|(?P<silence>\A\s*(?:{ALONE}[ \t]*$|[\[【(（<](?P<spoken>{SILENT})[\]】)）>])"
    rf"|(?<={SAID}){ALONE}(?=\s*(?:\Z|<[|｜/])))"
)
SILENT_WHOLE = re.compile(rf"`{{0,3}}\n?{ALONE}\n?`{{0,3}}")
PYTHON = re.compile(rf"\[?\s*{WORD}\((?!\s*\{{).*\)\s*\]?", re.DOTALL)
ENDING = r"(?:</s>|<[|｜][\w▁]{1,40}[|｜]>)"  # that ends an answer
ENDINGS = re.compile(rf"(?:{ENDING}\s{{0,8}}){{1,4}}\Z")
MAX_PYTHON = 4096  # characters of a text that is looked at as Python
INPUT = re.compile(r"[ \t*`]*+\n\s*+(?:\**(?:Action[ _]?Input|✿ARGS✿)[ \t*]*[:：][ \t*]*+|(?=\{))")
FENCE = re.compile(r"\s*+(?:```(?:json)?\s*+|`)")
END = re.compile(r"[ \t]*+\)?[ \t]*+(?:\s*+```|`)?")
LINE = re.compile(r".*")
THOUGHT = re.compile(r"\s*+\**(?:Thought|Question)\**\s*[:：]")
ANSWERED = (
    r"\s*+\**(?:Observation|Thought|Action|Final Answer|✿(?:RESULT|RETURN|FUNCTION)✿)\**\s*[:：]"
)
GOES_ON = re.compile(ANSWERED)
# A line of prose may end behind a name; behind that of silence there is none.
BESIDE = re.compile(
    r"(?=\()|[ \t*`]*+(?=[\[{]"
    rf"|(?:\s*+{ENDING}){{0,4}}\s*+\Z|\n(?:{ANSWERED}|\s*+(?:```(?:json)?\s*+|`)\(?\{{))"
)
BARE = re.compile(r"[ \t*`]*+$", re.MULTILINE)
ASKED = "action:"  # whoever asks how that is written is answered
NOTHING = frozenset({"", "none", "null", "{}"})
JSON = JSONDecoder()


@dataclass(frozen=True, slots=True)
class Unmarked:
    """Such a call from `start` to `end`; `calls` is None where its arguments cannot be read, and
    it is not `is_closed` where the text ends before it does, or goes on as if it had been answered.

    Who wrote its `sign` is told of it, where it has one: in place of the call itself.
    """

    start: int
    end: int
    calls: Written | None
    is_closed: bool = True
    sign: str | None = None


def without_tokens(text: str) -> str:
    """The text without the tokens of a template that end it, and without blanks around it."""
    text = text.strip()
    return ENDINGS.sub("", text, count=1).strip() if text.endswith(">") else text


def read_whole(text: str, tools: Mapping[str, ToolSpec]) -> Unmarked | None:
    """What the text is where it is nothing else: silence, or a line of Python."""
    words = without_tokens(text)
    if SILENT_WHOLE.fullmatch(words):
        return Unmarked(0, len(text), [(SILENCE, {})], sign="")
    if words.endswith((")", ")]")) and len(words) <= MAX_PYTHON and PYTHON.fullmatch(words):
        calls = read_python(words, tools)
        return Unmarked(0, len(text), calls) if calls else None
    return None


def read_found(
    text: str, found: re.Match[str], names: Collection[str], tools: Mapping[str, ToolSpec]
) -> Unmarked | None:
    """The call that so begins, by one of these `names`; None where it is none."""
    if found["silence"]:
        return Unmarked(found.start(), found.end(), [(SILENCE, {})], sign=found["spoken"] or "")
    known = {name: name for name in (*names, *tools)}
    name = read_name(found["acted"] or found["called"], known)
    if found["acted"] and re.fullmatch(SILENT, name):
        name = SILENCE
    elif name not in known:
        return None
    return (_read_action if found["acted"] else _read_named)(text, found, name, tools.get(name))


def _read_named(text: str, found: re.Match[str], name: str, _: ToolSpec | None) -> Unmarked:
    arguments, end = _json_at(text, found.end())
    calls = None if arguments is None else [(name, arguments)]
    is_closed = arguments is not None
    return Unmarked(found.start(), _past(END, text, end), calls, is_closed)


def _read_action(
    text: str, found: re.Match[str], name: str, tool: ToolSpec | None
) -> Unmarked | None:
    given = INPUT.match(text, found.end())
    beside = given or BESIDE.match(text, found.end())
    if name == SILENCE:
        beside = beside or BARE.match(text, found.end())
    if beside is None:
        return None  # prose
    at = _past(FENCE, text, beside.end())
    begin = at + text.startswith("({", at)
    if text.startswith("{", begin):
        arguments, end = _json_at(text, begin)
    else:
        end = _past(LINE, text, at)
        words = without_tokens(text[at:end]).strip(" \t\r\"'`*")
        if not given:
            words = words.removeprefix("[").removesuffix("]")
        arguments = _only(words, tool) if given or words[:1] != "(" else None
    end = _past(END, text, end)
    is_closed = not GOES_ON.match(text, end)
    start = 0 if THOUGHT.match(text) else found.start()
    return Unmarked(
        start,
        end if is_closed else len(text),
        [(name, arguments)] if is_closed and arguments is not None else None,
        is_closed,
        sign=ASKED if text[:start].strip() else text[found.start() : end],
    )


def _json_at(text: str, at: int) -> tuple[dict[str, Any] | None, int]:
    """The object that begins here, and its end; None, and that of the text, where it has none."""
    try:
        end = JSON.raw_decode(text, at)[1]
        return orjson.loads(text[at:end]), end
    except (ValueError, RecursionError):
        return None, len(text)


def _only(words: str, tool: ToolSpec | None) -> dict[str, Any] | None:
    """Words that are given to a tool which takes one text."""
    if words.lower() in NOTHING:
        return {}
    return only_text(words, tool)


def _past(pattern: re.Pattern[str], text: str, at: int) -> int:
    found = pattern.match(text, at)
    return found.end() if found else at
