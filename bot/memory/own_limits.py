"""The limits of a day that owners set by command for a person or a group, over restarts, and those
of single groups in the operator's file, which hold where no owner has set one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from bot.core.cluster_messages import ClusterPeers
from bot.core.ports import Store
from bot.core.query_results import Choices
from bot.memory.kept_settings import Row
from bot.policy.day_limits import Cap, DayLimits, LimitOverride
from frostagent.types.conversation import Conversation
from frostagent.types.ports import Clock

SETTING: Final = "limits"

Holder: TypeAlias = int | Conversation
"""Whose limit: a person's, or a group's."""


class LimitsSet(Struct, frozen=True):
    """The limits set for good, and those for a day that ends then (seconds since 1970)."""

    good: LimitOverride | None = None
    today: LimitOverride | None = None
    until: float = 0.0

    def at(self, now: float) -> LimitOverride | None:
        """The one that holds at that time."""
        return self.today if self.today is not None and now < self.until else self.good


class OwnLimits(Row[Holder, LimitsSet]):
    """Keeps them."""

    def __init__(
        self,
        *,
        store: Store,
        choices: Choices,
        clock: Clock,
        neighbours: ClusterPeers | None = None,
    ) -> None:
        self._clock = clock
        self.filed: Callable[[], Mapping[int, LimitOverride]] = dict  # by the group's number
        super().__init__(
            SETTING,
            dict[str, LimitsSet],
            key=_holder,
            lasts=self._lasts_on,
            store=store,
            choices=choices,
            neighbours=neighbours,
        )

    def of(self, whose: Holder) -> LimitOverride | None:
        """The limits that hold for them now; None where that is the usual."""
        own = self._values.get(whose) if self._values else None
        return own.at(self._clock.now()) if own is not None else None

    def cap(self, whose: Holder, limits: DayLimits) -> Cap:
        """The most they may take today, where everybody else has these limits."""
        usual = limits.user if isinstance(whose, int) else limits.group
        if not isinstance(whose, int) and (filed := self.filed().get(whose.session_id)):
            usual = filed.over(usual)
        own = self.of(whose)
        return usual if own is None else own.over(usual)

    @property
    def are_some(self) -> bool:
        """Whether there is any."""
        return bool(self._values or self.filed())

    def all(self) -> Mapping[Holder, LimitOverride]:
        """All that hold now."""
        now, own = self._clock.now(), self._values.items()
        return {whose: cap for whose, one in own if (cap := one.at(now)) is not None}

    async def keep(self, whose: Holder, cap: LimitOverride | None, *, until: float = 0.0) -> bool:
        """Keep to this up to `until` (seconds since 1970), or for good; None: to the usual. False
        where that cannot be written down now: nothing is changed then.
        """

        def renewed(own: LimitsSet | None) -> LimitsSet:
            return replace(own or LimitsSet(), today=cap, until=until) if until else LimitsSet(cap)

        return await self._renew(whose, renewed)

    def _lasts_on(self, own: LimitsSet) -> bool:
        return own.good is not None or own.at(self._clock.now()) is not None


def _holder(key: str) -> Holder:
    return int(key) if key.isdecimal() else Conversation.parse(key)
