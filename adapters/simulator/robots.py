"""Other people's robots in the group, which answer whatever the bot says: loops of robots are tried
with them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from adapters.simulator.call import SentMessage
from adapters.simulator.people import Person
from adapters.simulator.shown import event_of
from adapters.simulator.sockets import SimulatedSockets
from adapters.simulator.wire import Json, mention, text
from adapters.simulator.world import World

NAME = "robot2"
PAUSE = 1.0  # seconds until a robot answers
TIMES = 20
ANSWER = " 你说得对"


class SimulatedRobots:
    """Those that were invited; each answers a message in its group, mentioning the account, so
    often. `on_said` is told who says what.
    """

    def __init__(
        self, world: World, sockets: SimulatedSockets, push: Callable[[Json], Awaitable[bool]]
    ) -> None:
        self._world = world
        self._sockets = sockets
        self._push = push
        self.on_said: Callable[[str, str], None] = lambda *_: None
        self._left: dict[tuple[int, int], int] = {}  # answers, by group and robot

    def invite(
        self, name: str = NAME, *, times: int = TIMES, group_id: int | None = None
    ) -> Person:
        """A robot joins, an ordinary account. Raises Refusal for an unknown group."""
        place = self._world.group(group_id).group_id
        robot = self._world.join(place, name)
        self._left[place, robot.user_id] = times
        return robot

    def hear(self, message: SentMessage) -> None:
        """The account said something: whoever has answers left gives one, a little later."""
        for (group_id, user_id), left in self._left.items():
            if group_id == message.group_id and left:
                self._left[group_id, user_id] = left - 1
                self._sockets.start(self._answer(group_id, user_id))

    async def _answer(self, group_id: int, user_id: int) -> None:
        await asyncio.sleep(PAUSE)
        world = self._world
        said = [mention(world.self_id), text(ANSWER)]
        self.on_said(world.groups[group_id].members[user_id].name, ANSWER.strip())
        stored = world.post(said, author=user_id, group_id=group_id)
        await self._push(event_of(world, stored))
