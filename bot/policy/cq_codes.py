"""CQ codes that a model writes into its text, such as `[CQ:at,qq=123]`: sent as what they mean if
that is allowed, else removed. Pure.

Models know them from other bots. Codes in Markdown code are quoted and stay; if someone asks about
CQ codes, all stay.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Final, TypeAlias

from bot.core.segments import Mention
from frostagent.types.speech import Face, Quote, Text

Code: TypeAlias = Face | Mention | Quote
Means: TypeAlias = Callable[[Code], Text | Code | None]
"""Return what is sent for a code, or None for nothing."""

CODE: Final = re.compile(r"\[CQ:([\w.-]+)((?:,[^\[\]]*)?)\]", re.IGNORECASE)
IN_CODE: Final = re.compile(r"(?P<fence>`{3,}|~{3,}).*?(?:(?P=fence)|\Z)|`[^`\n]+`", re.DOTALL)
TOPIC: Final = re.compile(r"\[CQ:|(?<![a-z])CQ ?(?:码|codes?\b)", re.IGNORECASE)
NUMBER: Final = re.compile(r"[0-9]{1,19}")
MESSAGE: Final = re.compile(r"-?[0-9]{1,19}")


def may_contain_codes(text: str) -> bool:
    """Whether the text may hold a code; nearly all texts hold none."""
    return "[CQ:" in text or "[cq:" in text


def mentions_codes(text: str) -> bool:
    return "cq" in text.casefold() and TOPIC.search(text) is not None


def strip_meaningless_codes(text: str) -> str:
    """Remove codes that may not be sent: media, mentions of everyone, unknown codes. Empty if only
    mentions and quotes are left.
    """
    if not may_contain_codes(text):
        return text
    parts = tuple(_parts(text))
    says = any(part.strip() and not isinstance(code, Mention | Quote) for part, code in parts)
    return "".join(part for part, _ in parts) if says else ""


def _parts(text: str) -> Iterator[tuple[str, Code | None]]:
    """Yield text, and codes with their meaning; drops meaningless ones, keeps Markdown code."""
    end = 0
    for spoken_of in (*IN_CODE.finditer(text), None):
        start, stop = spoken_of.span() if spoken_of else (len(text), len(text))
        for found in CODE.finditer(text, end, start):
            yield text[end : found.start()], None
            end = found.end()
            if (code := _code(found)) is not None:
                yield found[0], code
        yield text[end:stop], None
        end = stop


def replace_codes(text: str, means: Means, *, but: Collection[str] = ()) -> list[Text | Code]:
    """Replace the codes in a text by their meaning. A code that occurs in one of the texts in `but`
    is quoted and stays.
    """
    parts: list[Text | Code] = []
    words, end = "", 0
    for found in CODE.finditer(text):
        words += text[end : found.start()]
        end = found.end()
        if any(found[0] in one for one in but):
            words += found[0]
            continue
        code = _code(found)
        meant = None if code is None else means(code)
        if isinstance(meant, Text):
            words += meant.text
        elif meant is not None:
            parts += [Text(words), meant]
            after = text[end : end + 1]
            words = " " if isinstance(meant, Mention) and after and not after.isspace() else ""
    parts.append(Text(words + text[end:]))
    return [part for part in parts if not isinstance(part, Text) or part.text]


def _code(found: re.Match[str]) -> Code | None:
    given = _parameters(found[2])
    match found[1].lower():
        case "at" if NUMBER.fullmatch(given.get("qq", "")):
            return Mention(int(given["qq"]), given.get("name", ""))
        case "face" if NUMBER.fullmatch(given.get("id", "")):
            return Face(given["id"])
        case "reply" if MESSAGE.fullmatch(given.get("id", "")):
            return Quote(given["id"])
        case _:
            return None


def _parameters(text: str) -> Mapping[str, str]:
    pairs = (part.partition("=") for part in text.split(",") if part)
    return {key.strip().lower(): value.strip() for key, _, value in pairs}
