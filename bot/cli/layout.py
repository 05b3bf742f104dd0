"""Layout of terminal text in columns and wrapped lines. A Chinese character is two columns wide."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Final
from unicodedata import east_asian_width

from adapters.logs.output import UNSAFE
from bot.core.language import Bilingual, Language, text_in

UNIT: Final = re.compile(
    r"\s+|[（“《]*(?:[\u2e80-\u9fff]|[^\s\u2e80-\u9fff（）“”《》，。；：、！？]+)[）”》，。；：、！？]*|\S"
)
"""An unbreakable unit: a word or one Chinese character, with the punctuation around it."""


def width_of(text: str) -> int:
    """The text's width in columns."""
    return sum(2 if east_asian_width(letter) in "WF" else 1 for letter in text)


def columns(rows: Sequence[Sequence[str]]) -> Bilingual:
    """The rows as lines, each column as wide as its widest cell. Control characters are escaped."""
    return Bilingual(_columns(rows, Language.ENGLISH), _columns(rows, Language.CHINESE))


def _columns(rows: Sequence[Sequence[str]], language: Language) -> str:
    safe = [[text_in(language, cell).translate(UNSAFE) for cell in row] for row in rows]
    widths = [max(map(width_of, column)) for column in zip(*safe, strict=True)]
    return "\n".join("  ".join(map(pad, row, widths)).rstrip() for row in safe)


def joined(texts: Iterable[str], en: str = "\n", zh: str = "") -> Bilingual:
    """The texts joined by `en`; in Chinese by `zh` if that is set."""
    each = list(texts)
    return Bilingual(en.join(each), (zh or en).join(text_in(Language.CHINESE, one) for one in each))


def pad(text: str, width: int) -> str:
    """The text padded with blanks to this many columns."""
    return text + " " * (width - width_of(text))


def wrap(text: str, width: int) -> list[str]:
    """The text in lines of at most `width` columns; a longer word gets its own line."""
    lines, line = [], ""
    for unit in UNIT.findall(text):
        if line and width_of(line + unit.rstrip()) > width:
            lines.append(line.rstrip())
            line = ""
        line += unit if line else unit.lstrip()
    return [*lines, line.rstrip()] if line else lines
