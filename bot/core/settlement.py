"""What came of an owner's word."""

from __future__ import annotations

from typing import Literal, TypeAlias

from msgspec import Struct

Settlement: TypeAlias = Literal[
    "done",
    "over",
    "unknown",
    "again",
    "late",
    "busy",
    "offline",
    "refused",
    "unanswered",
    "away",
    "lost",
]


class Settled(Struct, frozen=True):
    """The outcome of an owner's word, and the line that tells it: passed on, decided before, about
    nothing that waits, older than the request, too late, not now, or not done by the server; in a
    cluster, that no bot has the account just now, or that the one that has it did not answer.
    """

    kind: Settlement
    words: str
