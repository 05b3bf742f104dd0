"""The world the simulated account lives in: its groups, the people in them, and what was said. Pure
state, no I/O."""

from __future__ import annotations

import time
import zlib
from collections.abc import Callable, Iterable, Sequence

from adapters.simulator import wire
from adapters.simulator.messages import REMEMBERED, Messages, Stored
from adapters.simulator.mutes import SimulatedMutes
from adapters.simulator.people import Group, Person
from adapters.simulator.wire import NOT_DONE, CallRefused, Json
from bot.domain.events import Role

LAGRANGE_ONLY = frozenset({"set_group_reaction"})  # what NapCat knows by another name


class World:
    """One account and everything around it.

    `now` gives seconds since 1970; `reports_self` makes the account report its own messages
    (`message_sent`), which NapCat does only when asked to. `online` is what heartbeats and
    get_status say. With `is_deaf` the account's events come to nobody, while heartbeats and answers
    do. With `renumbers` histories tell messages under other ids than events did, with
    `misquotes` so do the quotes in what people say. `contents` are those of shared files and
    voices, by name; the `unsupported` actions are answered as ones the server does not know.
    """

    def __init__(
        self,
        *,
        self_id: int = 10001,
        nickname: str = "bot",
        remembered: int = REMEMBERED,
        reports_self: bool = False,
        now: Callable[[], float] = time.time,
    ) -> None:
        self.self_id = self_id
        self.nickname = nickname
        self.reports_self = reports_self
        self.online = True
        self.is_deaf = self.renumbers = self.misquotes = False
        self.now = now
        self.groups: dict[int, Group] = {}
        self.friends: dict[int, Person] = {}
        self.mutes = SimulatedMutes(self_id, self.groups, now=now)
        self.forwards: dict[str, list[Json]] = {}
        self.contents: dict[str, bytes] = {}
        self.petitions: dict[str, tuple[Person, int] | None] = {}  # by flag; None once answered
        self.app_name = "NapCat.Onebot"
        self.unsupported = set(LAGRANGE_ONLY)
        self._sessions: set[tuple[int, int]] = set()
        self.messages = Messages(remembered)

    # --- people -----------------------------------------------------------------------------------

    def add_group(
        self,
        group_id: int,
        name: str = "",
        members: Iterable[Person] = (),
        *,
        role: Role = "member",
    ) -> Group:
        """Put the account, in this role, and these people into a new group."""
        account = Person(self.self_id, self.nickname, role=role)
        group = Group(group_id, name, {person.user_id: person for person in (account, *members)})
        self.groups[group_id] = group
        return group

    def add_friend(self, person: Person) -> Person:
        self.friends[person.user_id] = person
        return person

    def group(self, group_id: int | None = None) -> Group:
        """The first group unless one is named. Raises Refusal where the account is not in it."""
        if group_id is None:
            group_id = next(iter(self.groups), 0)
        if group_id not in self.groups:
            raise CallRefused(NOT_DONE, f"群聊 {group_id} 不存在")
        return self.groups[group_id]

    def member(self, group_id: int, user_id: int) -> Person:
        """Raises Refusal where the group or the member is unknown."""
        members = self.group(group_id).members
        if user_id not in members:
            raise CallRefused(NOT_DONE, f"群({group_id})成员{user_id}不存在")
        return members[user_id]

    def join(self, group_id: int, name: str, *, user_id: int | None = None) -> Person:
        """The member of that name or number, who joins with a number of its own if there is none
        yet.
        """
        members = self.group(group_id).members
        if user_id is None:
            known = (
                person for person in members.values() if person.name.casefold() == name.casefold()
            )
            if (person := next(known, None)) is not None:
                return person
            user_id = stable_number(name)
            while self.person(user_id) is not None:
                user_id += 1
        return members.setdefault(user_id, Person(user_id, name))

    def person(self, user_id: int) -> Person | None:
        """Anybody the account can write to or see: itself, a friend, a member of one of its
        groups.
        """
        if user_id == self.self_id:
            return Person(self.self_id, self.nickname)
        if user_id in self.friends:
            return self.friends[user_id]
        return next(
            (group.members[user_id] for group in self.groups.values() if user_id in group.members),
            None,
        )

    def reaches(self, user_id: int, *, via_group: int = 0) -> bool:
        """Whether the account can write to them: it knows them, or they wrote to it through that
        group before.
        """
        return self.person(user_id) is not None or (user_id, via_group) in self._sessions

    def people(self, group_id: int) -> dict[str, int]:
        """Everybody's number by every name they go by in the group, the account's nickname
        included.
        """
        names: dict[str, int] = {}
        for person in self.group(group_id).members.values():
            names |= {name: person.user_id for name in (person.nickname, person.card) if name}
        return names

    # --- messages ---------------------------------------------------------------------------------

    def post(
        self,
        segments: Sequence[Json],
        *,
        author: int,
        group_id: int | None = None,
        peer_id: int = 0,
        via_group: int = 0,
    ) -> Stored:
        """Put a message into a group or a private session, and remember it."""
        if via_group:
            self._sessions.add((peer_id, via_group))
        return self.messages.keep(
            segments,
            time=self.now(),
            author=author,
            group_id=group_id,
            peer_id=peer_id,
            via_group=via_group,
        )

    def recall(self, message_id: int, *, operator_id: int | None = None) -> Json:
        """Take a message back (the author does, unless somebody else is named); the notice
        everybody gets.

        Raises Refusal for an unknown message.
        """
        stored = self.messages.forget(message_id)
        now = self.now()
        if stored.group_id is None:
            return wire.notice(
                self.self_id, now, "friend_recall", user_id=stored.peer_id, message_id=message_id
            )
        return wire.notice(
            self.self_id,
            now,
            "group_recall",
            group_id=stored.group_id,
            user_id=stored.author,
            operator_id=operator_id or stored.author,
            message_id=message_id,
        )

    def add_forward(self, messages: list[Json]) -> str:
        """Keep the messages of a merged forward, each an event; the id of a `forward` segment."""
        # 19 digits, beyond what a double holds.
        forward_id = str(7_000_000_000_000_000_000 + len(self.forwards))
        self.forwards[forward_id] = messages
        return forward_id


def other_id(message_id: int) -> int:
    """The id of a message where a server numbers it anew; that of such an id is the first one."""
    return message_id ^ 0x2AAAAAAA


def stable_number(name: str) -> int:
    """A QQ number for a name, ten digits, the same in every run."""
    return 1_000_000_000 + zlib.crc32(name.encode("utf-8", "replace")) % 1_000_000_000


def demo_world(*, nickname: str = "bot", now: Callable[[], float] = time.time) -> World:
    """The account 10001 in one group, 4242, with user1 (its owner) and user2, who are friends of
    the account too.
    """
    world = World(nickname=nickname, now=now)
    people = (Person(20001, "user1", role="owner"), Person(20002, "user2"))
    world.add_group(4242, "FrostAgent", people)
    for person in people:
        world.add_friend(Person(person.user_id, person.nickname))
    return world
