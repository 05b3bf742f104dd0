"""The two languages that people are spoken to in, and lines in both."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import IntEnum
from string import Formatter
from typing import Self, TypeAlias


class Language(IntEnum):
    """Chinese or English."""

    CHINESE = 0
    ENGLISH = 1

    def either(self, zh: str, en: str) -> str:
        """The one of the two that is in it."""
        return (zh, en)[self]


class Bilingual(str):
    """An English text that brings its Chinese: what errors and alerts carry to whoever knows the
    reader's language. A text that is made of it by `+` or an f-string is English alone.
    """

    __slots__ = ("en", "zh")
    en: str
    zh: str

    def __new__(cls, en: str, zh: str) -> Self:
        made = super().__new__(cls, en)
        made.en = en
        made.zh = zh
        return made

    def __reduce__(self) -> tuple[type[Bilingual], tuple[str, str]]:
        return Bilingual, (self.en, self.zh)

    def each(self, change: Callable[[str], str]) -> Bilingual:
        """Both after the same change."""
        return Bilingual(change(self.en), change(self.zh))


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

    def format(self, language: Language, /, **values: object) -> str:
        """The line in one language with these values, a value in both languages in the same one."""
        there = {name: _value_in(language, value) for name, value in values.items()}
        return language.either(self.zh, self.en).format(**there)

    def fill(self, /, **values: object) -> Bilingual:
        """The line in both languages with these values."""
        zh, en = (self.format(language, **values) for language in Language)
        return Bilingual(en, zh)


NotifyOwners: TypeAlias = Callable[[Bilingual], None]
"""Reaches the owners, who read one of the two languages."""


def text_in(language: Language, text: str) -> str:
    """The text in this language; one that is in one language only is what it is."""
    return language.either(text.zh, text.en) if isinstance(text, Bilingual) else text


def text_of(error: BaseException) -> Bilingual:
    """What an error says: in both languages if it was raised with a bilingual text."""
    said = error.args[0] if error.args else ""
    return said if isinstance(said, Bilingual) else bilingual(str(error))


def bilingual(text: Phrase | str) -> Bilingual:
    """The text in both languages; a text in one language is the same in both."""
    match text:
        case Phrase():
            return text.fill()
        case Bilingual():
            return text
        case str():
            return Bilingual(text, text)


def _value_in(language: Language, value: object) -> object:
    match value:
        case Phrase():
            return value.format(language)
        case str():
            return text_in(language, value)
        case _:
            return value


def _placeholders(text: str) -> frozenset[str]:
    return frozenset(name for _, name, _, _ in Formatter().parse(text) if name is not None)
