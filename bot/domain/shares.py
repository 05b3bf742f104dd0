"""Which of a cluster's accounts a bot has: those of one partition. A bot alone has them all."""

from __future__ import annotations

import zlib
from typing import Final

from msgspec import Struct

from bot.domain.events import Conversation


def partition_of(account: int, partitions: int) -> int:
    """The partition of an account, the same in every process and version: CRC-32 of its number as
    it is written.
    """
    return zlib.crc32(str(account).encode()) % partitions


class Share(Struct, frozen=True):
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


WHOLE: Final = Share()
