"""What a run says before it ends, and what came of that; `type` is the tag of each part."""

from __future__ import annotations

from typing import ClassVar, Literal, TypeAlias

from msgspec import Struct

SEND = "send_message"  # the tool whose words are ours


class Text(Struct, frozen=True, tag="text"):
    text: str
    type: ClassVar[Literal["text"]] = "text"


class Mention(Struct, frozen=True, tag="mention"):
    """@somebody; `name` is what the server says they are called, often empty."""

    user_id: str
    name: str = ""
    type: ClassVar[Literal["mention"]] = "mention"


class MentionAll(Struct, frozen=True, tag="mention_all"):
    type: ClassVar[Literal["mention_all"]] = "mention_all"


class Quote(Struct, frozen=True, tag="quote"):
    """A reply to an earlier message; always first when sent."""

    message_id: str
    type: ClassVar[Literal["quote"]] = "quote"


class Face(Struct, frozen=True, tag="face"):
    """A system emoji of the chat; `name` as the server gives it, often empty."""

    id: str
    name: str = ""
    type: ClassVar[Literal["face"]] = "face"


MediaKind: TypeAlias = Literal["image", "record", "video", "file"]


class Attachment(Struct, frozen=True, tag="attachment"):
    """A medium to send. `source` is what goes on the wire: base64://..., file:///..., or an http(s)
    url.
    """

    kind: MediaKind
    source: str
    name: str = ""
    type: ClassVar[Literal["attachment"]] = "attachment"


SendSegment: TypeAlias = Text | Mention | MentionAll | Quote | Face | Attachment


class Confirmed(Struct, frozen=True, tag="confirmed"):
    """The chat has it, under this id (empty where the server names none)."""

    message_id: str
    type: ClassVar[Literal["confirmed"]] = "confirmed"


class Refused(Struct, frozen=True, tag="refused"):
    """The chat did not take it (`by_server`), or it never reached the wire; `reason` is for the
    model and the log, `words` are the server's own, for owners. If it `blocks_place`, nothing else
    is taken there, either.
    """

    reason: str
    by_server: bool = False
    words: str = ""
    blocks_place: bool = False
    type: ClassVar[Literal["refused"]] = "refused"


class Unknown(Struct, frozen=True, tag="unknown"):
    """It was written but not confirmed: it may have been delivered and must not be repeated
    blindly.
    """

    reason: str
    type: ClassVar[Literal["unknown"]] = "unknown"


class Queued(Struct, frozen=True, tag="waiting"):
    """It is queued and will be said as soon as it can be, within two minutes; then it is given
    up.
    """

    reason: str
    type: ClassVar[Literal["waiting"]] = "waiting"


class Drafted(Struct, frozen=True, tag="drafted"):
    """It is kept as a draft of this number: the owners may read and publish it, nobody there has
    read it.
    """

    number: int
    type: ClassVar[Literal["drafted"]] = "drafted"


Receipt: TypeAlias = Confirmed | Refused | Unknown | Queued | Drafted
