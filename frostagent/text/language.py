"""The two languages that people are spoken to in, and lines in both."""

from __future__ import annotations

from collections.abc import Callable
from enum import IntEnum
from typing import Self, TypeAlias


class Language(IntEnum):
    """One of two: of a pair of lines, Chinese and English, `PAIR[tongue]` is the one in it."""

    CHINESE = 0
    ENGLISH = 1

    def either(self, zh: str, en: str) -> str:
        """The one of the two that is in it."""
        return (zh, en)[self]


class Bilingual(str):
    """An English text that brings its Chinese. A text that is made of it by `+` or an f-string is
    English alone.
    """

    __slots__ = ("zh",)
    zh: str

    def __new__(cls, en: str, zh: str) -> Self:
        """Both."""
        made = super().__new__(cls, en)
        made.zh = zh
        return made

    def __reduce__(self) -> tuple[type[Bilingual], tuple[str, str]]:
        """What a copy is made of."""
        return Bilingual, (str(self), self.zh)

    def each(self, change: Callable[[str], str]) -> Bilingual:
        """Both after the same change."""
        return Bilingual(change(str(self)), change(self.zh))


Pair: TypeAlias = tuple[str, str]
"""The same in Chinese and in English."""

NotifyOwners: TypeAlias = Callable[[Pair], None]
"""Reaches the owners, who read one of the two."""


def fill_pair(pair: Pair, /, **values: object) -> Pair:
    """Both with these values in them; of a value that is a pair or bilingual itself, the one that
    fits.
    """
    zh, en = ({name: _in(tongue, value) for name, value in values.items()} for tongue in Language)
    return pair[0].format(**zh), pair[1].format(**en)


def text_of(error: BaseException) -> Bilingual:
    """What an error says: in both languages if it was raised with a bilingual text."""
    said = error.args[0] if error.args else ""
    return said if isinstance(said, Bilingual) else Bilingual(str(error), str(error))


def bilingual(line: Pair | str) -> Bilingual:
    """The English line with its Chinese; a text in one language is the same in both."""
    match line:
        case Bilingual():
            return line
        case str():
            return Bilingual(line, line)
        case zh, en:
            return Bilingual(en, zh)


def _in(tongue: Language, value: object) -> object:
    match value:
        case Bilingual():
            return tongue.either(value.zh, str(value))
        case tuple():
            return value[tongue]
        case _:
            return value
