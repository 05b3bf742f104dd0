"""Marks of citation that a model's own service turns into links: to people they point nowhere.

They are cut, unless the answer has the list of sources that they point to. What they stand around
are words, and stay. In code they are an example, and what somebody wrote is a quotation of it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from adapters.openai.texts import CODE, end_of_code

SOURCES = (
    *("search", "news", "view", "fetch", "image", "file", "forecast", "finance", "sports"),
    *("product", "reddit", "academia", "maps", "business", "video", "msearch", "msg"),
)
KINDS = rf"(?:{'|'.join(SOURCES)})"
TURN = rf"turn\d+{KINDS}\d+(?:[A-Z]\d+(?:-[A-Z]?\d+)?)?"
"""What a service calls its sources by: `turn0search3`, `turn0file1L5-L9`."""

MARKS = (
    # between characters of private use: a kind, and what belongs to it
    r"\ue200(?P<marked>[^\ue200\ue201\n]{0,1000})(?:\ue201|\Z|(?=\n))",
    r"[\ue200-\ue206]",
    # the same without those characters
    rf"(?:(?:file)?(?:cite|navlist|nav)|(?<![A-Za-z])(?:image|i))(?:\d*{TURN})+(?:navlist)?",
    rf"[\[【(（]\s?{TURN}(?:\s?[,，、]\s?{TURN})*\s?[\]】)）]|(?<![A-Za-z0-9]){TURN}(?![A-Za-z0-9])",
    r"[\[【](?P<dagger>\d{1,3}(?::\d{1,3})?)†[^\]】\n]{1,200}[\]】]",
    r"[\[【]citations?\s?[:：]\s?(?P<cited>\d{1,3}(?:\s?[,，、-]\s?\d{1,3})*)[\]】]",
    r"\[\^(?P<raised>\d{1,3})\^\](?:\[\d{1,3}\])?",
    r"[\[【]ref_(?P<ref>\d{1,3})[\]】]",
    r":?contentReference\[oaicite:(?P<oaicite>\d{1,3})\](?:\{index=\d{1,3}\})?|[\[【]oaicite:\d{1,3}[\]】]",
    # around words, which stay
    r"</?co(?::\s?\d{1,3}(?:\s?,\s?\d{1,3})*)>|<cite\s+index=[^<>\n]{0,100}>|(?P<closed></cite>)",
    r"<grok:render\b[^<>\n]{0,300}>(?:(?!<grok:render).){0,600}?</grok:render>",
    r"</?grok:render\b[^<>\n]{0,300}>",
)  # fmt: skip
MARK = re.compile("|".join(f"(?:{mark})" for mark in MARKS), re.DOTALL)
WORTH = re.compile(
    rf"[\ue200-\ue206†]|turn\d+{KINDS}|citation|\[\^\d|[\[【]ref_|oaicite|<co:|<cite\s|<grok:"
)
"""Everything that can be found has one of these in it."""

SOURCE = re.compile(
    r"^[ \t>*-]{0,8}[\[【(（]?\^?(?:citation\s?[:：]\s?|ref_)?"
    rf"(?P<id>\d{{1,3}}(?::\d{{1,3}})?|{TURN})"
    r"(?:†[^\]】\n]{0,200})?\^?[\]】)）]?(?P<rest>[^\n]{0,1000})",
    re.MULTILINE,
)
HEADING = re.compile(
    r"^[\s#*【\[]{0,8}(?:参考(?:资料|文献|来源|链接)?|(?:信息|资料)?来源|引用|出处"
    r"|sources?|references?|citations?|links?)"
    r"[\s*】\]]{0,8}[:：]?[\s*]{0,8}$",
    re.MULTILINE | re.IGNORECASE,
)
ADDRESS = re.compile(r"https?://|www\.|\.(?:com|cn|org|net|pdf|docx?|txt|md)\b")
NUMBER = re.compile(r"\d+(?::\d+)?")
WORDS_KEPT = ("entity", "url", "link")  # kinds of marks that hold words of the answer
QUOTED = re.compile(r'"((?:[^"\\]|\\.){0,200})"')
AFTER = re.compile(r"[\s,.;:!?，。；：！？、)）\]】」”…]|\Z")


def cites(text: str) -> bool:
    """Whether a look is worth it."""
    return WORTH.search(text) is not None


def without_citations(text: str, given: Sequence[str] = ()) -> str:
    """The text without such marks; the same object where there are none. `given` is what others
    than the model said.
    """
    if not cites(text):
        return text
    listed = _listed(text)
    kept = ""
    at = 0
    for found in _marks(text):
        if _ids(found) & listed or any(found[0] in one for one in given):
            continue
        kept = _joined(kept, text[at : found.start()])
        if AFTER.match(text, found.end()):
            kept = kept.rstrip(" \t")
        kept += _words_of(found["marked"] or "")
        at = found.end()
    return _joined(kept, text[at:]).strip() if at else text


def _joined(before: str, after: str) -> str:
    """Both, with the blank that stood on either side of what was cut once."""
    return before + (after.lstrip(" \t") if before[-1:] in {" ", "\t"} else after)


def _marks(text: str) -> Iterator[re.Match[str]]:
    """The marks outside code."""
    at = 0
    code = CODE.search(text)
    cited = False
    while found := MARK.search(text, at):
        while code and code.start() < found.start():
            end = end_of_code(text, code)
            at = max(at, end)
            code = CODE.search(text, end)
        if found.start() < at:
            continue
        at = found.end()
        cited = cited or found[0].startswith("<cite")
        if found["closed"] is None or cited:
            yield found


def _listed(text: str) -> frozenset[str]:
    """What the sources are called that the text lists: by lines with an address, or under a heading
    that says so.
    """
    heading = HEADING.search(text)
    return frozenset(
        found["id"]
        for found in SOURCE.finditer(text)
        if ADDRESS.search(found["rest"]) or (heading and heading.end() <= found.start())
    )


def _ids(found: re.Match[str]) -> frozenset[str]:
    groups = ("dagger", "cited", "raised", "ref", "oaicite")
    said = next((found[name] for name in groups if found[name]), "")
    ids = NUMBER.findall(said) or re.findall(TURN, found[0])
    return frozenset(ids)


def _words_of(marked: str) -> str:
    """The words of the answer in a mark between characters of private use."""
    kind, *parts = marked.split("\ue202")
    if kind.strip() not in WORDS_KEPT or not parts:
        return ""
    quoted = QUOTED.findall(parts[0])
    if kind.strip() == "entity":
        return quoted[1] if len(quoted) > 1 else ""
    return parts[0] if not re.fullmatch(TURN, parts[0]) else ""
