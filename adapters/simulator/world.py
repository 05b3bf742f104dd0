"""The simulated account's world: its groups, their members, and messages. Pure state, no I/O."""

from __future__ import annotations

import hashlib
import math
import time
import zlib
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from adapters.simulator import wire
from adapters.simulator.wire import NOT_DONE, CallRefused, Json
from bot.core.events import Role


@dataclass(frozen=True, slots=True)
class Person:
    """A person on QQ; in a group with a `card` (their name there, often empty) and a `role`.
    `is_robot`: an official QQ bot.
    """

    user_id: int
    nickname: str
    card: str = ""
    role: Role = "member"
    is_robot: bool = False

    @property
    def name(self) -> str:
        return self.card or self.nickname or str(self.user_id)


@dataclass(slots=True)
class Group:
    """A group the account is in; members by number, including the account."""

    group_id: int
    name: str
    members: dict[int, Person] = field(default_factory=dict)


REMEMBERED = 5000
UNKNOWN_MESSAGE = "消息不存在"
NO_FILE = "file not found"
MEDIA = frozenset({"image", "record", "video", "file"})


@dataclass(frozen=True, slots=True)
class Stored:
    """A stored message, its segments as in an event.

    `group_id` is None in private, where `peer_id` is the other person and `via_group` the group of
    a temporary session (0: a friend).
    """

    message_id: int
    sequence: int
    time: float
    author: int
    segments: tuple[Json, ...]
    group_id: int | None = None
    peer_id: int = 0
    via_group: int = 0


class Messages:
    """The last `remembered` messages, oldest first."""

    def __init__(self, remembered: int) -> None:
        self._messages: OrderedDict[int, Stored] = OrderedDict()
        self._remembered = remembered
        self._sequence = 0

    def keep(
        self,
        segments: Sequence[Json],
        *,
        time: float,
        author: int,
        group_id: int | None,
        peer_id: int,
        via_group: int,
    ) -> Stored:
        """Store a message under a new id; `time` in seconds since 1970."""
        self._sequence += 1
        kind, peer = (1, peer_id) if group_id is None else (2, group_id)
        stored = Stored(
            message_id=self._new_id(f"{time:.6f}.{self._sequence}|{kind}|{peer}"),
            sequence=self._sequence,
            time=time,
            author=author,
            segments=tuple(segments),
            group_id=group_id,
            peer_id=peer_id,
            via_group=via_group,
        )
        self._messages[stored.message_id] = stored
        while len(self._messages) > self._remembered:
            self._messages.popitem(last=False)
        return stored

    def _new_id(self, seed: str) -> int:
        """An unused id: the first 4 bytes of a hash without the top bit, 1 to 2**31-1."""
        message_id = 0
        while not message_id or message_id in self._messages:
            digest = hashlib.md5(seed.encode(), usedforsecurity=False).digest()
            message_id = int.from_bytes(digest[:4], "big") & 0x7FFFFFFF
            seed += "'"
        return message_id

    def knows(self, message_id: int) -> bool:
        return message_id in self._messages

    def find(self, message_id: int) -> Stored:
        """Raises CallRefused for an unknown, recalled or dropped message."""
        if message_id not in self._messages:
            raise CallRefused(NOT_DONE, UNKNOWN_MESSAGE)
        return self._messages[message_id]

    def forget(self, message_id: int) -> Stored:
        """Drop a message. Raises CallRefused for an unknown one."""
        stored = self.find(message_id)
        del self._messages[message_id]
        return stored

    def medium(self, name: str) -> Json:
        """The latest image, voice message, video or file with this name or `file_id`, as in its
        segment.

        Raises CallRefused if there is none.
        """
        for stored in reversed(self._messages.values()):
            for segment in stored.segments:
                data = segment["data"]
                if segment["type"] in MEDIA and name in (data.get("file"), data.get("file_id")):
                    return dict(data)
        raise CallRefused(NOT_DONE, NO_FILE)

    def history(self, *, group_id: int | None = None, peer_id: int = 0) -> list[Stored]:
        """All messages there, oldest first."""
        return [
            stored
            for stored in self._messages.values()
            if stored.group_id == group_id and (group_id is not None or stored.peer_id == peer_id)
        ]


FOR_GOOD = -1  # the duration in the notice of a whole group's mute


class SimulatedMutes:
    """The groups where the account is muted. Each change returns its notice, and raises CallRefused
    for an unknown group.
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
        group = self._group(group_id)
        self._until[group_id] = self._now() + seconds
        # whole seconds; 0 would unmute
        return self._ban(group, "ban", self._self_id, math.ceil(seconds))

    def lift(self, group_id: int) -> Json:
        group = self._group(group_id)
        self._until.pop(group_id, None)
        return self._ban(group, "lift_ban", self._self_id, 0)

    def mute_all(self, group_id: int) -> Json:
        """Mute all members without a rank."""
        group = self._group(group_id)
        self._whole.add(group_id)
        return self._ban(group, "ban", 0, FOR_GOOD)

    def lift_all(self, group_id: int) -> Json:
        group = self._group(group_id)
        self._whole.discard(group_id)
        return self._ban(group, "lift_ban", 0, 0)

    def is_muted(self, group_id: int) -> bool:
        """Whether the account may not speak there now; the end of a mute sends no notice."""
        return self.until(group_id) > 0 or (
            self.is_whole(group_id)
            and self._groups[group_id].members[self._self_id].role == "member"
        )

    def is_whole(self, group_id: int) -> bool:
        return group_id in self._whole

    def until(self, group_id: int) -> float:
        """The end of the account's own mute there; 0 if there is none."""
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


LAGRANGE_ONLY = frozenset({"set_group_reaction"})  # NapCat has another name for it


class World:
    """One account and everything around it.

    `now` returns seconds since 1970. With `reports_self` the account reports its own messages
    (`message_sent`), which NapCat does only on request. `online` is what heartbeats and get_status
    report. With `is_deaf` events are lost, while heartbeats and replies are not. With `renumbers`
    histories use other message ids than events; with `misquotes` so do quotes. `contents` are those
    of shared files and voice messages, by name; `unsupported` actions are answered as unknown.
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
        """Create a group with the account, in this role, and these people."""
        account = Person(self.self_id, self.nickname, role=role)
        group = Group(group_id, name, {person.user_id: person for person in (account, *members)})
        self.groups[group_id] = group
        return group

    def add_friend(self, person: Person) -> Person:
        self.friends[person.user_id] = person
        return person

    def group(self, group_id: int | None = None) -> Group:
        """Return a group, by default the first. Raises CallRefused for an unknown one."""
        if group_id is None:
            group_id = next(iter(self.groups), 0)
        if group_id not in self.groups:
            raise CallRefused(NOT_DONE, f"群聊 {group_id} 不存在")
        return self.groups[group_id]

    def member(self, group_id: int, user_id: int) -> Person:
        """Raises CallRefused for an unknown group or member."""
        members = self.group(group_id).members
        if user_id not in members:
            raise CallRefused(NOT_DONE, f"群({group_id})成员{user_id}不存在")
        return members[user_id]

    def join(self, group_id: int, name: str, *, user_id: int | None = None) -> Person:
        """Return the member of that name or number; an unknown one joins, with a new number."""
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
        """Anyone the account can write to or see: itself, friends, members of its groups."""
        if user_id == self.self_id:
            return Person(self.self_id, self.nickname)
        if user_id in self.friends:
            return self.friends[user_id]
        return next(
            (group.members[user_id] for group in self.groups.values() if user_id in group.members),
            None,
        )

    def reaches(self, user_id: int, *, via_group: int = 0) -> bool:
        """Whether the account knows them, or they wrote to it through that group."""
        return self.person(user_id) is not None or (user_id, via_group) in self._sessions

    def people(self, group_id: int) -> dict[str, int]:
        """Numbers by every name that members have in the group, the account's included."""
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
        """Post a message to a group or a private session, and store it."""
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
        """Recall a message, as its author unless an operator is named. Returns the notice.

        Raises CallRefused for an unknown message.
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
        """Store a merged forward's messages, as events. Returns the id for a `forward`."""
        # 19 digits, more than a double can hold
        forward_id = str(7_000_000_000_000_000_000 + len(self.forwards))
        self.forwards[forward_id] = messages
        return forward_id


def other_id(message_id: int) -> int:
    """The message's id on a server that renumbers; its own inverse."""
    return message_id ^ 0x2AAAAAAA


def stable_number(name: str) -> int:
    """A QQ number of ten digits for a name, the same in every run."""
    return 1_000_000_000 + zlib.crc32(name.encode("utf-8", "replace")) % 1_000_000_000


def demo_world(*, nickname: str = "bot", now: Callable[[], float] = time.time) -> World:
    """Account 10001 in one group, 4242, with user1 (its owner) and user2, both also friends."""
    world = World(nickname=nickname, now=now)
    people = (Person(20001, "user1", role="owner"), Person(20002, "user2"))
    world.add_group(4242, "FrostAgent", people)
    for person in people:
        world.add_friend(Person(person.user_id, person.nickname))
    return world


def event_of(world: World, stored: Stored) -> Json:
    """The message as an event, `message_sent` if it is the account's (onebot.md 3.1 and 3.3)."""
    own = stored.author == world.self_id
    segments = list(stored.segments)
    return {
        "self_id": world.self_id,
        "user_id": stored.author,
        "time": int(stored.time),
        "message_id": stored.message_id,
        **_numbers(world, stored),
        "message_type": "private" if stored.group_id is None else "group",
        "sender": _sender(world, stored),
        "raw_message": wire.format_cq(segments),
        "font": 14,
        "sub_type": _sub_type(stored),
        "message": segments,
        "message_format": "array",
        "post_type": "message_sent" if own else "message",
        **_place(world, stored),
        **({"message_sent_type": "self"} if own else {}),
    }


def _numbers(world: World, stored: Stored) -> Json:
    """The server's fields for QQ's number of the message."""
    if not world.app_name.startswith("NapCat"):
        return {"message_seq": stored.sequence}
    repeated = dict.fromkeys(("message_seq", "real_id"), stored.message_id)
    return {**repeated, "real_seq": str(stored.sequence)}


def _sub_type(stored: Stored) -> str:
    if stored.group_id is not None:
        return "normal"
    return "group" if stored.via_group else "friend"


def _sender(world: World, stored: Stored) -> Json:
    if stored.group_id is not None:
        person = world.groups[stored.group_id].members[stored.author]
        return {
            "user_id": person.user_id,
            "nickname": person.nickname,
            "card": person.card,
            "role": person.role,
        }
    known = world.person(stored.author)
    nickname = "临时会话" if stored.via_group else known.nickname if known else ""
    return {"user_id": stored.author, "nickname": nickname, "card": ""}


def _place(world: World, stored: Stored) -> Json:
    if stored.group_id is None:
        temporary: dict[str, Any] = (
            {"group_id": stored.via_group, "temp_source": 0} if stored.via_group else {}
        )
        return {"target_id": stored.peer_id, **temporary}
    place: dict[str, Any] = {"group_id": stored.group_id}
    if not world.app_name.startswith("Lagrange"):  # which has it in its list of groups only
        place["group_name"] = world.groups[stored.group_id].name
    if stored.author == world.self_id:
        place["target_id"] = stored.group_id
    return place
