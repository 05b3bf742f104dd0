"""The two languages that the service speaks of its own accord, and lines in both."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Final

from frostagent.text.language import Bilingual, Pair, fill_pair


def in_chinese(text: str) -> str:
    """Its Chinese; the text itself where it has none."""
    return text.zh if isinstance(text, Bilingual) else text


MORE: Final = ("{them}，还有 {count}", "{them}, and {count} more")


def join_pairs(each: Sequence[Pair], *, most: int = 10, measure: str = "个") -> Pair:
    """All of them in one line; those beyond the first are counted, in Chinese by this measure."""
    them = "、".join(zh for zh, _ in each[:most]), ", ".join(en for _, en in each[:most])
    if len(each) <= most:
        return them
    more = str(len(each) - most)
    return fill_pair(MORE, them=them, count=(f"{more} {measure}", more))


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
