"""What people say in a scenario, as OneBot segments; and what the bot said, in the script's words."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from adapters.simulator import console
from adapters.simulator.call import SentMessage
from adapters.simulator.people import Group
from adapters.simulator.wire import Json, mention
from adapters.simulator.world import World

Written: TypeAlias = "str | list[Any] | Mapping[str, Any]"
Labels: TypeAlias = Mapping[str, int]


def segments_of(written: Written, *, world: World, labels: Labels, group: Group) -> list[Json]:
    """The segments of a text, of one part such as `{picture: cat.png}`, or of several of these."""

    def parts(value: Written) -> list[Json]:
        match value:
            case str():
                people = world.people(group.group_id)
                return console.parse_mentions(value, people, world.self_id)
            case list():
                return [segment for each in value for segment in parts(each)]
            case {"quote": label}:
                return [_segment("reply", id=str(labels[label]))]
            case {"at": name}:
                people = world.people(group.group_id)
                return [mention("all" if name == "all" else people[name])]
            case _:
                ((kind, told),) = value.items()
                return [PARTS[kind](told)]

    return parts(written)


def _segment(kind: str, **data: Any) -> Json:
    return {"type": kind, "data": data}


def _picture(name: str) -> Json:
    url = f"https://multimedia.nt.qq.com.cn/{name}"
    return _segment("image", file=name, url=url, summary="", sub_type=0, file_size="4")


PARTS: Mapping[str, Callable[[Any], Json]] = {
    "picture": _picture,
    "face": lambda number: _segment("face", id=str(number)),
    "card": lambda data: _segment("json", data=data),
}
"""The parts that are more than words, and are the same wherever they are said."""


def text_of(message: SentMessage) -> str:
    """The words of a message, without the blank that stands behind a mention."""
    return message.text.strip()


def quoted_in(message: SentMessage) -> int:
    """The id of the message that it quotes, 0 for none."""
    replies = (one for one in message.segments if one["type"] == "reply")
    return next((int(reply["data"]["id"]) for reply in replies), 0)


def mentioned_in(message: SentMessage, group: Group) -> list[str]:
    """Whom it mentions, by name."""
    names = {str(person.user_id): person.name for person in group.members.values()}
    numbers = [str(one["data"]["qq"]) for one in message.segments if one["type"] == "at"]
    return [names.get(number, number) for number in numbers]


def nodes_of(message: SentMessage) -> list[str]:
    """The texts of a merged forward, in order."""
    contents = [one["data"].get("content", []) for one in message.segments if one["type"] == "node"]
    return ["".join(str(part["data"].get("text", "")) for part in content) for content in contents]
