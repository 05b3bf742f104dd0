"""Whether something that failed is worth asking again: trusted, left alone for a while, then tried by one at a time."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(slots=True, kw_only=True)
class Breaker:
    """Opens after `threshold` failures in a row and rests; then one probe decides whether it closes again.

    `rest` is in seconds; it doubles with each opening in a row, up to `longest`. Times are the clock's monotonic ones.
    Whoever asks says `begin`, and then exactly one of `succeed`, `fail` and `drop`.
    """

    threshold: int = 3
    rest: float = 30.0
    longest: float = 600.0
    _failures: int = 0
    _openings: int = 0
    _until: float | None = None  # None: closed
    _probing: bool = False

    def trusts(self, now: float) -> bool:
        """Whether it may be asked: closed, or its rest is over and nobody else is trying it."""
        return self._until is None or (now >= self._until and not self._probing)

    def begin(self) -> None:
        """Somebody asks; where it is not closed, that is the probe."""
        self._probing = self._until is not None

    def succeed(self) -> None:
        """It works: closed, and all is forgotten."""
        self._failures = self._openings = 0
        self._until, self._probing = None, False

    def fail(self, now: float, *, at_once: bool = False) -> None:
        """It does not work; `at_once` opens it whatever came before. While it rests nothing is news."""
        if self._until is not None and now < self._until:
            self._probing = False
            return
        self._failures += 1
        if at_once or self._probing or self._failures >= self.threshold:
            self._until = now + min(self.longest, self.rest * 2.0 ** min(self._openings, 16))
            self._openings += 1
            self._failures = 0
        self._probing = False

    def drop(self) -> None:
        """The attempt said nothing about it: it was cancelled, or failed for another reason."""
        self._probing = False
