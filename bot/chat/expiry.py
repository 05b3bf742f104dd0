"""Suspended turns that nobody decided about in time."""

from __future__ import annotations

from bot.approvals.tool_calls import ToolApprovals
from bot.chat.lanes import Lanes
from bot.chat.suspended import SuspendedTurns
from bot.chat.tasks import Resume, Work
from frostagent.types.ports import Clock

LOOK = 5.0  # seconds between two looks at what waits for somebody's word


class Expiry:
    """Lets them go on, each once; where a lane is full, when it has room."""

    def __init__(
        self,
        *,
        suspensions: SuspendedTurns,
        approvals: ToolApprovals,
        lanes: Lanes[Work],
        clock: Clock,
    ) -> None:
        self._suspensions = suspensions
        self._approvals = approvals
        self._lanes = lanes
        self._clock = clock

    async def run(self) -> None:
        """Look at all that wait, until cancelled."""
        denied: set[tuple[str, float]] = set()  # a turn may wait again, then with another time
        while True:
            await self._clock.sleep(LOOK)
            expired = {
                (turn_id, run.expires): run.conversation
                for turn_id, run in self._suspensions.waiting().items()
                if run.expires <= self._clock.now()
            }
            denied &= expired.keys()
            for (turn_id, expires), where in expired.items():
                work = Resume(turn_id, {}, self._suspensions.question(turn_id))
                if (turn_id, expires) not in denied and self._lanes.put(where, work):
                    denied.add((turn_id, expires))
                    self._approvals.expire(turn_id)
