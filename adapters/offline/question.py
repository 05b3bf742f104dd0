"""The question in a request: the last thing a person said, its language, and what the tools have
answered since.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import takewhile
from typing import Any, Literal, TypeAlias

Json: TypeAlias = dict[str, Any]
Language: TypeAlias = Literal["zh", "en"]

CJK = re.compile(r"[\u3400-\u9fff]")
SAID = re.compile(  # name#3: text, name#3 ↩other#1「words」: text
    r"(?=\S)[^\n]*?#\d++(?: ↩[^\n]*?(?:#\d++|我|me)(?:「[^\n」]*」)?)?: ?(.*)"
)
MENTION = re.compile(r"@(?:[^\s@()#]+#\d+|[A-Za-z0-9_.-]+|\S+)")
# what the prompt adds to somebody's words: a quotation, or that there are none
AROUND = re.compile(r"\[(?:引用|quoting) [^\n]*?」\] |\(没有文字\)|\(no text\)")
HANDLE = re.compile(r"\[[^\[\]\n]{1,20} ([ifav]\d{1,6})\b[^\[\]\n]*\]")
ERROR = re.compile(r"error\b", re.IGNORECASE)
CODE = re.compile(r"\[([A-Z][A-Z_]+)\]\s*$")


@dataclass(frozen=True, slots=True)
class DemoQuestion:
    """The words asked, without mentions; empty for a bare mention. `handle` is the short name of
    the latest thing around it that can be looked at, as in `[图片 i7]`; empty where there is none.
    """

    text: str
    language: Language
    handle: str = ""


@dataclass(frozen=True, slots=True)
class Result:
    """A tool's answer: which tool, asked with what, in which words; `code` names the kind of
    an error.
    """

    name: str
    arguments: Json
    text: str
    failed: bool = False
    code: str = ""


def read_question(messages: Sequence[Json]) -> DemoQuestion:
    """The last thing a person said.

    A message holds a line `name#2: text` for each person who spoke, further lines of one indented
    by two spaces: the last of them asks. Plain text is taken whole.
    """
    whole = next(
        (read_text(message) for message in reversed(messages) if message.get("role") == "user"), ""
    )
    asked = MENTION.sub(" ", AROUND.sub("", _last_said(whole))).strip()
    around = "".join(
        map(read_text, messages)
    )  # a bare mention is answered in the language spoken here
    handles = HANDLE.findall(whole)
    language: Language = "zh" if CJK.search(asked or around) else "en"
    return DemoQuestion(asked, language, handles[-1] if handles else "")


def _last_said(text: str) -> str:
    lines = text.split("\n")
    for index in reversed(range(len(lines))):
        if match := SAID.match(lines[index]):
            further = takewhile(lambda line: line.startswith("  "), lines[index + 1 :])
            return "\n".join([match[1], *(line.removeprefix("  ") for line in further)])
    return text


def read_results(messages: Sequence[Json]) -> list[Result]:
    """The tools' answers since the last thing a person said, in order."""
    last = max(
        (index for index, message in enumerate(messages) if message.get("role") == "user"),
        default=-1,
    )
    asked: dict[str, tuple[str, Json]] = {}
    results: list[Result] = []
    for message in messages[last + 1 :]:
        for call in message.get("tool_calls") or ():
            match call:
                case {"id": str(call_id), "function": {"name": str(name), "arguments": str(raw)}}:
                    asked[call_id] = (name, _read_arguments(raw))
                case _:
                    pass  # nobody's: its result will be nobody's too
        if message.get("role") == "tool":
            name, arguments = asked.get(message.get("tool_call_id", ""), ("", {}))
            results.append(_read_result(name, arguments, read_text(message).strip()))
    return results


def _read_result(name: str, arguments: Json, text: str) -> Result:
    if not ERROR.match(text):
        return Result(name, arguments, text)
    code = CODE.search(text)
    return Result(name, arguments, text, failed=True, code=code[1] if code else "")


def _read_arguments(text: str) -> Json:
    try:
        arguments = json.loads(text)
    except ValueError:  # not every model that wrote into this history wrote JSON
        return {}
    return arguments if isinstance(arguments, dict) else {}


def read_text(message: Json) -> str:
    """The words of a message whose content is text, nothing, or a list of parts."""
    match message.get("content"):
        case str(text):
            return text
        case list(parts):
            return "\n".join(
                str(part.get("text", "")) for part in parts if part.get("type") == "text"
            )
        case _:
            return ""
