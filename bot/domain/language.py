"""The two languages that the service speaks of its own accord, and lines in both."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from enum import IntEnum
from typing import Final, Self, TypeAlias


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


def in_chinese(text: str) -> str:
    """Its Chinese; the text itself where it has none."""
    return text.zh if isinstance(text, Bilingual) else text


def text_of(error: BaseException) -> Bilingual:
    """What an error says: in both languages if it was raised with a bilingual text."""
    said = error.args[0] if error.args else ""
    return said if isinstance(said, Bilingual) else Bilingual(str(error), str(error))


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


MORE: Final = ("{them}，还有 {count}", "{them}, and {count} more")


def join_pairs(each: Sequence[Pair], *, most: int = 10, measure: str = "个") -> Pair:
    """All of them in one line; those beyond the first are counted, in Chinese by this measure."""
    them = "、".join(zh for zh, _ in each[:most]), ", ".join(en for _, en in each[:most])
    if len(each) <= most:
        return them
    more = str(len(each) - most)
    return fill_pair(MORE, them=them, count=(f"{more} {measure}", more))


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


class Translations:
    """Each of some sentences by the English one, whose `{}` are names and numbers, or sentences
    themselves: they stand in the other one's. The first that fits is told: what says more stands
    before what says less.
    """

    def __init__(self, told: Mapping[str, str]) -> None:
        self._shapes = tuple(
            (re.compile("(.*?)".join(map(re.escape, english.split("{}"))), re.DOTALL), said)
            for english, said in told.items()
        )

    def __call__(self, text: str) -> str:
        """The sentence in the other language; the English one where there is none."""
        for shape, said in self._shapes:
            if found := shape.fullmatch(text):
                return said.format(*map(self, found.groups()))
        return text
