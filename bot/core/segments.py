"""The segments of received messages; `type` is the tag by which the codec distinguishes them.

`handle` is the short name by which `look` opens a segment (`i7`), assigned when a prompt shows it.
"""

from __future__ import annotations

from typing import ClassVar, Literal, TypeAlias

from msgspec import Struct

from bot.core.conversation import read_number
from frostagent.types import speech
from frostagent.types.errors import InvalidArguments
from frostagent.types.speech import Attachment, Face, MentionAll, Quote, Text


class Mention(Struct, frozen=True, tag="mention"):
    """@somebody; `name` is what the server says they are called, often empty."""

    user_id: int
    name: str = ""
    type: ClassVar[Literal["mention"]] = "mention"


SendSegment: TypeAlias = Text | Mention | MentionAll | Quote | Face | Attachment


def as_sent(segment: speech.SendSegment) -> SendSegment:
    """What a tool says, as it is sent. Raises InvalidArguments for a mention of no account."""
    if not isinstance(segment, speech.Mention):
        return segment
    if (user_id := read_number(segment.user_id)) is None:
        raise InvalidArguments(f"there is no account {segment.user_id[:40]!r}")
    return Mention(user_id, segment.name)


class Picture(Struct, frozen=True, tag="image"):
    """`url` expires after about two hours; `size` is in bytes, 0 if unknown; `sticker` marks custom
    emoji.
    """

    file: str = ""
    url: str = ""
    summary: str = ""
    size: int = 0
    sticker: bool = False
    handle: str = ""
    type: ClassVar[Literal["image"]] = "image"


class Sticker(Struct, frozen=True, tag="sticker"):
    """A market sticker (`mface`)."""

    id: str = ""
    package_id: str = ""
    key: str = ""
    summary: str = ""
    url: str = ""
    type: ClassVar[Literal["sticker"]] = "sticker"


class Record(Struct, frozen=True, tag="record"):
    """A voice message (silk data behind an .amr name). `seconds` is 0 if the server does not say,
    `text` the transcript, if there is one.
    """

    file: str = ""
    url: str = ""
    path: str = ""
    size: int = 0
    seconds: int = 0
    text: str = ""
    handle: str = ""
    type: ClassVar[Literal["record"]] = "record"


class Video(Struct, frozen=True, tag="video"):
    file: str = ""
    url: str = ""
    path: str = ""
    size: int = 0
    type: ClassVar[Literal["video"]] = "video"


class File(Struct, frozen=True, tag="file"):
    """`hash` is Lagrange's, which requires it with the `id` of a private file."""

    name: str = ""
    id: str = ""
    url: str = ""
    size: int = 0
    handle: str = ""
    hash: str = ""
    type: ClassVar[Literal["file"]] = "file"


class Forward(Struct, frozen=True, tag="forward"):
    """A merged forward. `id` has up to 19 digits (kept as text); `content` is the server's nodes as
    JSON, often empty.
    """

    id: str
    content: str = ""
    handle: str = ""
    type: ClassVar[Literal["forward"]] = "forward"


class Card(Struct, frozen=True, tag="card"):
    """A json, xml or mini-program card: `prompt` is the line QQ shows, `data` the original card;
    the other fields are parsed from it.
    """

    kind: Literal["json", "xml", "miniapp"]
    data: str = ""
    prompt: str = ""
    title: str = ""
    description: str = ""
    url: str = ""
    type: ClassVar[Literal["card"]] = "card"


class Markdown(Struct, frozen=True, tag="markdown"):
    content: str
    type: ClassVar[Literal["markdown"]] = "markdown"


class Keyboard(Struct, frozen=True, tag="keyboard"):
    """Buttons under a markdown message; `labels` are their texts."""

    labels: tuple[str, ...] = ()
    type: ClassVar[Literal["keyboard"]] = "keyboard"


class Dice(Struct, frozen=True, tag="dice"):
    result: str = ""
    type: ClassVar[Literal["dice"]] = "dice"


class Rps(Struct, frozen=True, tag="rps"):
    """Rock, paper, scissors."""

    result: str = ""
    type: ClassVar[Literal["rps"]] = "rps"


class Poke(Struct, frozen=True, tag="poke"):
    """A poke or window shake inside a message (the event is `Poked`)."""

    kind: str = ""
    id: str = ""
    type: ClassVar[Literal["poke"]] = "poke"


class Contact(Struct, frozen=True, tag="contact"):
    """A recommended friend (`kind` qq) or group (`kind` group)."""

    kind: str = ""
    id: str = ""
    type: ClassVar[Literal["contact"]] = "contact"


class Location(Struct, frozen=True, tag="location"):
    title: str = ""
    content: str = ""
    latitude: str = ""
    longitude: str = ""
    type: ClassVar[Literal["location"]] = "location"


class Link(Struct, frozen=True, tag="link"):
    """A shared link or a piece of music."""

    kind: Literal["share", "music"]
    title: str = ""
    url: str = ""
    content: str = ""
    type: ClassVar[Literal["link"]] = "link"


class Transfer(Struct, frozen=True, tag="transfer"):
    """A file offered from device to device (`onlinefile`, `flashtransfer`, `flash_file`), without
    content.
    """

    kind: str
    name: str = ""
    id: str = ""
    type: ClassVar[Literal["transfer"]] = "transfer"


class Unsupported(Struct, frozen=True, tag="unsupported"):
    """An unknown segment: its wire type and its data as JSON text."""

    kind: str
    data: str = "{}"
    type: ClassVar[Literal["unsupported"]] = "unsupported"


Segment: TypeAlias = (
    Text
    | Mention
    | MentionAll
    | Quote
    | Face
    | Picture
    | Sticker
    | Record
    | Video
    | File
    | Forward
    | Card
    | Markdown
    | Keyboard
    | Dice
    | Rps
    | Poke
    | Contact
    | Location
    | Link
    | Transfer
    | Unsupported
)
