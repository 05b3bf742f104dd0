"""Shares of a day's limits at which the owner hears of it, once each: at once of all and of a
group, of people, who may be many, together.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Final, TypeAlias

from bot.core.language import CATALOGUE, MORE_PEOPLE, join_lines
from bot.policy.calendar_days import midnight
from bot.policy.day_limits import Amount, percent_of
from frostagent.text.language import Bilingual, NotifyOwners, Phrase
from frostagent.types.conversation import Conversation

TOLD: Final = (0.8, 1.0)  # shares of a limit at which the owner is told

NEAR: Final = Phrase(
    "{whose}今天的额度用了 {percent}%（{amount}）：{then}",
    "{whose}: {percent} % of what may be spent today is spent ({amount}). {then}",
)
THEN: Final = Phrase(
    "用满就不再回答，到零点重新算起。", "Once all is, nobody there is answered until midnight."
)
OVER: Final = Phrase("今天不再回答，到零点重新算起。", "Nobody there is answered until midnight.")
GROUP: Final = Phrase("群 {group} ", "Group {group}")
EVERYWHERE: Final = Phrase("所有会话", "All conversations")

PEOPLE: Final = Phrase(
    "个人一天的额度快用完或已用完的：{people}。用完的人到零点前不再得到回答。",
    "These people have used most of what each may take in a day: {people}. Who has used all "
    "of it is not answered until midnight.",
)
YESTERDAY: Final = Phrase(
    "昨天个人一天的额度快用完或已用完的：{people}。",
    "Yesterday these people used most of what each may take in a day: {people}.",
)
PERSON: Final = Phrase("{user}（{percent}%）", "{user} ({percent} %)")
CATALOGUE.register(__name__, globals())

Whose: TypeAlias = int | Conversation | str
"""Whose sum: a person's, a group's, or that of all."""


class Marks:
    """Knows how much of which limit is used. `tell` reaches the `owners`, who have none of their
    own.
    """

    def __init__(
        self, tell: NotifyOwners, owners: Collection[int] = (), *, now: Callable[[], float]
    ) -> None:
        self._tell = tell
        self._now = now
        self._owners = owners
        self._told: dict[Whose, float] = {}
        # Who reached a mark, and is not told of yet: how much, and when.
        self._people: dict[int, tuple[float, float]] = {}

    def know(self, shares: Mapping[Whose, float]) -> None:
        """So much is used, which the owner has heard, or does elsewhere."""
        self._told |= shares

    def clear(self) -> None:
        """A day begins."""
        self._told.clear()

    def reach(self, key: Whose, share: float, amount: Amount) -> None:
        """So much is used by now."""
        told = self._told.get(key, 0.0)
        self._told[key] = share
        if share < TOLD[0]:  # as nearly always
            return
        if not any(told < mark <= share for mark in TOLD):
            return
        if isinstance(key, int):
            if key not in self._owners:
                self._people[key] = share, self._now()
            return
        whose, then = EVERYWHERE.fill(), OVER if share >= 1 else THEN
        if isinstance(key, Conversation):
            whose = GROUP.fill(group=key.session_id)
        told_of = told_amount(amount)
        self._tell(NEAR.fill(whose=whose, percent=percent_of(share), amount=told_of, then=then))

    def people(self) -> Bilingual | None:
        """A line of the people who reached a mark since it was asked last, of those of the day
        before first; None where nobody did.
        """
        begin = midnight(self._now())
        before = [who for who, (_, at) in self._people.items() if at < begin]
        told = [
            PERSON.fill(user=who, percent=percent_of(self._people.pop(who)[0]))
            for who in before or [*self._people]
        ]
        line = YESTERDAY if before else PEOPLE
        return line.fill(people=join_lines(told, more=MORE_PEOPLE)) if told else None


def told_amount(amount: Amount) -> str:
    """As people read it: `$0.0123, 45678 token`."""
    return f"${amount.cost:.4f}, {amount.tokens:.0f} token"
