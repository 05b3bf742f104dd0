"""Reads a request: a person's last question, its language, and the tool results since."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterator, Sequence
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
# added by the prompt: a quotation, or a note that there is no text
QUOTED_OR_WORDLESS = re.compile(r"\[(?:引用|quoting) [^\n]*?」\] |\(没有文字\)|\(no text\)")
NAMED = re.compile(r"\[[^\[\]\n]{1,60}\]")
"""A placeholder in the prompt's own language: `[图片 i7]`."""
HANDLE = re.compile(r"\[[^\[\]\n]{1,20} ([ifav]\d{1,6})\b[^\[\]\n]*\]")
TODAY = re.compile(r"^\[[^\[\]\n]{1,20}\] (\d{4}-\d{2}-\d{2}) ", re.MULTILINE)
LINKS = re.compile(r"^\[(?:涉及的链接|Links meant)\] ((?:http|www)\S+)", re.MULTILINE)
ERROR = re.compile(r"error\b", re.IGNORECASE)
CODE = re.compile(r"\[([A-Z][A-Z_]+)\]\s*$")
OF_RESULTS = "(pictures from the results of: "  # the beginning of a message with images from tools
SIZES = re.compile(rb"\xff[\xc0-\xc3]..\x08(..)(..)", re.DOTALL)
JPEG_HEAD = 16_384  # base64 characters that contain a JPEG's size


@dataclass(frozen=True, slots=True)
class DemoQuestion:
    """The question's text without mentions; empty if there is none. `handle` is the short name of
    the latest attachment around it, as in `[图片 i7]`; empty if there is none. `pictures` are the
    sizes in pixels (width, height; 0 if unknown) of the images shown with the question and by tools
    since. `today` is the date in the prompt, as 2026-03-14; empty if there is none. `link` is a URL
    that the question may be about, or empty.
    """

    text: str
    language: Language
    handle: str = ""
    pictures: tuple[tuple[int, int], ...] = ()
    today: str = ""
    link: str = ""


@dataclass(frozen=True, slots=True)
class Result:
    """A tool's result with its name and arguments; `code` names the kind of an error."""

    name: str
    arguments: Json
    text: str
    failed: bool = False
    code: str = ""


def read_question(messages: Sequence[Json]) -> DemoQuestion:
    """Return the last question of a person.

    A message holds a line `name#2: text` per speaker, further lines indented by two spaces; the
    last speaker asks. Plain text is taken whole.
    """
    at = _asked_at(messages)
    whole = read_text(messages[at]) if at >= 0 else ""
    asked = _words(whole)
    # without text, use the language of earlier questions, else that of the transcript
    before = (_words(read_text(one)) for one in reversed(messages) if _asks(one))
    spoken = next(filter(None, before), "") or "".join(map(read_text, messages))
    handles = HANDLE.findall(whole)
    language: Language = "zh" if CJK.search(NAMED.sub("", asked or spoken)) else "en"
    pictures = tuple(size for one in messages[max(at, 0) :] for size in _pictures(one))
    days = TODAY.findall(whole)
    handle = handles[-1] if handles else ""
    today, links = days[-1] if days else "", LINKS.findall(whole)
    return DemoQuestion(asked, language, handle, pictures, today, links[-1] if links else "")


def _asks(message: Json) -> bool:
    """Whether a person said this, and not a tool."""
    return message.get("role") == "user" and not read_text(message).startswith(OF_RESULTS)


def _asked_at(messages: Sequence[Json]) -> int:
    """The index of a person's last message; -1 if there is none."""
    return max((index for index, message in enumerate(messages) if _asks(message)), default=-1)


def _words(whole: str) -> str:
    """The asker's text; empty if there are only placeholders."""
    said = MENTION.sub(" ", QUOTED_OR_WORDLESS.sub("", _last_said(whole))).strip()
    return said if NAMED.sub("", said).strip() else ""


def _pictures(message: Json) -> Iterator[tuple[int, int]]:
    content = message.get("content")
    for part in content if isinstance(content, list) else ():
        match part:
            case {"type": "image_url", "image_url": {"url": str(url)}}:
                yield _size_of(url)
            case _:
                pass


def _size_of(url: str) -> tuple[int, int]:
    """Width and height of a JPEG in a data URL; 0 and 0 for anything else."""
    _, is_data, data = url.partition(";base64,")
    try:
        found = SIZES.search(base64.b64decode(data[:JPEG_HEAD])) if is_data else None
    except ValueError:
        found = None
    return (int.from_bytes(found[2]), int.from_bytes(found[1])) if found else (0, 0)


def _last_said(text: str) -> str:
    lines = text.split("\n")
    for index in reversed(range(len(lines))):
        if match := SAID.match(lines[index]):
            further = takewhile(lambda line: line.startswith("  "), lines[index + 1 :])
            return "\n".join([match[1], *(line.removeprefix("  ") for line in further)])
    return text


def read_results(messages: Sequence[Json]) -> list[Result]:
    """The tool results since a person's last message, in order."""
    last = _asked_at(messages)
    asked: dict[str, tuple[str, Json]] = {}
    results: list[Result] = []
    for message in messages[last + 1 :]:
        for call in message.get("tool_calls") or ():
            match call:
                case {"id": str(call_id), "function": {"name": str(name), "arguments": str(raw)}}:
                    asked[call_id] = (name, _read_arguments(raw))
                case _:
                    pass  # an unknown call; its result will be unknown too
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
    except ValueError:  # an earlier model may have written invalid JSON
        return {}
    return arguments if isinstance(arguments, dict) else {}


def read_text(message: Json) -> str:
    """The text of a message, whose content is text, nothing, or a list of parts."""
    match message.get("content"):
        case str(text):
            return text
        case list(parts):
            return "\n".join(
                str(part.get("text", "")) for part in parts if part.get("type") == "text"
            )
        case _:
            return ""
