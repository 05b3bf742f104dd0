"""What a worker counts of its share of a cluster. Apart from `cluster`, because every worker has it
and only one that is asked for its metrics needs the library of Prometheus.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field


@dataclass(slots=True)
class Work:
    """How things stand: there are so many `partitions`; `links` says of those that are here whether
    the broker is reached, which are `held` once they are at work, and so many `workers` are there.
    Since the start so many partitions were `taken`, and so many events `set_aside`.
    """

    partitions: int
    links: dict[int, Callable[[], bool]] = field(default_factory=dict)
    held: set[int] = field(default_factory=set)
    workers: int = 0
    taken: int = 0
    set_aside: int = 0

    def begin(self, partition: int) -> None:
        """It is at work here."""
        self.held.add(partition)
        self.taken += 1

    def end(self, partition: int) -> None:
        """It is no more."""
        self.held.discard(partition)
        self.links.pop(partition, None)

    def lay_aside(self) -> None:
        """An event is in the queue of what nobody could handle."""
        self.set_aside += 1
