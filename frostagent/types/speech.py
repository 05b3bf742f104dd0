"""Parts of a message that a run sends before it ends, and receipts for them. `type` is the tag."""

from __future__ import annotations

from typing import ClassVar, Literal, TypeAlias

from msgspec import Struct

SEND = "send_message"  # the tool that sends messages


class Text(Struct, frozen=True, tag="text"):
    text: str
    type: ClassVar[Literal["text"]] = "text"


class Mention(Struct, frozen=True, tag="mention"):
    """An @mention. `name` is the display name from the server, often empty."""

    user_id: str
    name: str = ""
    type: ClassVar[Literal["mention"]] = "mention"


class MentionAll(Struct, frozen=True, tag="mention_all"):
    type: ClassVar[Literal["mention_all"]] = "mention_all"


class Quote(Struct, frozen=True, tag="quote"):
    """A reply to an earlier message; always first in a sent message."""

    message_id: str
    type: ClassVar[Literal["quote"]] = "quote"


class Face(Struct, frozen=True, tag="face"):
    """A system emoji of the chat. `name` is the server's, often empty."""

    id: str
    name: str = ""
    type: ClassVar[Literal["face"]] = "face"


MediaKind: TypeAlias = Literal["image", "record", "video", "file"]


class Attachment(Struct, frozen=True, tag="attachment"):
    """A medium to send. `source` goes on the wire: base64://..., file:///..., or an http(s) URL."""

    kind: MediaKind
    source: str
    name: str = ""
    type: ClassVar[Literal["attachment"]] = "attachment"


SendSegment: TypeAlias = Text | Mention | MentionAll | Quote | Face | Attachment


class Confirmed(Struct, frozen=True, tag="confirmed"):
    """The chat accepted the message under this id (empty if the server gives none)."""

    message_id: str
    type: ClassVar[Literal["confirmed"]] = "confirmed"


class Refused(Struct, frozen=True, tag="refused"):
    """The chat refused the message (`by_server`), or it was never sent.

    `reason` is for the model and the log, `words` are the server's own, for owners. `blocks_place`
    means that nothing can be sent there now.
    """

    reason: str
    by_server: bool = False
    words: str = ""
    blocks_place: bool = False
    type: ClassVar[Literal["refused"]] = "refused"


class Unknown(Struct, frozen=True, tag="unknown"):
    """Sent but not confirmed: the message may have arrived, so do not repeat it blindly."""

    reason: str
    type: ClassVar[Literal["unknown"]] = "unknown"


class Queued(Struct, frozen=True, tag="waiting"):
    """Queued: the message is sent as soon as possible, and dropped after two minutes."""

    reason: str
    type: ClassVar[Literal["waiting"]] = "waiting"


class Drafted(Struct, frozen=True, tag="drafted"):
    """Kept as draft `number`, which owners may read and publish. The chat did not get it."""

    number: int
    type: ClassVar[Literal["drafted"]] = "drafted"


Receipt: TypeAlias = Confirmed | Refused | Unknown | Queued | Drafted
