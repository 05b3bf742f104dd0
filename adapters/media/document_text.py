"""What the readers of documents share: the text of bytes, and paragraphs up to a bound."""

from __future__ import annotations

import re
from typing import Final

from frostagent.text.visible_text import visible_text
from frostagent.types.errors import Lack, MediaError

MAX_TEXT: Final = 200_000  # characters of a document that are kept
LONGEST_FIELD: Final = 200  # characters of a title or an author
SEPARATOR: Final = 5  # characters added for each paragraph, which bounds the number of short ones
BLANK_LINES: Final = re.compile(r"^(?:[^\S\n]*\n)+")
DAY: Final = re.compile(r"\d{4}-\d{2}-\d{2}")
JOINER: Final = "\u200d"  # `visible_text` keeps it within an emoji only


class Paragraphs:
    """Collects the paragraphs of a document until there are `MAX_TEXT` characters. Then
    `is_full` is true, and the rest is left out.
    """

    def __init__(self) -> None:
        self.kept: list[str] = []
        self.is_full = False
        self._room = MAX_TEXT

    def add(self, paragraph: str) -> None:
        """Keep it, cut at the bound, unless it is blank. Leading blanks of its first line stay:
        they may be the indentation of a program.
        """
        text = BLANK_LINES.sub("", paragraph.rstrip())
        if not text or self.is_full:
            return
        if len(text) > self._room:
            text, self.is_full = text[: max(0, self._room)], True
        self._room -= len(text) + SEPARATOR
        if text:
            self.kept.append(text)


def one_line(text: object, longest: int = LONGEST_FIELD) -> str:
    """A field of a document as one line of what can be seen; empty for what is no text."""
    if not isinstance(text, str):
        return ""
    return " ".join(seen(text[: 10 * longest]).split())[:longest]


def day_of(moment: object) -> str:
    """The day of a moment in ISO 8601; empty for anything else."""
    found = DAY.match(one_line(moment))
    return found[0] if found else ""


def seen(text: str) -> str:
    """The text of a line without invisible characters, so that a soft hyphen parts no word. Tabs
    and other characters that are not printable become blanks.
    """
    shown = visible_text(text)
    if shown.isprintable():
        return shown
    return "".join(char if char.isprintable() or char == JOINER else " " for char in shown)


def as_text(data: bytes, charset: str = "") -> str:
    """The text in these bytes: by their byte order mark, else the named charset, else UTF-8, else
    GB 18030. What cannot be decoded becomes U+FFFD. Raises MediaError for bytes
    that are no text.
    """
    for mark, encoding in MARKS:
        if data.startswith(mark):
            return data.decode(encoding, "replace")
    names = [WIDER.get(charset.lower(), charset)] if charset else []
    for name in (*names, "utf-8", "gb18030"):
        try:
            return data.decode(name)
        except (UnicodeDecodeError, LookupError):
            continue
    try:
        text = data.decode(names[0] if names else "utf-8", "replace")
    except LookupError:
        text = data.decode("utf-8", "replace")
    if text.count("\ufffd") > len(text) // 10:
        raise MediaError("its letters cannot be read", Lack.NO_TEXT)
    return text


MARKS: Final = ((b"\xef\xbb\xbf", "utf-8-sig"), (b"\xff\xfe", "utf-16"), (b"\xfe\xff", "utf-16"))
WIDER: Final = {"gb2312": "gb18030", "gbk": "gb18030", "x-gbk": "gb18030", "iso-8859-1": "cp1252"}
"""Charsets that pages name, and what they really write in."""
