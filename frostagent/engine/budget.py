"""How much one question may take, of the model and of the chat: counted over its run and all that
runs inside it. Pure.

Each run of the tree has a share. As long as it may go on it holds one request back for its last
words, with the tokens that the latest one had: so nobody else can use up what it owes.
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
    """Requests to models, their tokens and messages that tools send, for one question; 0 is no
    limit.
    """

    requests: int = 0
    tokens: int = 0
    sends: int = 0


class Room(Enum):
    """The requests that a run has left: another may follow this one, this is the last, or none is
    left.
    """

    MORE = auto()
    LAST = auto()
    NONE = auto()


NO_LIMITS = Limits()
NOTHING_SPENT = Spent()


class Budget:
    """The sums of one tree of runs. `held` are the tokens of the requests that its shares hold."""

    __slots__ = ("_is_out", "_requests", "_sends", "_tokens", "held", "limits")

    def __init__(
        self,
        limits: Limits = NO_LIMITS,
        spent: Spent = NOTHING_SPENT,
        is_out: Callable[[], bool] | None = None,
    ) -> None:
        """`spent` is what an earlier segment of it took; `is_out` says that there is no more for
        it, whatever its limits.
        """
        self.limits = limits
        self._is_out = is_out
        self.held: dict[object, float] = {}  # by the places of shares
        self._requests, self._tokens, self._sends = spent.requests, spent.tokens, spent.sends

    @property
    def spent(self) -> Spent:
        """The sums so far."""
        return Spent(self._requests, self._tokens, self._sends)

    @property
    def requests_left(self) -> float:
        """Requests that are neither made nor held."""
        if self._is_out and self._is_out():
            return 0.0
        return (self.limits.requests or math.inf) - self._requests - len(self.held)

    @property
    def tokens_left(self) -> float:
        """Tokens that are neither used nor held; those of a request under way are used, as many as
        estimated.
        """
        return (self.limits.tokens or math.inf) - self._tokens - sum(self.held.values())

    @property
    def sends_left(self) -> float:
        """Messages that may still be sent before the final words."""
        return max(0, (self.limits.sends or math.inf) - self._sends)

    def share(self) -> BudgetShare:
        """The share of the outermost run: its last words are its due, whatever was spent."""
        share = BudgetShare(self)
        self.held[share.place] = 0.0
        return share

    def part(self, tokens: float = 0.0) -> BudgetShare | None:
        """The share of a run inside, whose first request has so many tokens; None where there is no
        room for even that.
        """
        if self.requests_left < 1 or self.tokens_left < tokens:
            return None
        share = BudgetShare(self)
        self.held[share.place] = tokens
        return share

    def take(self, *, requests: int = 0, tokens: float = 0.0, sends: int = 0) -> None:
        """Count this as spent."""
        self._requests += requests
        self._tokens += tokens
        self._sends += sends


class BudgetShare(Struct, eq=False):
    """The part of a budget that one run of the tree may use. Fits `Allowance`: attempts after a
    first one that failed are counted, too. `lost` is the latest that was broken off; of a `step` of
    a turn whoever broke it off counts that. Its `place` is what the budget knows it by:
    both would hold each other otherwise, and wait for the cycle collector.
    """

    budget: Budget = field(default_factory=Budget)
    is_short: bool = False
    estimate: float = 0.0
    lost: tuple[str, Usage] | None = None
    step: int = 0
    place: object = field(default_factory=object)

    def begin(self, tokens: float = 0.0) -> Room:
        """Count a request of about so many tokens, if it may be made."""
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
        """Whether the budget has counted no other request and no other attempt."""
        return self.budget.spent.requests <= 1

    def again(self) -> bool:
        """Count one more attempt of the request under way; False where none may be made."""
        budget = self.budget
        if budget.requests_left < 1 or budget.tokens_left < self.estimate:
            if budget.held.pop(self.place, None) is None:
                return False
            self.is_short = True
        self._count(self.estimate)
        return True

    def record_broken_off(self, model: str, usage: Usage) -> bool:
        """Keep what the request under way took of that model, which somebody broke off."""
        self.lost = (model, usage)
        return self.step > 0

    def take_back(self) -> None:
        """The request was not made."""
        self.budget.take(requests=-1)
        self.settle(0.0)

    def settle(self, tokens: float) -> None:
        """The request took so many tokens."""
        self.budget.take(tokens=tokens - self.estimate)
        self.estimate = 0.0

    @property
    def is_over(self) -> bool:
        """Whether it may ask nothing any more."""
        return self.place not in self.budget.held and self.is_short

    @property
    def counts_tokens(self) -> bool:
        """Whether anybody needs to know how long a request is."""
        return self.budget.limits.tokens > 0

    def close(self) -> None:
        """The run is over: what it held is free."""
        self.budget.held.pop(self.place, None)

    def _count(self, tokens: float) -> None:
        self.estimate = tokens
        self.budget.take(requests=1, tokens=tokens)
