"""A call's parameters and result. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from adapters.simulator import wire
from adapters.simulator.wire import BAD_REQUEST, CallRefused, Json
from adapters.simulator.world import World


@dataclass(frozen=True, slots=True)
class SentMessage:
    """A message the bot sent, with its segments unchanged, to `group_id` or `user_id`.

    A `message_id` of 0 means that it was not delivered. `via_group` is the group of a temporary
    session.
    """

    message_id: int
    segments: tuple[Json, ...]
    group_id: int | None = None
    user_id: int | None = None
    via_group: int = 0

    @property
    def text(self) -> str:
        return "".join(
            str(segment["data"].get("text", ""))
            for segment in self.segments
            if segment["type"] == "text"
        )

    @property
    def words(self) -> str:
        """The text, including that of a merged forward, a line per message."""
        nodes = [one["data"].get("content") for one in self.segments if one["type"] == "node"]
        if not nodes:
            return self.text
        return "\n".join(
            "".join(str(part["data"].get("text", "")) for part in node if part["type"] == "text")
            for node in nodes
            if isinstance(node, list)
        )


@dataclass(frozen=True, slots=True)
class Gesture:
    """An action of the bot without text: a reaction (`emoji_id`; `taken_back`), a poke, typing; an
    admin's action: a mute of that many `seconds`, a card, a recalled or pinned message; or an
    answer: a new friend, a joined group, a refusal.
    """

    kind: Literal[
        "reaction",
        "poke",
        "typing",
        "mute",
        "card",
        "recall",
        "pin",
        "friend",
        "joined",
        "admitted",
        "refusal",
    ]
    user_id: int = 0
    group_id: int | None = None
    message_id: int = 0
    emoji_id: str = ""
    taken_back: bool = False
    seconds: int = 0


@dataclass(frozen=True, slots=True)
class Done:
    """An action's result: data for the bot, caused events, and the sent message or gesture."""

    data: Any = None
    events: tuple[Json, ...] = ()
    sent: SentMessage | None = None
    gesture: Gesture | None = None


@dataclass(frozen=True, slots=True)
class CallAnswer:
    """The reply frame, and what was done (nothing, if it was refused)."""

    frame: Json
    done: Done = Done()


class Params:
    """A call's parameters, read as the server does; methods raise CallRefused."""

    def __init__(self, values: Mapping[str, Any]) -> None:
        self._values = values

    def get(self, name: str) -> Any:
        return self._values.get(name)

    def has(self, name: str) -> bool:
        """Whether it is present, and not empty or 0."""
        return bool(self._values.get(name)) and str(self._values[name]) != "0"

    def flag(self, name: str) -> bool:
        return self._values.get(name) in (True, "true")

    def number(self, name: str, default: int | None = None) -> int:
        value = self._values.get(name, default)
        if isinstance(value, str) and value.lstrip("-").isdecimal():
            return int(value)
        if isinstance(value, int | float) and not isinstance(value, bool) and value == int(value):
            return int(value)
        raise CallRefused(BAD_REQUEST, f"参数 {name} 缺失或不正确")


Action: TypeAlias = Callable[[World, Params], Done]


@dataclass(frozen=True, slots=True)
class Call:
    """A call of an existing action: its parameters and frame."""

    action: str
    params: Params
    frame: Json

    def confirm(self, done: Done) -> CallAnswer:
        return CallAnswer(wire.ok(done.data, self.frame.get("echo", "")), done)

    def refuse(self, refusal: CallRefused, done: Done = Done()) -> CallAnswer:
        """The reply of a failure, whatever was done."""
        missing = None if refusal.retcode == BAD_REQUEST else ""
        return CallAnswer(
            wire.failed(refusal.retcode, refusal.wording, self.frame.get("echo", missing)), done
        )
