"""The catalogue of the service's bilingual phrases, by key."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from msgspec import Struct

from frostagent.text.language import Bilingual, Language, Phrase, text_in


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
