"""Who is in a prompt, read back from its frame. Pure."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from functools import cached_property

from msgspec import Struct

from bot.domain.chat import Message, UserMessage
from bot.policy.cq_codes import are_spoken_of
from bot.prompt import marks

NUMBER = re.compile(rf"{marks.HASH}(\d+)")
ADDRESS = re.compile(r"://[^\s()（）「」，。]*$")


class People(Struct, frozen=True, dict=True):
    """Who is in a prompt: names, folded, with their numbers there; accounts where it has them."""

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
        return frozenset(name_key(name) for name, _, _ in self._found)

    @cached_property
    def numbers(self) -> frozenset[str]:
        """Their accounts, as rounds of older versions name them."""
        return frozenset(account for _, _, account in self._found if account)

    @cached_property
    def speak_of_codes(self) -> bool:
        """Whether one of them speaks of CQ codes in what is answered now, rather than in an earlier
        round: the answer may explain them.
        """
        said = [one.text for one in self.messages if isinstance(one, UserMessage)]
        return bool(said) and are_spoken_of(said[-1])

    def called(self, number: str) -> Collection[str]:
        """The names that somebody of this number has."""
        return self._called.get(number, ())

    def has_said(self, name: str, words: str) -> bool:
        """Whether a line of the prompt is these words of somebody of that name."""
        said, key = words.strip(), name_key(name)
        return any(
            (match := marks.LINE.match(line)) is not None
            and name_key(match["name"]) == key
            and line[match.end() :].strip() == said
            for one in self.messages
            if isinstance(one, UserMessage)
            for line in one.text.splitlines()
        )

    def without_numbers(self, text: str) -> str:
        """The text without the numbers behind their names, but for those it mentions, `@小明#2`,
        and those in an address.
        """

        def number_of(found: re.Match[str]) -> str:
            before = text[: found.start()].casefold()
            if ADDRESS.search(before):
                return found[0]
            for name in self.called(found[1]):
                if before.endswith(name) and not before.removesuffix(name).endswith("@"):
                    return ""
            return found[0]

        return NUMBER.sub(number_of, text) if any(map(text.__contains__, marks.SIGNS)) else text

    @cached_property
    def _called(self) -> dict[str, set[str]]:
        called: dict[str, set[str]] = {}
        for name, number, _ in self._found:
            if number:
                called.setdefault(number, set()).add(name_key(name))
        return called

    @cached_property
    def _found(self) -> set[tuple[str, str, str]]:
        return {
            found
            for one in self.messages
            if isinstance(one, UserMessage)
            for found in marks.SAID_BY.findall(one.text)
        }


def name_key(name: str) -> str:
    """The name as it is looked up: models put marks around it."""
    return (name.strip("*_` ") or "?").casefold()
