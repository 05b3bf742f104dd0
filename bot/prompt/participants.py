"""The people in a prompt, read back from its frame. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable
from functools import cached_property, lru_cache

from msgspec import Struct

from bot.policy.cq_codes import mentions_codes
from bot.prompt import frame_patterns
from bot.prompt.prompt_language import WORDINGS
from bot.prompt.render import NAMELESS
from frostagent.types.messages import Message, ToolMessage, UserMessage
from frostagent.types.traits import Audience

NUMBER = re.compile(rf"{frame_patterns.HASH}(\d+)")
ADDRESS = re.compile(r"://[^\s()（）「」，。]*$")


class Participants(Struct, frozen=True, dict=True):
    """The people in a prompt: case-folded names, numbers, and accounts if the prompt holds any."""

    messages: tuple[Message, ...] = ()

    @classmethod
    def of(cls, messages: Iterable[Message]) -> Participants:
        """The people whose lines, mentions or quotations are in these messages; parsed lazily."""
        return cls(tuple(messages))

    @cached_property
    def names(self) -> frozenset[str]:
        """The names, as `name_key` returns them."""
        return frozenset(name_key(name) for name, _, _ in self._found)

    @cached_property
    def numbers(self) -> frozenset[str]:
        """Their accounts, which rounds of older versions contain."""
        return frozenset(account for _, _, account in self._found if account)

    @cached_property
    def speak_of_codes(self) -> bool:
        """Whether the current question mentions CQ codes, so that the answer may explain them."""
        said = (one.text for one in reversed(self.messages) if isinstance(one, UserMessage))
        return mentions_codes(next(said, ""))

    def called(self, number: str) -> Collection[str]:
        return self._called.get(number, ())

    def has_said(self, name: str, words: str) -> bool:
        """Whether someone of this name said exactly these words in the prompt."""
        said, key = words.strip(), name_key(name)
        return any(
            (match := frame_patterns.LINE.match(line)) is not None
            and name_key(match["name"]) == key
            and line[match.end() :].strip() == said
            for one in self.messages
            if isinstance(one, UserMessage)
            for line in one.text.splitlines()
        )

    def without_numbers(self, text: str) -> str:
        """Remove the numbers after their names, except in mentions (`@小明#2`) and URLs."""

        def number_of(found: re.Match[str]) -> str:
            before = text[: found.start()].casefold()
            if ADDRESS.search(before):
                return found[0]
            for name in self.called(found[1]):
                if before.endswith(name) and not before.removesuffix(name).endswith("@"):
                    return ""
            return found[0]

        return (
            NUMBER.sub(number_of, text)
            if any(map(text.__contains__, frame_patterns.SIGNS))
            else text
        )

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
            for found in frame_patterns.SAID_BY.findall(one.text)
        }


def name_key(name: str) -> str:
    """The name as a lookup key, without the marks that models add."""
    return (name.strip("*_` ") or "?").casefold()


NOBODY_KNOWS = 0
"""The unknown author of forwarded content, a card, a file name or a summarized round; also a person
whose number cannot be looked up.
"""

NAME = r"([^()#:\n]{1,24})#(\d{1,19})"
SPEAKER = re.compile(rf"^ *{NAME}(?: ↩[^\n]*?)?: ", re.MULTILINE)
REPLIED = re.compile(rf"↩{NAME}")
_quotes = "|".join(re.escape(words.quoted.partition("{who}")[0]) for words in WORDINGS)
QUOTED = re.compile(rf"(?:{_quotes}){NAME}")
MENTIONED = re.compile(rf"@{NAME}")
_kinds = "|".join(
    re.escape(word)
    for words in WORDINGS
    for s in (words.segments,)
    for word in (s.card, s.share, s.music, s.file, s.place, s.keys)
)
_forwards = "|".join(re.escape(words.heading(words.forwarded)) for words in WORDINGS)
_relayed = "|".join(re.escape(words.relayed) for words in WORDINGS)
PASSED_ON = re.compile(
    rf"^ *(?:{_forwards})$|\[(?:{_kinds}) |(?:{_quotes}|↩|\[)(?:{_relayed})", re.MULTILINE
)


def speakers_in(
    rounds: Iterable[Message], person: Callable[[int], int | None], *, summary: str = ""
) -> frozenset[int]:
    """Return the accounts of the people whose words or names are in these rounds or the summary of
    older ones. `person` resolves a number.
    """
    numbers = {NOBODY_KNOWS} if summary else set[int]()
    for message in rounds:  # many messages: isinstance takes twice the time
        if type(message) is UserMessage:
            numbers |= _heard_in(message.text)
        elif type(message) is ToolMessage and message.authority is not Audience.OWNER:
            numbers.add(NOBODY_KNOWS)
    return frozenset(
        person(number) or NOBODY_KNOWS if number else NOBODY_KNOWS for number in numbers
    )


@lru_cache(maxsize=1024)  # every turn reads the same rounds again
def _heard_in(text: str) -> frozenset[int]:
    said = (SPEAKER, REPLIED, QUOTED)
    found = {int(number) for pattern in said for _, number in pattern.findall(text)}
    # A nameless mention holds no text that a person chose.
    found |= {int(number) for name, number in MENTIONED.findall(text) if name != NAMELESS}
    if PASSED_ON.search(text):
        found.add(NOBODY_KNOWS)
    return frozenset(found)
