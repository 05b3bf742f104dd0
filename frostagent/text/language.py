"""The two languages that people are spoken to in, and lines in both."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import IntEnum
from string import Formatter
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


@dataclass(frozen=True, slots=True)
class Phrase:
    """A line in both languages, with the same named placeholders in each (`{count}`).

    Raises ValueError for a missing language, for placeholders that differ, and for one without a
    name.
    """

    zh: str
    en: str

    def __post_init__(self) -> None:
        zh, en = _placeholders(self.zh), _placeholders(self.en)
        if not (self.zh and self.en):
            raise ValueError(f"one language is missing: {self.zh or self.en!r}")
        if zh != en:
            raise ValueError(f"placeholders differ: {sorted(zh ^ en)} in {self.en!r}")
        if not all(map(str.isidentifier, en)):
            raise ValueError(f"a placeholder has no name: {self.en!r}")

    @property
    def placeholders(self) -> frozenset[str]:
        """The names of the values that it takes."""
        return _placeholders(self.en)

    def format(self, language: Language, /, **values: object) -> str:
        """The line in one language, with these values; of a bilingual value, its text in it."""
        there = {name: text_in(language, value) for name, value in values.items()}
        return language.either(self.zh, self.en).format(**there)

    def fill(self, /, **values: object) -> Bilingual:
        """The line in both languages, for whoever does not know yet who reads it."""
        zh, en = (self.format(language, **values) for language in Language)
        return Bilingual(en, zh)


def text_in(language: Language, value: object) -> object:
    """A value as a reader of this language sees it: a text in both languages is one of the two,
    anything else stays what it is.
    """
    match value:
        case Phrase():
            return value.format(language)
        case Bilingual():
            return language.either(value.zh, str(value))
        case (str(), str()):
            return value[language]
        case _:
            return value


def _placeholders(text: str) -> frozenset[str]:
    return frozenset(name for _, name, _, _ in Formatter().parse(text) if name is not None)


Pair: TypeAlias = tuple[str, str]
"""The same in Chinese and in English."""

NotifyOwners: TypeAlias = Callable[[Pair], None]
"""Reaches the owners, who read one of the two."""


def fill_pair(pair: Pair, /, **values: object) -> Pair:
    """Both with these values in them; of a value that is a pair or bilingual itself, the one that
    fits.
    """
    zh, en = (
        {name: text_in(tongue, value) for name, value in values.items()} for tongue in Language
    )
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
