"""Declarations of a tool: who may call it, what it does to the world, how its calls may be run."""

from __future__ import annotations

import re
from collections.abc import Iterable
from enum import StrEnum
from math import isfinite

from msgspec import Struct


class Permission(StrEnum):
    """The way of a call: it runs, it runs once somebody allows the call, it never
    runs.
    """

    ALLOW = "allow"
    REQUIRE_APPROVAL = "require_approval"
    DENY = "deny"

    @classmethod
    def _missing_(cls, value: object) -> Permission | None:
        return cls.REQUIRE_APPROVAL if value == "approve" else None


class SideEffects(StrEnum):
    """The changes a call makes: none (it computes, or it reads), to our own state, or to the
    world outside.

    Undeclared is not trusted with anything (no retry, no cached results, no second try of its turn
    after a crash), but holds nobody up either.
    """

    UNDECLARED = "undeclared"
    NONE = "none"
    READ = "read"
    WRITE = "write"
    EXTERNAL = "external"

    @property
    def may_have_happened(self) -> bool:
        """Whether nobody knows what was done when a call is broken off in the middle."""
        return self is SideEffects.WRITE or self is SideEffects.EXTERNAL

    @property
    def is_harmless(self) -> bool:
        """Whether a call changes nothing, by the tool's own word."""
        return self is SideEffects.NONE or self is SideEffects.READ

    @classmethod
    def strictest(cls, kinds: Iterable[SideEffects]) -> SideEffects:
        """The kind of somebody who may do each of these: the strictest."""
        found = set(kinds)
        return next(
            (kind for kind in (cls.EXTERNAL, cls.WRITE, cls.UNDECLARED, cls.READ) if kind in found),
            cls.NONE,
        )


class Audience(StrEnum):
    """Who may have a tool called: anybody, a group's admins and its owner, the bot's owners. Owners
    may always.
    """

    EVERYONE = "everyone"
    GROUP_ADMIN = "group_admin"
    OWNER = "owner"


class Execution(StrEnum):
    """Side by side with the other calls of a step, or all calls of such a step one after the
    other.
    """

    CONCURRENT = "concurrent"
    SEQUENTIAL = "sequential"


class ToolType(StrEnum):
    """The make of a tool; metadata, for people who look at it."""

    FUNCTION = "function"
    CLI = "cli"


class Rate(Struct, frozen=True):
    """At most so many calls in any so many seconds. Raises ValueError for what is not positive and
    finite.
    """

    calls: int
    seconds: float

    def __post_init__(self) -> None:
        if self.calls < 1 or not (self.seconds > 0 and isfinite(self.seconds)):
            raise ValueError(f"a rate takes at least 1 call and more than 0 seconds, not {self}")

    @classmethod
    def parse(cls, text: str) -> Rate:
        """`5/60` is five calls a minute. Raises ValueError."""
        if match := re.fullmatch(r"\s*(\d{1,9})\s*/\s*(\d{1,9}(?:\.\d{1,9})?)\s*", text):
            return cls(int(match[1]), float(match[2]))
        raise ValueError(f'a rate is written as calls/seconds, as "5/60", not {text!r}')

    def __str__(self) -> str:
        return f"{self.calls}/{self.seconds:g}"
