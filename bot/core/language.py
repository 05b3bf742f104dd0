"""The catalogue of all that the service says in two languages, by key."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from msgspec import Struct

from frostagent.text.language import Bilingual, Language, Phrase, text_in


class Catalogue(Mapping[str, Phrase]):
    """Every phrase under `slice.name`. Each slice registers its own when it is loaded."""

    def __init__(self) -> None:
        self._phrases: dict[str, Phrase] = {}
        self._registered: set[int] = set()  # phrases that another slice may import

    def register(self, slice_name: str, namespace: Mapping[str, object]) -> None:
        """Add the phrases of a namespace, such as a module's `globals()`, also those in its tables;
        those that it imported from another slice stay that slice's. Raises ValueError for a key
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
    """All of them in one line; those beyond the first `most` are counted, as `more` says."""
    zh, en = ([text_in(language, one) for one in each[:most]] for language in Language)
    them = Bilingual(", ".join(en), "、".join(zh))
    return them if len(each) <= most else more.fill(them=them, count=len(each) - most)
