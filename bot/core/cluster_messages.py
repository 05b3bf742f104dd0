"""Notes that the bots of a cluster send each other, each of which has other accounts: people have
limits and are forgotten everywhere, and an owner's word may be about all.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Awaitable, Callable
from typing import Final, Protocol, TypeAlias

from msgspec import Struct

from frostagent.types.conversation import Conversation


def partition_of(account: int, partitions: int) -> int:
    """The partition of an account, the same in every process and version: CRC-32 of its number as
    it is written.
    """
    return zlib.crc32(str(account).encode()) % partitions


class ClusterPartition(Struct, frozen=True):
    """One partition of so many. Whatever is said to and by an account is in its partition: its
    conversations, what its owners answer it, and what it is asked to grant.
    """

    partition: int = 0
    partitions: int = 1

    @property
    def is_first(self) -> bool:
        """Whether what is done once for all accounts is done here."""
        return self.partition == 0

    def has(self, account: int) -> bool:
        """Whether the account is in it."""
        return partition_of(account, self.partitions) == self.partition

    def has_place(self, where: Conversation) -> bool:
        """The same of a conversation; what belongs to no account is everybody's."""
        return not where.platform_id or self.has(where.platform_id)


WHOLE: Final = ClusterPartition()


class UsageTaken(Struct, frozen=True, tag="taken"):
    """Requests to models took this, or will, or less than was thought: in tokens and US dollars,
    for somebody somewhere (`who` is 0 and `where` None for nobody). It counts for the day of `at`;
    when it was `told` is in seconds since 1970, too.
    """

    where: Conversation | None
    who: int
    tokens: float
    cost: float
    at: float
    told: float


class RowChanged(Struct, frozen=True, tag="row_set"):
    """The value that is kept in a row for no conversation is this now."""

    name: str
    value: str


class PlaceChanged(Struct, frozen=True, tag="place_told"):
    """The value kept under a name for a conversation is this now, which may be set by a bot
    that has not its account: on a page that shows all of them.
    """

    where: Conversation
    name: str
    value: str


class SubjectErased(Struct, frozen=True, tag="forgotten"):
    """A person, or a group, is forgotten, as `Forgetting` does it: what was said later stays, and
    what was asked `since`. None is without end.
    """

    user: int = 0
    group: int = 0
    said: float | None = None
    since: float | None = None

    def is_named_in(self, text: str) -> bool:
        """Whether a line gives the number of the person, or of the group."""
        number = self.user or self.group
        return re.search(rf"(?<![0-9]){number}(?![0-9])", text) is not None


class AlarmRaised(Struct, frozen=True, tag="alarmed"):
    """The owners are told of a trouble of this kind: nobody else tells it for a while. Where there
    is a `text`, they are not yet, and it is for whoever can reach them, who then says so by one
    without; without a kind it is no alarm, and always said. One that `is_quoting` has words of
    others in it.
    """

    kind: str
    text: str = ""
    is_quoting: bool = False


ClusterMessage: TypeAlias = UsageTaken | RowChanged | PlaceChanged | SubjectErased | AlarmRaised

OnClusterMessage: TypeAlias = Callable[[ClusterMessage | None], Awaitable[None]]
"""Hears a note of another bot; None: some may have been missed."""


class ClusterPeers(Protocol):
    """The other bots of a cluster."""

    @property
    def can_alarm(self) -> bool:
        """Whether one of them can reach the owners."""
        ...

    def tell(self, note: ClusterMessage, /) -> None:
        """Let them know, as soon as they can be reached; never waits, never raises."""
        ...
