"""The budget of a question, and what is left out as a limit of the day comes near."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from msgspec.structs import replace

from bot.domain.events import Conversation
from bot.domain.model_messages import Message, UserMessage
from bot.domain.ports import ChatModel, Looking, Subagents
from bot.domain.run import Spent
from bot.domain.tool import Tool
from bot.engine.engine import Run
from bot.policy.budget import NO_LIMITS, NOTHING_SPENT, Budget, Limits
from bot.policy.day_limits import LimitLevel

DEAR = frozenset({Looking, Subagents})
"""The ports of tools that show pictures, or ask others."""


class Rungs(Protocol):
    """Knows how much of the limits of a day is used."""

    def has_limits(self) -> bool:
        """Whether anybody has one, so that first requests are reserved, too."""
        ...

    def rung(self, where: Conversation, who: int, /) -> LimitLevel:
        """The rung of somebody there; of the group alone for 0."""
        ...

    def rung_of(self, turn_id: str, /) -> LimitLevel:
        """The rung of whoever a turn is for."""
        ...

    def ends(self) -> float:
        """When the day ends, in seconds since 1970."""
        ...


class NoLimit:
    """Nobody has a limit. Fits `Rungs`."""

    def has_limits(self) -> bool:
        """No."""
        return False

    def rung(self, _where: Conversation, _who: int, /) -> LimitLevel:
        """All there is."""
        return LimitLevel.ALL

    def rung_of(self, _turn_id: str, /) -> LimitLevel:
        """All there is."""
        return LimitLevel.ALL

    def ends(self) -> float:
        """Never."""
        return math.inf


NO_LIMIT = NoLimit()


@dataclass(frozen=True, slots=True)
class TurnBudget:
    """`limits` are those of each question; `cheap` is the model for a question that is to be cheap,
    if there is one; `tools` gives all there are.
    """

    limits: Limits = NO_LIMITS
    rungs: Rungs = NO_LIMIT
    cheap: ChatModel | None = None
    tools: Callable[[], Sequence[Tool]] = tuple

    def budget(self, turn_id: str, spent: Spent = NOTHING_SPENT) -> Budget:
        """The budget of a turn that took so much already; once the day's is used up it is asked
        for no more than the words it owes.
        """
        rung_of = self.rungs.rung_of
        return Budget(self.limits, spent, lambda: rung_of(turn_id) >= LimitLevel.SPENT)

    def leaner(self, run: Run) -> Run:
        """The run as its next request may be made; one inside another is of the same turn."""
        rung = self.rungs.rung_of(run.id.partition("/")[0])
        if rung < LimitLevel.CHEAP:
            return run
        if self.cheap is not None:
            run = replace(run, model=self.cheap)
        if rung >= LimitLevel.PLAIN:
            left_out = (
                tool for tool in self.tools() if rung >= LimitLevel.BARE or DEAR & {*tool.needs}
            )
            denied = run.terms.denied | {tool.name for tool in left_out}
            run = replace(run, terms=replace(run.terms, denied=denied))
        return run


def told_on(rung: LimitLevel, rounds: tuple[Message, ...]) -> tuple[Message, ...]:
    """So much of what was said before as is told on that rung: whole rounds, the latest."""
    if rung < LimitLevel.BARE:
        return rounds
    begins = (
        place
        for place, message in enumerate(rounds)
        if 2 * place >= len(rounds) and isinstance(message, UserMessage)
    )
    return rounds[next(begins, len(rounds)) :]
