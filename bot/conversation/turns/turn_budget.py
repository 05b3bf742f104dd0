"""The budget of a question, and what is left out as a limit of the day comes near."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from msgspec.structs import replace

from bot.core.ports import Looking
from bot.memory.spending import Spending
from bot.policy.day_limits import LimitLevel
from frostagent.engine.budget import NO_LIMITS, NOTHING_SPENT, Budget, Limits
from frostagent.engine.engine import Run
from frostagent.types.conversation import Conversation
from frostagent.types.messages import Message, UserMessage
from frostagent.types.ports import ChatModel, Subagents
from frostagent.types.runs import Spent
from frostagent.types.tools import Tool

DEAR = frozenset({Looking, Subagents})
"""The ports of tools that show pictures, or ask others."""


@dataclass(frozen=True, slots=True)
class TurnBudget:
    """`limits` are those of each question, `spending` counts those of a day; `cheap` is the model
    for a question that is to be cheap, if there is one; `tools` gives all there are.
    """

    limits: Limits = NO_LIMITS
    spending: Spending | None = None
    cheap: ChatModel | None = None
    tools: Callable[[], Sequence[Tool]] = tuple

    def budget(self, turn_id: str, spent: Spent = NOTHING_SPENT) -> Budget:
        """The budget of a turn that took so much already; once the day's is used up it is asked
        for no more than the words it owes.
        """
        return Budget(self.limits, spent, lambda: self.rung_of(turn_id) >= LimitLevel.SPENT)

    def rung(self, where: Conversation, who: int) -> LimitLevel:
        """How much of the day's limits of a person there is used; of the group alone for 0."""
        return self.spending.rung(where, who) if self.spending else LimitLevel.ALL

    def rung_of(self, turn_id: str) -> LimitLevel:
        """The same of the person that a turn is for."""
        return self.spending.rung_of(turn_id) if self.spending else LimitLevel.ALL

    def leaner(self, run: Run) -> Run:
        """The run as its next request may be made; one inside another is of the same turn."""
        rung = self.rung_of(run.id.partition("/")[0])
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
