"""The partition of an account: its worker has all that is said to and by the account."""

from __future__ import annotations

import zlib

from msgspec import Struct

from bot.core.conversation import Conversation


def partition_of(account: int, partitions: int) -> int:
    """The partition of an account, the same in every process and version: CRC-32 of its number as
    it is written.
    """
    return zlib.crc32(str(account).encode()) % partitions


class ClusterPartition(Struct, frozen=True):
    """One of several partitions. Fits `AccountScope`."""

    partition: int = 0
    partitions: int = 1

    @property
    def number(self) -> int:
        """That of the partition."""
        return self.partition

    @property
    def suffix(self) -> str:
        """Empty if there is no other partition."""
        return f"-{self.partition}" if self.partitions > 1 else ""

    @property
    def is_first(self) -> bool:
        """Whether it is the first partition."""
        return self.partition == 0

    def has(self, account: int) -> bool:
        """Whether the account is in it."""
        return partition_of(account, self.partitions) == self.partition

    def has_place(self, where: Conversation) -> bool:
        """Whether the conversation's account is in it; one without an account is in each."""
        return not where.platform_id or self.has(where.platform_id)
