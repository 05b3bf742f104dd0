"""Sentences that one part of the bot says in English, told in another language by another. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping


class Sentences:
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
