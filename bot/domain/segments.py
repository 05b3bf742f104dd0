"""The segments a message is made of, as the bot understands them; `type` is the tag the codec tells
them apart by.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias


@dataclass(frozen=True, slots=True)
class Text:
    text: str
    type: Literal["text"] = "text"


@dataclass(frozen=True, slots=True)
class Mention:
    """@somebody; `name` is what the server says they are called, often empty."""

    user_id: int
    name: str = ""
    type: Literal["mention"] = "mention"


@dataclass(frozen=True, slots=True)
class MentionAll:
    type: Literal["mention_all"] = "mention_all"


@dataclass(frozen=True, slots=True)
class Quote:
    """A reply to an earlier message; always first when sent."""

    message_id: str
    type: Literal["quote"] = "quote"


@dataclass(frozen=True, slots=True)
class Face:
    """A QQ system emoji; `name` as the server gives it ("/微笑"), often empty."""

    id: str
    name: str = ""
    type: Literal["face"] = "face"


@dataclass(frozen=True, slots=True)
class Image:
    """A picture. `url` expires after about two hours; `size` in bytes, 0 unknown; `sticker` for
    custom emoji.
    """

    file: str = ""
    url: str = ""
    summary: str = ""
    size: int = 0
    sticker: bool = False
    type: Literal["image"] = "image"


@dataclass(frozen=True, slots=True)
class Sticker:
    """A market sticker (`mface`)."""

    id: str = ""
    package_id: str = ""
    key: str = ""
    summary: str = ""
    url: str = ""
    type: Literal["sticker"] = "sticker"


@dataclass(frozen=True, slots=True)
class Record:
    """A voice message (silk data behind an .amr name)."""

    file: str = ""
    url: str = ""
    path: str = ""
    size: int = 0
    type: Literal["record"] = "record"


@dataclass(frozen=True, slots=True)
class Video:
    file: str = ""
    url: str = ""
    path: str = ""
    size: int = 0
    type: Literal["video"] = "video"


@dataclass(frozen=True, slots=True)
class File:
    name: str = ""
    id: str = ""
    url: str = ""
    size: int = 0
    type: Literal["file"] = "file"


@dataclass(frozen=True, slots=True)
class Forward:
    """Merged forward. `id` has up to 19 digits (kept as text); `content` is the server's nodes as
    JSON, often empty.
    """

    id: str
    content: str = ""
    type: Literal["forward"] = "forward"


@dataclass(frozen=True, slots=True)
class Card:
    """A json, xml or mini-program card: `prompt` is the line QQ shows, `data` the card as it
    came.
    """

    kind: Literal["json", "xml", "miniapp"]
    data: str = ""
    prompt: str = ""
    type: Literal["card"] = "card"


@dataclass(frozen=True, slots=True)
class Markdown:
    content: str
    type: Literal["markdown"] = "markdown"


@dataclass(frozen=True, slots=True)
class Keyboard:
    """Buttons under a markdown message; `labels` are their texts."""

    labels: tuple[str, ...] = ()
    type: Literal["keyboard"] = "keyboard"


@dataclass(frozen=True, slots=True)
class Dice:
    result: str = ""
    type: Literal["dice"] = "dice"


@dataclass(frozen=True, slots=True)
class Rps:
    """Rock, paper, scissors."""

    result: str = ""
    type: Literal["rps"] = "rps"


@dataclass(frozen=True, slots=True)
class Poke:
    """A poke or window shake inside a message (a poke of its own is the event `Poked`)."""

    kind: str = ""
    id: str = ""
    type: Literal["poke"] = "poke"


@dataclass(frozen=True, slots=True)
class Contact:
    """A recommended friend (`kind` qq) or group (`kind` group)."""

    kind: str = ""
    id: str = ""
    type: Literal["contact"] = "contact"


@dataclass(frozen=True, slots=True)
class Location:
    title: str = ""
    content: str = ""
    latitude: str = ""
    longitude: str = ""
    type: Literal["location"] = "location"


@dataclass(frozen=True, slots=True)
class Link:
    """A shared link or a piece of music."""

    kind: Literal["share", "music"]
    title: str = ""
    url: str = ""
    content: str = ""
    type: Literal["link"] = "link"


@dataclass(frozen=True, slots=True)
class Transfer:
    """A file offered from device to device (`onlinefile`, `flashtransfer`, `flash_file`): it has no
    content here.
    """

    kind: str
    name: str = ""
    id: str = ""
    type: Literal["transfer"] = "transfer"


@dataclass(frozen=True, slots=True)
class Unsupported:
    """A segment we do not know: its wire type and its data as JSON text, kept rather than thrown
    away.
    """

    kind: str
    data: str = "{}"
    type: Literal["unsupported"] = "unsupported"


Segment: TypeAlias = (
    Text
    | Mention
    | MentionAll
    | Quote
    | Face
    | Image
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
