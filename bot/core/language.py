"""The service's two languages, and the catalogue of its bilingual phrases, by key."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from string import Formatter
from typing import Final, Self, TypeAlias

from msgspec import Struct

CLASS_NAME: Final = re.compile(r" ?[(（][A-Z]\w+[)）]$")


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


def plain_words(error: BaseException) -> Bilingual:
    """What was wrong, without the name of an error's class behind it, which is for logs."""
    return text_of(error).each(lambda text: CLASS_NAME.sub("", text))


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


# --- the catalogue --------------------------------------------------------------------------------


class Catalogue(Mapping[str, Phrase]):
    """All phrases by `slice.name`. Each slice registers its own on import."""

    def __init__(self) -> None:
        self._phrases: dict[str, Phrase] = {}
        self._registered: set[int] = set()  # so that another slice may import them

    def register(self, slice_name: str, namespace: Mapping[str, object]) -> None:
        """Add the phrases of a namespace, such as a module's `globals()`, including those in its
        tables. Phrases already registered by another slice are skipped. Raises ValueError for a key
        that is taken.
        """
        for key, phrase in _phrases_in(slice_name, namespace):
            if id(phrase) in self._registered:
                continue
            if key in self._phrases:
                raise ValueError(f"two phrases have the key {key}")
            self._phrases[key] = phrase
            self._registered.add(id(phrase))

    def __getitem__(self, key: str) -> Phrase:
        return self._phrases[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._phrases)

    def __len__(self) -> int:
        return len(self._phrases)


def _phrases_in(key: str, value: object) -> Iterator[tuple[str, Phrase]]:
    match value:
        case Phrase():
            yield key, value
        case Catalogue():
            pass
        case Mapping():
            for name, one in value.items():
                yield from _phrases_in(f"{key}.{name}", one)
        case tuple() | list():
            for place, one in enumerate(value):
                yield from _phrases_in(f"{key}.{place}", one)
        case Struct():
            for name in value.__struct_fields__:
                yield from _phrases_in(f"{key}.{name}", getattr(value, name))
        case _:
            pass


CATALOGUE: Final = Catalogue()

MORE: Final = Phrase("{them}，还有 {count} 个", "{them}, and {count} more")
MORE_PEOPLE: Final = Phrase("{them}，还有 {count} 位", "{them}, and {count} more")
CATALOGUE.register(__name__, globals())


def join_lines(each: Sequence[str], *, most: int = 10, more: Phrase = MORE) -> Bilingual:
    """All items in one line; those beyond the first `most` are counted, in the words of `more`."""
    zh, en = ([text_in(language, one) for one in each[:most]] for language in Language)
    them = Bilingual(", ".join(en), "、".join(zh))
    return them if len(each) <= most else more.fill(them=them, count=len(each) - most)
