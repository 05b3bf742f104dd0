"""Who is in a prompt, read back from its frame. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

from bot.domain.chat import Message, UserMessage
from bot.prompt import marks


@dataclass(frozen=True)
class People:
    """Who is in a prompt: names, folded, and QQ numbers."""

    messages: tuple[Message, ...] = ()

    @classmethod
    def of(cls, messages: Iterable[Message]) -> People:
        """Those whose lines, mentions or quotations stand in it; they are looked for when somebody
        asks.
        """
        return cls(tuple(messages))

    @cached_property
    def names(self) -> frozenset[str]:
        """Their names, as `name_key` makes them."""
        return frozenset(name_key(name) for name, _ in self._found)

    @cached_property
    def numbers(self) -> frozenset[str]:
        """Their accounts."""
        return frozenset(number for _, number in self._found)

    @cached_property
    def _found(self) -> set[tuple[str, str]]:
        return {
            pair
            for one in self.messages
            if isinstance(one, UserMessage)
            for pair in marks.SAID_BY.findall(one.text)
        }


def name_key(name: str) -> str:
    """The name as it is looked up: models put marks around it."""
    return (name.strip("*_` ") or "?").casefold()
