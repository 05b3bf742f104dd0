"""The messages the account remembers: like NapCat the last 5000, under ids made of a hash
(onebot.md 3.2).
"""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass

from adapters.simulator.wire import NOT_DONE, CallRefused, Json

REMEMBERED = 5000
UNKNOWN_MESSAGE = "消息不存在"
NO_FILE = "file not found"
MEDIA = frozenset({"image", "record", "video", "file"})


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
        """Remember a message under a new id; `time` in seconds since 1970."""
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

    def find(self, message_id: int) -> Stored:
        """Raises Refusal for an id that never was, was recalled, or was forgotten."""
        if message_id not in self._messages:
            raise CallRefused(NOT_DONE, UNKNOWN_MESSAGE)
        return self._messages[message_id]

    def forget(self, message_id: int) -> Stored:
        """Remember a message no longer. Raises Refusal for an unknown one."""
        stored = self.find(message_id)
        del self._messages[message_id]
        return stored

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
        raise CallRefused(NOT_DONE, NO_FILE)

    def history(self, *, group_id: int | None = None, peer_id: int = 0) -> list[Stored]:
        """All that was said there, oldest first."""
        return [
            stored
            for stored in self._messages.values()
            if stored.group_id == group_id and (group_id is not None or stored.peer_id == peer_id)
        ]
