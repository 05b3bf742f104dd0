"""What a tool declares: who may call it, what it changes, how its calls may be run."""

from __future__ import annotations

import re
from collections.abc import Iterable
from enum import StrEnum
from math import isfinite

from msgspec import Struct


class Permission(StrEnum):
    """What happens to a call: it runs, it runs once approved, or it never runs."""

    ALLOW = "allow"
    REQUIRE_APPROVAL = "require_approval"
    DENY = "deny"

    @classmethod
    def _missing_(cls, value: object) -> Permission | None:
        return cls.REQUIRE_APPROVAL if value == "approve" else None


class SideEffects(StrEnum):
    """What a call changes: nothing (NONE computes, READ reads), our own state, or the outside
    world.

    UNDECLARED gets no trust (no retry, no cached result, its turn is not repeated after a crash),
    but does not delay anything either.
    """

    UNDECLARED = "undeclared"
    NONE = "none"
    READ = "read"
    WRITE = "write"
    EXTERNAL = "external"

    @property
    def may_have_happened(self) -> bool:
        """Whether an interrupted call leaves it unknown if the effect happened."""
        return self is SideEffects.WRITE or self is SideEffects.EXTERNAL

    @property
    def is_harmless(self) -> bool:
        """Whether a call changes nothing, as the tool declares."""
        return self is SideEffects.NONE or self is SideEffects.READ

    @classmethod
    def strictest(cls, kinds: Iterable[SideEffects]) -> SideEffects:
        """The strictest of these kinds; NONE if there are none."""
        found = set(kinds)
        return next(
            (kind for kind in (cls.EXTERNAL, cls.WRITE, cls.UNDECLARED, cls.READ) if kind in found),
            cls.NONE,
        )


class Audience(StrEnum):
    """The people who may have a tool called: everyone, a group's admins and owner, or the bot's
    owners.

    Owners may always.
    """

    EVERYONE = "everyone"
    GROUP_ADMIN = "group_admin"
    OWNER = "owner"


class Execution(StrEnum):
    """Concurrent with the other calls of a step; one SEQUENTIAL call serialises its step."""

    CONCURRENT = "concurrent"
    SEQUENTIAL = "sequential"


class ToolType(StrEnum):
    """What a tool is made of, for display only."""

    FUNCTION = "function"
    CLI = "cli"


class Rate(Struct, frozen=True):
    """At most `calls` in any `seconds`. Raises ValueError unless positive and finite."""

    calls: int
    seconds: float

    def __post_init__(self) -> None:
        if self.calls < 1 or not (self.seconds > 0 and isfinite(self.seconds)):
            raise ValueError(f"a rate takes at least 1 call and more than 0 seconds, not {self}")

    @classmethod
    def parse(cls, text: str) -> Rate:
        """Parse "5/60": five calls a minute. Raises ValueError."""
        if match := re.fullmatch(r"\s*(\d{1,9})\s*/\s*(\d{1,9}(?:\.\d{1,9})?)\s*", text):
            return cls(int(match[1]), float(match[2]))
        raise ValueError(f'a rate is written as calls/seconds, as "5/60", not {text!r}')

    def __str__(self) -> str:
        return f"{self.calls}/{self.seconds:g}"
