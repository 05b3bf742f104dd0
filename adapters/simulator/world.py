"""The world the simulated account lives in: its groups, the people in them, and what was said. Pure
state, no I/O.

Like NapCat it remembers the last 5000 messages in memory and knows them by ids made of a hash
(onebot.md 3.2).
"""

from __future__ import annotations

import hashlib
import math
import time
import zlib
from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from adapters.simulator import cq, wire
from adapters.simulator.wire import NOT_DONE, Json, Refusal
from bot.domain.events import Role

REMEMBERED = 5000
UNKNOWN_MESSAGE = "消息不存在"
NO_FILE = "file not found"
MEDIA = frozenset({"image", "record", "video", "file"})


@dataclass(frozen=True, slots=True)
class Person:
    """Somebody on QQ; in a group with a `card` (their name there, often empty) and a `role`."""

    user_id: int
    nickname: str
    card: str = ""
    role: Role = "member"

    @property
    def name(self) -> str:
        return self.card or self.nickname or str(self.user_id)


@dataclass(slots=True)
class Group:
    """A group the account is in; members by their number, the account among them."""

    group_id: int
    name: str
    members: dict[int, Person] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Stored:
    """A message as the world remembers it, its segments as an event would show them.

    `group_id` is None in private, where `peer_id` is the other person and `via_group` the group a
    temporary session came through (0: a friend).
    """

    message_id: int
    sequence: int
    time: float
    author: int
    segments: tuple[Json, ...]
    group_id: int | None = None
    peer_id: int = 0
    via_group: int = 0


class World:
    """One account and everything around it.

    `now` gives seconds since 1970; `reports_self` makes the account report its own messages
    (`message_sent`), which NapCat does only when asked to. `online` is what heartbeats and
    get_status say. `muted` has, for each group where the account may not speak, until when.
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
        self.muted: dict[int, float] = {}
        self.now = now
        self.groups: dict[int, Group] = {}
        self.friends: dict[int, Person] = {}
        self.forwards: dict[str, list[Json]] = {}
        self._sessions: set[tuple[int, int]] = set()
        self._messages: OrderedDict[int, Stored] = OrderedDict()
        self._remembered = remembered
        self._sequence = 0

    # --- people ---------------------------------------------------------------------------------------

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

    def group(self, group_id: int) -> Group:
        """Raises Refusal where the account is in no such group."""
        if group_id not in self.groups:
            raise Refusal(NOT_DONE, f"群聊 {group_id} 不存在")
        return self.groups[group_id]

    def member(self, group_id: int, user_id: int) -> Person:
        """Raises Refusal where the group or the member is unknown."""
        members = self.group(group_id).members
        if user_id not in members:
            raise Refusal(NOT_DONE, f"群({group_id})成员{user_id}不存在")
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

    # --- muting ---------------------------------------------------------------------------------------

    def mute(self, group_id: int, seconds: float) -> Json:
        """Somebody in charge keeps the account from speaking for so long; the notice it gets.
        Raises Refusal.
        """
        self.group(group_id)
        self.muted[group_id] = self.now() + seconds
        return self._ban(group_id, "ban", seconds)

    def lift(self, group_id: int) -> Json:
        """The account may speak again; the notice it gets. Raises Refusal for an unknown group."""
        self.group(group_id)
        self.muted.pop(group_id, None)
        return self._ban(group_id, "lift_ban", 0)

    def is_muted(self, group_id: int) -> bool:
        """Whether the account may not speak there now; nothing is said when the time is over."""
        return self.muted.get(group_id, 0.0) > self.now()

    def _ban(self, group_id: int, kind: str, seconds: float) -> Json:
        members = self.groups[group_id].members.values()
        operator = next(
            (person.user_id for person in members if person.role in ("owner", "admin")), 0
        )
        return wire.notice(
            self.self_id,
            self.now(),
            "group_ban",
            group_id=group_id,
            user_id=self.self_id,
            sub_type=kind,
            operator_id=operator,
            duration=math.ceil(seconds),  # whole seconds; 0 would lift it
        )

    # --- messages -------------------------------------------------------------------------------------

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
        self._sequence += 1
        now = self.now()
        kind, peer = (1, peer_id) if group_id is None else (2, group_id)
        stored = Stored(
            message_id=self._new_id(f"{now:.6f}.{self._sequence}|{kind}|{peer}"),
            sequence=self._sequence,
            time=now,
            author=author,
            segments=tuple(segments),
            group_id=group_id,
            peer_id=peer_id,
            via_group=via_group,
        )
        if via_group:
            self._sessions.add((peer_id, via_group))
        self._messages[stored.message_id] = stored
        while len(self._messages) > self._remembered:
            self._messages.popitem(last=False)
        return stored

    def _new_id(self, seed: str) -> int:
        """The first 4 bytes of a hash without the top bit, 1 to 2**31-1, that no remembered message
        has.
        """
        message_id = 0
        while not message_id or message_id in self._messages:
            digest = hashlib.md5(seed.encode(), usedforsecurity=False).digest()
            message_id = int.from_bytes(digest[:4], "big") & 0x7FFFFFFF
            seed += "'"
        return message_id

    def knows(self, message_id: int) -> bool:
        return message_id in self._messages

    def message(self, message_id: int) -> Stored:
        """Raises Refusal for an id that never was, was recalled, or was forgotten."""
        if message_id not in self._messages:
            raise Refusal(NOT_DONE, UNKNOWN_MESSAGE)
        return self._messages[message_id]

    def medium(self, name: str) -> Json:
        """The newest picture, voice, video or file of that name or `file_id`, as its segment shows
        it.

        Raises Refusal where no remembered message has one.
        """
        for stored in reversed(self._messages.values()):
            for segment in stored.segments:
                data = segment["data"]
                if segment["type"] in MEDIA and name in (data.get("file"), data.get("file_id")):
                    return dict(data)
        raise Refusal(NOT_DONE, NO_FILE)

    def history(self, *, group_id: int | None = None, peer_id: int = 0) -> list[Stored]:
        """What was said there, oldest first."""
        return [
            stored
            for stored in self._messages.values()
            if stored.group_id == group_id and (group_id is not None or stored.peer_id == peer_id)
        ]

    def recall(self, message_id: int, *, operator_id: int | None = None) -> Json:
        """Take a message back (the author does, unless somebody else is named); the notice
        everybody gets.

        Raises Refusal for an unknown message.
        """
        stored = self.message(message_id)
        del self._messages[message_id]
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
        """Keep the messages of a merged forward (events as in `event`); the id a `forward` segment
        carries.
        """
        forward_id = str(
            7_000_000_000_000_000_000 + len(self.forwards)
        )  # 19 digits, beyond what a double holds
        self.forwards[forward_id] = messages
        return forward_id

    def event(self, stored: Stored) -> Json:
        """The message as an event, `message_sent` if it is the account's own (onebot.md 3.1 and
        3.3).
        """
        own = stored.author == self.self_id
        segments = list(stored.segments)
        return {
            "self_id": self.self_id,
            "user_id": stored.author,
            "time": int(stored.time),
            "message_id": stored.message_id,
            "message_seq": stored.message_id,
            "real_id": stored.message_id,
            "real_seq": str(stored.sequence),
            "message_type": "private" if stored.group_id is None else "group",
            "sender": self._sender(stored),
            "raw_message": cq.write(segments),
            "font": 14,
            "sub_type": self._sub_type(stored),
            "message": segments,
            "message_format": "array",
            "post_type": "message_sent" if own else "message",
            **self._place(stored),
            **({"message_sent_type": "self"} if own else {}),
        }

    @staticmethod
    def _sub_type(stored: Stored) -> str:
        if stored.group_id is not None:
            return "normal"
        return "group" if stored.via_group else "friend"

    def _sender(self, stored: Stored) -> Json:
        if stored.group_id is not None:
            person = self.groups[stored.group_id].members[stored.author]
            return {
                "user_id": person.user_id,
                "nickname": person.nickname,
                "card": person.card,
                "role": person.role,
            }
        known = self.person(stored.author)
        nickname = "临时会话" if stored.via_group else known.nickname if known else ""
        return {"user_id": stored.author, "nickname": nickname, "card": ""}

    def _place(self, stored: Stored) -> Json:
        if stored.group_id is None:
            temporary: dict[str, Any] = (
                {"group_id": stored.via_group, "temp_source": 0} if stored.via_group else {}
            )
            return {"target_id": stored.peer_id, **temporary}
        place: dict[str, Any] = {
            "group_id": stored.group_id,
            "group_name": self.groups[stored.group_id].name,
        }
        if stored.author == self.self_id:
            place["target_id"] = stored.group_id
        return place


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
