"""Alerts to owners when a daily limit is nearly used and when it is used up, once each. Alerts
about the total limit and about groups are sent at once; people, who may be many, share one message.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Final

from bot.budget.limits import Amount, Whose, percent_of
from bot.core.calendar_days import midnight
from bot.core.conversation import Conversation
from bot.core.language import CATALOGUE, MORE_PEOPLE, Bilingual, NotifyOwners, Phrase, join_lines

THRESHOLDS: Final = (0.8, 1.0)  # shares of a limit

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


class LimitAlerts:
    """Remembers which share of each limit owners have been alerted to. `tell` notifies the
    `owners`, who have no limit of their own.
    """

    def __init__(
        self, tell: NotifyOwners, owners: Collection[int] = (), *, now: Callable[[], float]
    ) -> None:
        self._tell = tell
        self._now = now
        self._owners = owners
        self._known: dict[Whose, float] = {}
        # People past a threshold who are in no alert yet: the share, and when.
        self._people: dict[int, tuple[float, float]] = {}

    def acknowledge(self, shares: Mapping[Whose, float]) -> None:
        """Record shares that need no alert: owners know them, or another process alerts them."""
        self._known |= shares

    def clear(self) -> None:
        """Start a new day."""
        self._known.clear()

    def record(self, key: Whose, share: float, amount: Amount) -> None:
        """Record the share used now, and alert owners if it passed a threshold."""
        known = self._known.get(key, 0.0)
        self._known[key] = share
        if share < THRESHOLDS[0]:  # the usual case
            return
        if not any(known < threshold <= share for threshold in THRESHOLDS):
            return
        if isinstance(key, int):
            if key not in self._owners:
                self._people[key] = share, self._now()
            return
        whose, then = EVERYWHERE.fill(), OVER if share >= 1 else THEN
        if isinstance(key, Conversation):
            whose = GROUP.fill(group=key.session_id)
        sums = f"${amount.cost:.4f}, {amount.tokens:.0f} token"
        self._tell(NEAR.fill(whose=whose, percent=percent_of(share), amount=sums, then=then))

    def take_people(self) -> Bilingual | None:
        """The alert about people who passed a threshold since the last one, yesterday's first; None
        if there are none.
        """
        begin = midnight(self._now())
        before = [who for who, (_, at) in self._people.items() if at < begin]
        told = [
            PERSON.fill(user=who, percent=percent_of(self._people.pop(who)[0]))
            for who in before or [*self._people]
        ]
        line = YESTERDAY if before else PEOPLE
        return line.fill(people=join_lines(told, more=MORE_PEOPLE)) if told else None
