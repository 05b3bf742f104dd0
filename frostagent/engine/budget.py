"""The budget of one question, for its run and all runs inside it. Pure.

Each run has a share. While it may continue, it reserves one request for its final answer, with the
tokens of its latest request, so that no other run can use it up.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum, auto

from msgspec import Struct, field

from frostagent.types.messages import Usage
from frostagent.types.runs import Spent


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits for one question; 0 means no limit.

        Agent(model=model, usage_limits=Limits(requests=10, tokens=50_000))

    `requests` and `tokens` are for models; `sends` are messages that tools send.
    """

    requests: int = 0
    tokens: int = 0
    sends: int = 0


class Room(Enum):
    """The requests a run has left: more after this one, this is the last, or none."""

    MORE = auto()
    LAST = auto()
    NONE = auto()


NO_LIMITS = Limits()
NOTHING_SPENT = Spent()


class Budget:
    """The totals of one tree of runs. `held` has the tokens that shares have reserved."""

    __slots__ = ("_is_out", "_requests", "_sends", "_tokens", "held", "limits")

    def __init__(
        self,
        limits: Limits = NO_LIMITS,
        spent: Spent = NOTHING_SPENT,
        is_out: Callable[[], bool] | None = None,
    ) -> None:
        """`spent` is from an earlier segment; `is_out` says that nothing is left in any case."""
        self.limits = limits
        self._is_out = is_out
        self.held: dict[object, float] = {}  # by the places of shares
        self._requests, self._tokens, self._sends = spent.requests, spent.tokens, spent.sends

    @property
    def spent(self) -> Spent:
        return Spent(self._requests, self._tokens, self._sends)

    @property
    def requests_left(self) -> float:
        """Requests that are neither made nor reserved."""
        if self._is_out and self._is_out():
            return 0.0
        return (self.limits.requests or math.inf) - self._requests - len(self.held)

    @property
    def tokens_left(self) -> float:
        """Tokens that are neither used nor reserved; a current request counts by its estimate."""
        return (self.limits.tokens or math.inf) - self._tokens - sum(self.held.values())

    @property
    def sends_left(self) -> float:
        """Messages that may still be sent before the final answer."""
        return max(0, (self.limits.sends or math.inf) - self._sends)

    def share(self) -> BudgetShare:
        """The share of the outermost run, which may always give a final answer."""
        share = BudgetShare(self)
        self.held[share.place] = 0.0
        return share

    def part(self, tokens: float = 0.0) -> BudgetShare | None:
        """The share of an inner run with a first request of that size; None if there is no room."""
        if self.requests_left < 1 or self.tokens_left < tokens:
            return None
        share = BudgetShare(self)
        self.held[share.place] = tokens
        return share

    def take(self, *, requests: int = 0, tokens: float = 0.0, sends: int = 0) -> None:
        self._requests += requests
        self._tokens += tokens
        self._sends += sends


class BudgetShare(Struct, eq=False):
    """One run's part of a budget. Fits `Allowance`: repeated attempts count, too.

    `lost` is the latest aborted request; within a `step` of a turn, the caller that aborted it
    counts it. `place` identifies the share in the budget without a reference cycle.
    """

    budget: Budget = field(default_factory=Budget)
    is_short: bool = False
    estimate: float = 0.0
    lost: tuple[str, Usage] | None = None
    step: int = 0
    place: object = field(default_factory=object)

    def begin(self, tokens: float = 0.0) -> Room:
        """Count a request of about `tokens`, if it is allowed."""
        budget = self.budget
        due = budget.held.pop(self.place, None) is not None
        if due and budget.requests_left >= 2 and budget.tokens_left >= 2 * tokens:
            budget.held[self.place] = tokens
            self._count(tokens)
            return Room.MORE
        self.is_short = True
        if not due and (budget.requests_left < 1 or budget.tokens_left < tokens):
            return Room.NONE
        self._count(tokens)
        return Room.LAST

    @property
    def is_first(self) -> bool:
        """Whether this is the only request and attempt so far."""
        return self.budget.spent.requests <= 1

    def again(self) -> bool:
        """Count one more attempt of the current request. False if none is allowed."""
        budget = self.budget
        if budget.requests_left < 1 or budget.tokens_left < self.estimate:
            if budget.held.pop(self.place, None) is None:
                return False
            self.is_short = True
        self._count(self.estimate)
        return True

    def record_broken_off(self, model: str, usage: Usage) -> bool:
        """Keep the usage of the current request, which was aborted from outside."""
        self.lost = (model, usage)
        return self.step > 0

    def take_back(self) -> None:
        """Undo the count of a request that was not made."""
        self.budget.take(requests=-1)
        self.settle(0.0)

    def settle(self, tokens: float) -> None:
        """Replace the estimate by the actual tokens."""
        self.budget.take(tokens=tokens - self.estimate)
        self.estimate = 0.0

    @property
    def is_over(self) -> bool:
        """Whether no further request is allowed."""
        return self.place not in self.budget.held and self.is_short

    @property
    def counts_tokens(self) -> bool:
        """Whether the size of requests matters."""
        return self.budget.limits.tokens > 0

    def close(self) -> None:
        """End the run and release its reservation."""
        self.budget.held.pop(self.place, None)

    def _count(self, tokens: float) -> None:
        self.estimate = tokens
        self.budget.take(requests=1, tokens=tokens)
