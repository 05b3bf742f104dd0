"""Where the account may not speak: alone, or with the whole group; and the notices of it. Pure
state.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

from adapters.simulator import wire
from adapters.simulator.people import Group
from adapters.simulator.wire import NOT_DONE, CallRefused, Json

FOR_GOOD = -1  # the duration that a notice of a whole group's mute has


class SimulatedMutes:
    """The groups where the account may not speak now. Each change gives the notice the account
    gets, and raises Refusal for an unknown group.
    """

    def __init__(
        self, self_id: int, groups: Mapping[int, Group], *, now: Callable[[], float]
    ) -> None:
        self._self_id = self_id
        self._groups = groups
        self._now = now
        self._until: dict[int, float] = {}
        self._whole: set[int] = set()

    def mute(self, group_id: int, seconds: float) -> Json:
        """Somebody in charge keeps the account from speaking for so long."""
        group = self._group(group_id)
        self._until[group_id] = self._now() + seconds
        # whole seconds; 0 would lift it
        return self._ban(group, "ban", self._self_id, math.ceil(seconds))

    def lift(self, group_id: int) -> Json:
        """The account may speak again."""
        group = self._group(group_id)
        self._until.pop(group_id, None)
        return self._ban(group, "lift_ban", self._self_id, 0)

    def mute_all(self, group_id: int) -> Json:
        """Nobody but those in charge may speak."""
        group = self._group(group_id)
        self._whole.add(group_id)
        return self._ban(group, "ban", 0, FOR_GOOD)

    def lift_all(self, group_id: int) -> Json:
        """Everybody may speak again."""
        group = self._group(group_id)
        self._whole.discard(group_id)
        return self._ban(group, "lift_ban", 0, 0)

    def is_muted(self, group_id: int) -> bool:
        """Whether the account may not speak there now; nothing is said when the time is over."""
        return self.until(group_id) > 0 or (
            self.is_whole(group_id)
            and self._groups[group_id].members[self._self_id].role == "member"
        )

    def is_whole(self, group_id: int) -> bool:
        """Whether the whole group is muted."""
        return group_id in self._whole

    def until(self, group_id: int) -> float:
        """Until when the account itself is muted there; 0 where it is not."""
        end = self._until.get(group_id, 0.0)
        return end if end > self._now() else 0.0

    def _group(self, group_id: int) -> Group:
        if group_id not in self._groups:
            raise CallRefused(NOT_DONE, f"群聊 {group_id} 不存在")
        return self._groups[group_id]

    def _ban(self, group: Group, kind: str, whom: int, seconds: int) -> Json:
        in_charge = (person.user_id for person in group.members.values() if person.role != "member")
        return wire.notice(
            self._self_id,
            self._now(),
            "group_ban",
            group_id=group.group_id,
            user_id=whom,
            sub_type=kind,
            operator_id=next(in_charge, 0),
            duration=seconds,
        )
