"""The catalogue of all that the service says in two languages, by key."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from frostagent.text.language import Bilingual, Pair, Phrase, fill_pair


def in_chinese(text: str) -> str:
    """Its Chinese; the text itself where it has none."""
    return text.zh if isinstance(text, Bilingual) else text


class Catalogue(Mapping[str, Phrase]):
    """Every phrase under `slice.name`. Each slice registers its own when it is loaded."""

    def __init__(self) -> None:
        self._phrases: dict[str, Phrase] = {}
        self._registered: set[int] = set()  # phrases that another slice may import

    def register(self, slice_name: str, namespace: Mapping[str, object]) -> None:
        """Add the phrases of a namespace, such as a module's `globals()`; those that it imported
        from another slice stay that slice's. Raises ValueError for a key that is taken.
        """
        for name, phrase in namespace.items():
            if not isinstance(phrase, Phrase) or id(phrase) in self._registered:
                continue
            key = f"{slice_name}.{name}"
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


CATALOGUE: Final = Catalogue()

MORE: Final = ("{them}，还有 {count}", "{them}, and {count} more")


def join_pairs(each: Sequence[Pair], *, most: int = 10, measure: str = "个") -> Pair:
    """All of them in one line; those beyond the first are counted, in Chinese by this measure."""
    them = "、".join(zh for zh, _ in each[:most]), ", ".join(en for _, en in each[:most])
    if len(each) <= most:
        return them
    more = str(len(each) - most)
    return fill_pair(MORE, them=them, count=(f"{more} {measure}", more))
