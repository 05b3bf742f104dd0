"""The partition of an account; its worker receives all messages of the account."""

from __future__ import annotations

import zlib

from msgspec import Struct

from bot.core.conversation import Conversation


def partition_of(account: int, partitions: int) -> int:
    """The partition of an account: CRC-32 of its decimal number, the same in every version."""
    return zlib.crc32(str(account).encode()) % partitions


class ClusterPartition(Struct, frozen=True):
    """One of several partitions; an `AccountScope`."""

    partition: int = 0
    partitions: int = 1

    @property
    def number(self) -> int:
        return self.partition

    @property
    def suffix(self) -> str:
        """Empty if there is no other partition."""
        return f"-{self.partition}" if self.partitions > 1 else ""

    @property
    def is_first(self) -> bool:
        return self.partition == 0

    def has(self, account: int) -> bool:
        return partition_of(account, self.partitions) == self.partition

    def has_place(self, where: Conversation) -> bool:
        """Whether the conversation's account is in it, or the conversation has none."""
        return not where.platform_id or self.has(where.platform_id)
