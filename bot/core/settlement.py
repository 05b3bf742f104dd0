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
    """The outcome of an owner's decision, and the line that reports it. In order: applied, decided
    before, unknown item, reply older than the request, expired, not possible now, QQ offline,
    refused or not answered by the server; in a cluster, no bot has the account now, or its bot did
    not answer.
    """

    kind: Settlement
    words: str
