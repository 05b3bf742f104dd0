"""The languages of the lines that the service says of its own accord."""

from __future__ import annotations

from collections.abc import Callable
from enum import IntEnum
from typing import TypeAlias


class Tongue(IntEnum):
    """One of two: of a pair of lines, Chinese and English, `PAIR[tongue]` is the one in it."""

    CHINESE = 0
    ENGLISH = 1

    def either(self, zh: str, en: str) -> str:
        """The one of the two that is in it."""
        return (zh, en)[self]


Pair: TypeAlias = tuple[str, str]
"""The same in Chinese and in English."""

Tell: TypeAlias = Callable[[Pair], None]
"""Reaches the owners, who read one of the two."""


def filled(pair: Pair, /, **values: object) -> Pair:
    """Both with these values in them; of a value that is a pair itself, the one that fits."""
    zh, en = ({name: _in(tongue, value) for name, value in values.items()} for tongue in Tongue)
    return pair[0].format(**zh), pair[1].format(**en)


def _in(tongue: Tongue, value: object) -> object:
    return value[tongue] if isinstance(value, tuple) else value
