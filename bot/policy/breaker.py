"""Whether something that failed is worth asking again: trusted, left alone for a while, then tried
by one at a time.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass

NOTHING_TO_TRY = nullcontext()


@dataclass(slots=True, kw_only=True)
class Breaker:
    """Opens after `threshold` failures in a row and rests; then one probe decides whether it closes
    again.

    `rest` is in seconds; it doubles with each opening in a row, up to `longest`. Times are the
    clock's monotonic ones. Whoever asks does so within `asking`, and says `succeed` or `fail` if
    that told anything; while it is not closed, all who ask are probes, also those who had nobody
    else to ask.
    """

    threshold: int = 3
    rest: float = 30.0
    longest: float = 600.0
    _failures: int = 0
    _openings: int = 0
    _until: float | None = None  # None: closed
    _probes: int = 0

    def trusts(self, now: float) -> bool:
        """Whether it may be asked: closed, or its rest is over and nobody else is trying it."""
        return self._until is None or (now >= self._until and not self._probes)

    def left(self, now: float) -> float:
        """How many seconds it still rests."""
        return 0.0 if self._until is None else max(0.0, self._until - now)

    def asking(self) -> AbstractContextManager[None]:
        """Somebody asks; where it is not closed, that is a probe."""
        return NOTHING_TO_TRY if self._until is None else self._probing()

    @contextmanager
    def _probing(self) -> Iterator[None]:
        self._probes += 1
        try:
            yield
        finally:
            self._probes -= 1

    def succeed(self) -> None:
        """It works: closed, and all is forgotten."""
        self._failures = self._openings = 0
        self._until = None

    def fail(self, now: float, *, at_once: bool = False) -> None:
        """It does not work; `at_once` opens it whatever came before. While it rests nothing is
        news.
        """
        if self._until is not None and now < self._until:
            return
        self._failures += 1
        if at_once or self._openings or self._failures >= self.threshold:
            self._until = now + min(self.longest, self.rest * 2.0 ** min(self._openings, 16))
            self._openings += 1
            self._failures = 0
