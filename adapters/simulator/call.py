"""The parts of a call: the parameters the bot gives, and what comes of them. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from adapters.simulator import wire
from adapters.simulator.wire import BAD_REQUEST, CallRefused, Json
from adapters.simulator.world import World


@dataclass(frozen=True, slots=True)
class SentMessage:
    """A message the bot sent, its segments exactly as it sent them; `group_id` or `user_id` says
    where.

    A `message_id` of 0 means that nobody ever got it. `via_group` is the group a temporary session
    goes through.
    """

    message_id: int
    segments: tuple[Json, ...]
    group_id: int | None = None
    user_id: int | None = None
    via_group: int = 0

    @property
    def text(self) -> str:
        """The words alone."""
        return "".join(
            str(segment["data"].get("text", ""))
            for segment in self.segments
            if segment["type"] == "text"
        )

    @property
    def words(self) -> str:
        """The words, also those of a merged forward, a line for each of its messages."""
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
    """A sign of the bot's without words: a reaction to a message (`emoji_id`; `taken_back`), a poke
    of somebody, or typing to somebody; or what admins do: a mute of so many `seconds`, a card, a
    message taken back or kept; or an answer: a new friend, a group joined, a refusal.
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
    """An action's result: what the bot is told, the events it causes, and the message it sent or
    the gesture it made, if any.
    """

    data: Any = None
    events: tuple[Json, ...] = ()
    sent: SentMessage | None = None
    gesture: Gesture | None = None


@dataclass(frozen=True, slots=True)
class CallAnswer:
    """The frame that answers a call, and what was done (nothing, where it was refused)."""

    frame: Json
    done: Done = Done()


class Params:
    """The parameters of a call, read as the server reads them; every method raises Refusal for a
    bad one.
    """

    def __init__(self, values: Mapping[str, Any]) -> None:
        self._values = values

    def get(self, name: str) -> Any:
        """The value as it came, None where it is absent."""
        return self._values.get(name)

    def has(self, name: str) -> bool:
        """Present, and not empty or 0."""
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
    """A call of an action there is: its parameters, and the frame it came in."""

    action: str
    params: Params
    frame: Json

    def confirm(self, done: Done) -> CallAnswer:
        """The answer to a call that was carried out."""
        return CallAnswer(wire.ok(done.data, self.frame.get("echo", "")), done)

    def refuse(self, refusal: CallRefused, done: Done = Done()) -> CallAnswer:
        """The answer that says "not done", whatever was done."""
        missing = None if refusal.retcode == BAD_REQUEST else ""
        return CallAnswer(
            wire.failed(refusal.retcode, refusal.wording, self.frame.get("echo", missing)), done
        )
