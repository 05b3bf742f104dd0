"""What people say in a scenario, as OneBot segments; and what the bot said, in the script's words."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from adapters.simulator import console, shared_media
from adapters.simulator.call import SentMessage
from adapters.simulator.shared_media import Node, Nodes
from adapters.simulator.wire import Json, mention
from adapters.simulator.world import Group, World, stable_number
from tests.adapters.media import office
from tests.adapters.media.documents import text_pdf
from tests.e2e.scenarios.shelf import wav

Written: TypeAlias = "str | list[Any] | Mapping[str, Any]"
Labels: TypeAlias = Mapping[str, int]


def segments_of(written: Written, *, world: World, labels: Labels) -> list[Json]:
    """The segments of a text, of one part such as `{picture: cat.png}`, or of several of these."""
    people = world.people(world.group().group_id)

    def parts(value: Written) -> list[Json]:
        match value:
            case str():
                return console.parse_mentions(value, people, world.self_id)
            case list():
                return [segment for each in value for segment in parts(each)]
            case {"quote": label}:
                return [_segment("reply", id=str(labels[label]))]
            case {"at": name}:
                return [mention("all" if name == "all" else people[name])]
            case {"forward": list(lines)}:
                return [shared_media.forward(world, nodes(lines))]
            case _:
                ((kind, told),) = value.items()
                return [PARTS[kind](world, told)]

    def nodes(lines: list[Mapping[str, Any]]) -> Nodes:
        return [node(name, said) for line in lines for name, said in line.items()]

    def node(name: str, said: Written) -> Node:
        number = people.get(name, stable_number(name))
        match said:
            case {"forward": list(lines)}:
                return Node(number, name, nodes(lines))
            case _:
                return Node(number, name, tuple(parts(said)))

    return parts(written)


def _segment(kind: str, **data: Any) -> Json:
    return {"type": kind, "data": data}


def _voice(world: World, told: str | Mapping[str, Any]) -> Json:
    words, seconds = (told, 3) if isinstance(told, str) else (told["says"], told.get("seconds", 3))
    return shared_media.voice(world, f"voice{len(world.contents)}.amr", wav(words, seconds))


MAKERS: Mapping[str, Callable[[str], bytes]] = {
    "text": str.encode,
    "docx": office.docx,
    "xlsx": office.xlsx,
    "pptx": office.pptx,
    "epub": office.epub,
    "pdf": lambda pages: text_pdf(*pages.split("\n")),
    "zip": lambda names: office.packed(dict.fromkeys(names.split("\n"), "x")),
    "ole": office.ole_of,
}
"""What a file may be, by the key that has its text."""


def _file(world: World, told: Mapping[str, Any]) -> Json:
    content = next((make(told[key]) for key, make in MAKERS.items() if key in told), b"")
    return shared_media.file(
        world, told["name"], content[: told.get("until")], size=told.get("size"), file_id=told.get("id", "")
    )


def _card(_: World, told: str | Mapping[str, str]) -> Json:
    return _segment("json", data=told) if isinstance(told, str) else shared_media.card(**told)


PARTS: Mapping[str, Callable[[World, Any], Json]] = {
    "picture": lambda _, name: shared_media.picture(name),
    "sticker": lambda _, name: shared_media.picture(name, sticker=True),
    "face": lambda _, number: _segment("face", id=str(number)),
    "voice": _voice,
    "file": _file,
    "card": _card,
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
