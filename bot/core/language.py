"""The two languages that the service speaks of its own accord, and lines in both."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Final

from frostagent.text.language import Bilingual, Pair, fill_pair


def in_chinese(text: str) -> str:
    """Its Chinese; the text itself where it has none."""
    return text.zh if isinstance(text, Bilingual) else text


def text_of(error: BaseException) -> Bilingual:
    """What an error says: in both languages if it was raised with a bilingual text."""
    said = error.args[0] if error.args else ""
    return said if isinstance(said, Bilingual) else Bilingual(str(error), str(error))


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
