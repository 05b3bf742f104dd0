"""Who owns the bot, and which of them want to hear no alarms: 10001,10002:quiet."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Self

from config.values import Wrong, halved, names, qq_numbers, shown

QUIET = ":quiet"


class Owners(frozenset[int]):
    """The owners' QQ numbers; `quiet` are those of them who get no alarms. Frozen."""

    quiet: frozenset[int]

    def __new__(cls, owners: Iterable[int] = (), quiet: Iterable[int] = ()) -> Self:
        """They all, and the quiet ones among them."""
        made = super().__new__(cls, owners)
        made.quiet = frozenset(quiet)
        return made

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (frozenset(self), self.quiet)


def owners(value: object) -> Owners:
    """QQ numbers, each with `:quiet` behind it or without."""
    if isinstance(value, Owners):
        return value
    texts = [halved(text).casefold() for text in names(value)]
    quiet = [text.removesuffix(QUIET) for text in texts if text.endswith(QUIET)]
    if odd := next((text for text in texts if ":" in (text.removesuffix(QUIET) or ":")), ""):
        raise Wrong(f"{shown(odd)} is not an owner", "Write the numbers, as 10001,10002:quiet")
    return Owners(qq_numbers([text.removesuffix(QUIET) for text in texts]), qq_numbers(quiet))
