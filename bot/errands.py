"""One request on its way through several models: what has become of it, what was tried, who is next."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from bot.domain.chat import Message, ModelRequest
from bot.domain.errors import ModelError
from bot.upstreams import Line, Upstream

BRIEF = 1.5  # seconds; so long somebody is waited for although another could be asked

Change = Callable[[ModelRequest], ModelRequest | None]
"""Makes a request that may be taken where the other was not, None where it cannot."""


@dataclass(frozen=True, slots=True)
class Way:
    """Whom to ask, by which key, and how long to wait before, in seconds; `trusted` if all is well there."""

    upstream: Upstream
    line: Line
    wait: float
    trusted: bool


@dataclass(slots=True)
class Errand:
    """One request on its way: what has become of it, and what was tried."""

    request: ModelRequest
    upstreams: Sequence[Upstream]
    error: ModelError | None = None
    waited: float = 0.0
    failures: Counter[Upstream] = field(default_factory=Counter)
    closed: set[Upstream | Line] = field(default_factory=set)
    not_before: dict[Upstream | Line, float] = field(default_factory=dict)
    changes: Counter[Change] = field(default_factory=Counter)
    spoilt: tuple[Message, ...] = ()

    def change(self, change: Change, *, times: int = 1) -> bool:
        """Go on with another request; whether there is one, and it was not made so often already."""
        changed = change(self.request) if self.changes[change] < times else None
        if changed is None or changed == self.request:
            return False
        self.changes[change] += 1
        self.request = changed
        return True

    def choose(self, now: float) -> Way | None:
        """Whom to ask now: the first who is well and can be asked at once, else whoever can be asked soonest."""
        ways = [way for upstream in self.upstreams if (way := self._way(upstream, now))]
        ways.sort(key=lambda way: not way.trusted)
        return next((way for way in ways if way.wait <= BRIEF), min(ways, key=lambda way: way.wait, default=None))

    def _way(self, upstream: Upstream, now: float) -> Way | None:
        lines = [line for line in upstream.lines if line not in self.closed]
        if upstream in self.closed or not lines:
            return None

        def wait(line: Line) -> float:
            ours = (self.not_before.get(upstream, now), self.not_before.get(line, now))
            return max(upstream.busy_until, line.busy_until, *ours) - now

        line = min(lines, key=lambda line: (not line.breaker.trusts(now), wait(line)))
        return Way(upstream, line, wait(line), upstream.breaker.trusts(now) and line.breaker.trusts(now))
