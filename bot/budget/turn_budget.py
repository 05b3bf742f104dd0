"""What a turn may still take: the budget of its question, and what is left out as the limits of a
day come near.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from msgspec.structs import replace

from bot.budget.limits import LimitLevel
from bot.budget.spending import Spending
from bot.core.ports import Looking
from frostagent.engine.budget import NO_LIMITS, NOTHING_SPENT, Budget, Limits
from frostagent.engine.engine import Run
from frostagent.types.messages import Message, UserMessage
from frostagent.types.ports import ChatModel, Subagents
from frostagent.types.runs import Spent
from frostagent.types.tools import Tool

DEAR: Final = frozenset({Looking, Subagents})
"""The ports of tools that show pictures, or ask other models."""


@dataclass(frozen=True, slots=True)
class TurnBudget:
    """`spending` counts for the limits of a day; `limits` are those of each question. `cheap` is
    the model for questions that must be cheap, if there is one; `tools` returns all tools.
    """

    spending: Spending
    limits: Limits = NO_LIMITS
    cheap: ChatModel | None = None
    tools: Callable[[], Sequence[Tool]] = tuple

    def budget(self, turn_id: str, spent: Spent = NOTHING_SPENT) -> Budget:
        """The budget of a turn that has `spent` some of it. When the limits of the day are used
        up, only the words that are owed remain.
        """
        return Budget(self.limits, spent, lambda: self.spending.is_spent(turn_id))

    def leaner(self, run: Run) -> Run:
        """The run as its next request may be made. A run inside another belongs to its turn."""
        level = self.spending.rung_of(run.id.partition("/")[0])
        if level < LimitLevel.CHEAP:
            return run
        if self.cheap is not None:
            run = replace(run, model=self.cheap)
        if level >= LimitLevel.PLAIN:
            left_out = (
                tool for tool in self.tools() if level >= LimitLevel.BARE or DEAR & {*tool.needs}
            )
            denied = run.terms.denied | {tool.name for tool in left_out}
            run = replace(run, terms=replace(run.terms, denied=denied))
        return run


def shows_pictures(level: LimitLevel) -> bool:
    """Whether the model is shown pictures at that level."""
    return level < LimitLevel.PLAIN


def shorten_history(level: LimitLevel, rounds: tuple[Message, ...]) -> tuple[Message, ...]:
    """The part of a history that the model is shown at that level: whole rounds, the latest."""
    if level < LimitLevel.BARE:
        return rounds
    begins = (
        place
        for place, message in enumerate(rounds)
        if 2 * place >= len(rounds) and isinstance(message, UserMessage)
    )
    return rounds[next(begins, len(rounds)) :]
