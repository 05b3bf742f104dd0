"""Shares of a day's limits at which the owner hears of it, once each."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, TypeAlias

from bot.domain.events import Conversation
from bot.domain.tongue import Tell, filled
from bot.policy.limits import Amount

TOLD: Final = (0.8, 1.0)  # shares of a limit at which the owner is told

NEAR: Final = (
    "{whose}今天的额度用了 {percent:.0f}%（{amount}）：{then}",
    "{whose}: {percent:.0f} % of what may be spent today is spent ({amount}). {then}",
)
THEN: Final = (
    "用满就不再回答，到零点重新算起。",
    "Once all is, nobody there is answered until midnight.",
)
OVER: Final = ("今天不再回答，到零点重新算起。", "Nobody there is answered until midnight.")
GROUP: Final = ("群 {group} ", "Group {group}")
EVERYWHERE: Final = ("所有会话", "All conversations")

Whose: TypeAlias = int | Conversation | str
"""Whose sum: a person's, a group's, or that of all."""


class Marks:
    """Knows how much of which limit is used. `tell` reaches the owner."""

    def __init__(self, tell: Tell) -> None:
        self._tell = tell
        self._told: dict[Whose, float] = {}

    def know(self, shares: Mapping[Whose, float]) -> None:
        """So much is used, which the owner has heard, or does elsewhere."""
        self._told |= shares

    def clear(self) -> None:
        """A day begins."""
        self._told.clear()

    def reach(self, key: Whose, share: float, amount: Amount) -> None:
        """So much is used by now. The owner hears of all, and of a group; of a person only that
        person does.
        """
        told = self._told.get(key, 0.0)
        self._told[key] = share
        if isinstance(key, int) or share < TOLD[0]:  # as nearly always
            return
        if not any(told < mark <= share for mark in TOLD):
            return
        whose, then = EVERYWHERE, OVER if share >= 1 else THEN
        if isinstance(key, Conversation):
            whose = filled(GROUP, group=key.session_id)
        told_of = told_amount(amount)
        self._tell(filled(NEAR, whose=whose, percent=100 * share, amount=told_of, then=then))


def told_amount(amount: Amount) -> str:
    """As people read it: `$0.0123, 45678 token`."""
    return f"${amount.cost:.4f}, {amount.tokens:.0f} token"
