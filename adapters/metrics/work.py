"""A worker's figures in a cluster. Separate from `cluster`, because every worker has them and only
one that is scraped needs Prometheus' library.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field


@dataclass(slots=True)
class Work:
    """The number of `partitions` and `workers`; `links` tells for each partition here whether its
    broker connection is up; `held` are those running. `taken` partitions and events `set_aside` are
    counted since the start.
    """

    partitions: int
    links: dict[int, Callable[[], bool]] = field(default_factory=dict)
    held: set[int] = field(default_factory=set)
    workers: int = 0
    taken: int = 0
    set_aside: int = 0

    def begin(self, partition: int) -> None:
        self.held.add(partition)
        self.taken += 1

    def end(self, partition: int) -> None:
        self.held.discard(partition)
        self.links.pop(partition, None)

    def lay_aside(self) -> None:
        """An event became a dead letter."""
        self.set_aside += 1
