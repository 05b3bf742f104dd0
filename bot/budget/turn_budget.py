"""What a turn may still use: the budget of its question, reduced as daily limits come near."""

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
"""The ports of tools that show pictures or ask other models."""


@dataclass(frozen=True, slots=True)
class TurnBudget:
    """`spending` counts towards the daily limits; `limits` are those of each question. `cheap` is
    the model used from LimitLevel.CHEAP on, if there is one; `tools` returns all tools.
    """

    spending: Spending
    limits: Limits = NO_LIMITS
    cheap: ChatModel | None = None
    tools: Callable[[], Sequence[Tool]] = tuple

    def budget(self, turn_id: str, spent: Spent = NOTHING_SPENT) -> Budget:
        """The budget of a turn that has `spent` some of it. When a daily limit is used up, only the
        last words remain.
        """
        return Budget(self.limits, spent, lambda: self.spending.is_spent(turn_id))

    def leaner(self, run: Run) -> Run:
        """The run as its next request may be made. A nested run has the level of its turn."""
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
    return level < LimitLevel.PLAIN


def shorten_history(level: LimitLevel, rounds: tuple[Message, ...]) -> tuple[Message, ...]:
    """The latest whole rounds, as many as the model reads at that level."""
    if level < LimitLevel.BARE:
        return rounds
    begins = (
        place
        for place, message in enumerate(rounds)
        if 2 * place >= len(rounds) and isinstance(message, UserMessage)
    )
    return rounds[next(begins, len(rounds)) :]
