"""Where something is said: an account, a group or a person, by their numbers."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final, Literal, TypeAlias

from msgspec import Struct

from frostagent.types.errors import BotError

MessageType: TypeAlias = Literal["group", "private"]

MAX_ID = 2**63 - 1  # what JSON writers and databases hold
_DIGITS = re.compile(r"[0-9]{1,19}")  # int() refuses texts of thousands of digits with a ValueError


def read_number(text: str) -> int | None:
    """A number of at most 64 bits, written in digits; None for anything else."""
    number = int(text) if _DIGITS.fullmatch(text) else MAX_ID + 1
    return number if number <= MAX_ID else None


class NotAConversation(BotError):
    """A text that does not have the form platform_id:message_type:session_id."""


class Conversation(Struct, frozen=True):
    """Where something is said: the bot's account, group or private, and the group's or person's
    number.

    `via_group` is the group a temporary private session came through (0: none); it is needed to
    answer but is not part of the identity.
    """

    platform_id: int
    message_type: MessageType
    session_id: int
    via_group: int = 0

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, Conversation)
            and self.session_id == other.session_id
            and self.platform_id == other.platform_id
            and self.message_type == other.message_type
        )

    def __hash__(self) -> int:
        # Forty times for one message: nearly all differ in this, and it takes a third of a tuple of
        # all.
        return self.session_id

    def __str__(self) -> str:
        return f"{self.platform_id}:{self.message_type}:{self.session_id}"

    @property
    def is_group(self) -> bool:
        return self.message_type == "group"

    @classmethod
    def parse(cls, text: str) -> Conversation:
        """Read `platform_id:message_type:session_id`. Raises NotAConversation.

        A place may have the number 0, if a server did not say which it was.
        """
        platform, _, rest = text.strip().partition(":")
        kind, _, session = rest.partition(":")
        platform_id, session_id = read_number(platform), read_number(session)
        if platform_id is None or session_id is None:
            raise NotAConversation(
                f"{text[:80]!r} is not platform_id:message_type:session_id, as in 10001:group:4242"
            )
        match kind:
            case "group" | "private":
                return cls(platform_id, kind, session_id)
            case _:
                raise NotAConversation(
                    f"{kind[:80]!r} in {text[:80]!r} is neither group nor private"
                )


NOWHERE: Final = Conversation(0, "private", 0)


@lru_cache(maxsize=10_000)
def shared_place(
    platform_id: int, message_type: MessageType, session_id: int, via_group: int
) -> Conversation:
    """The same object for the same place: all that is kept by conversation is then found without
    comparing any.
    """
    return Conversation(platform_id, message_type, session_id, via_group)


def is_same_group(one: Conversation, other: Conversation) -> bool:
    """Whether both are the same group, perhaps as two accounts of the bot know it."""
    return one.is_group and other.is_group and one.session_id == other.session_id
