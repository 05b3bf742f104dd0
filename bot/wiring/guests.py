"""Whoever joins a simulated group since a question of his is asked there once more."""

from __future__ import annotations

from collections import deque
from typing import Final

from adapters.simulator.world import World
from bot.domain.trying import Source

LONGEST_NAME: Final = 40  # characters
MOST: Final = 8
"""So many are there at a time; the one who joined first leaves."""
SOURCES: Final = 64
"""So many are known; with more, anybody's words may be among what was brought."""


class Guests:
    """Of one world, in its only group."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._home = next(iter(world.groups))
        self._joined: deque[int] = deque()
        self._sources: set[Source] = set()

    def welcome(self, who: str, source: Source | None) -> str:
        """Let somebody join, unless he is there; his name there. Nobody has the bot's."""
        own = self._world.people(self._home)
        name = " ".join(who.split())[:LONGEST_NAME] or "user1"
        taken = {one.casefold() for one, number in own.items() if number == self._world.self_id}
        while name.casefold() in taken:
            name += "·"
        if source is not None and len(self._sources) < SOURCES:
            self._sources.add(source)
        person = self._world.join(self._home, name)
        if person.user_id not in own.values():
            self._joined.append(person.user_id)
        while len(self._joined) > MOST:
            del self._world.group(self._home).members[self._joined.popleft()]
        return person.name

    def are_from(self, user: int, group: int) -> bool:
        """Whether anything that this person said, or anybody in this group, may be among it."""
        return len(self._sources) >= SOURCES or any(one.is_of(user, group) for one in self._sources)
