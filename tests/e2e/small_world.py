"""A world in which it shows how often somebody looked at what was said."""

from __future__ import annotations

from adapters.simulator.world import REMEMBERED, Messages, Person, Stored, World
from tests.e2e.test_watching import OWNER

GROUP, ASKER = 4242, 20002


class CountedMessages(Messages):
    looks = 0

    def history(self, *, group_id: int | None = None, peer_id: int = 0) -> list[Stored]:
        self.looks += 1
        return super().history(group_id=group_id, peer_id=peer_id)


class SmallWorld(World):
    """A group and two friends, and how often somebody looked at what was said: `looks`."""

    def __init__(self, *, reports_self: bool) -> None:
        super().__init__(reports_self=reports_self)
        people = (Person(OWNER, "user1", role="owner"), Person(ASKER, "user2"))
        self.add_group(GROUP, "FrostAgent", people)
        for person in people:
            self.add_friend(person)
        self.messages = self._counted = CountedMessages(REMEMBERED)

    @property
    def looks(self) -> int:
        return self._counted.looks
