"""What happened: events, where they happened, and the segments a message is made of.

Everything is frozen; `type` is the tag by which `bot/domain/codec.py` tells union members apart. Ids of people
and groups are numbers (QQ numbers and group numbers, up to 10 digits, above 2**31 is normal); message ids are
opaque text (OneBot servers use signed numbers that may repeat and do not last; `shared/onebot/facts.md` 3.2).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from bot.domain.errors import BotError

MessageType: TypeAlias = Literal["group", "private"]
Role: TypeAlias = Literal["owner", "admin", "member", "unknown"]


class NotAConversation(BotError):
    """A text that does not have the form platform_id:message_type:session_id."""


@dataclass(frozen=True, slots=True)
class Conversation:
    """Where something is said: the bot's account, group or private, and the group's or person's number.

    `via_group` is the group a temporary private session came through (0: none); it is needed to answer but is
    not part of the identity.
    """

    platform_id: int
    message_type: MessageType
    session_id: int
    via_group: int = field(default=0, compare=False)

    def __str__(self) -> str:
        return f"{self.platform_id}:{self.message_type}:{self.session_id}"

    @property
    def is_group(self) -> bool:
        return self.message_type == "group"

    @classmethod
    def parse(cls, text: str) -> Conversation:
        """Read `platform_id:message_type:session_id`. Raises NotAConversation."""
        platform, _, rest = text.strip().partition(":")
        kind, _, session = rest.partition(":")
        if not (platform.isascii() and platform.isdigit() and session.isascii() and session.isdigit()):
            raise NotAConversation(f"{text!r} is not platform_id:message_type:session_id, as in 10001:group:4242")
        match kind:
            case "group" | "private":
                return cls(int(platform), kind, int(session))
            case _:
                raise NotAConversation(f"{kind!r} in {text!r} is neither group nor private")


@dataclass(frozen=True, slots=True)
class Sender:
    """Who spoke. `card` is the name in the group, often empty; `role` is unknown while the server's cache is cold."""

    user_id: int
    nickname: str = ""
    card: str = ""
    role: Role = "unknown"

    @property
    def name(self) -> str:
        """What people see: the card, else the nickname, else the number."""
        return self.card or self.nickname or str(self.user_id)


# --- segments -------------------------------------------------------------------------------------


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
    """A picture. `url` expires after about two hours; `size` in bytes, 0 unknown; `sticker` for custom emoji."""

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
    """Merged forward. `id` has up to 19 digits (kept as text); `content` is the server's nodes as JSON, often empty."""

    id: str
    content: str = ""
    type: Literal["forward"] = "forward"


@dataclass(frozen=True, slots=True)
class Card:
    """A json, xml or mini-program card: `prompt` is the line QQ shows, `data` the card as it came."""

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
    """A file offered from device to device (`onlinefile`, `flashtransfer`, `flash_file`): it has no content here."""

    kind: str
    name: str = ""
    id: str = ""
    type: Literal["transfer"] = "transfer"


@dataclass(frozen=True, slots=True)
class Unsupported:
    """A segment we do not know: its wire type and its data as JSON text, kept rather than thrown away."""

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


# --- events ---------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class _Event:
    """`self_id` is the bot's own account the event is about; `time` is in seconds since 1970."""

    self_id: int
    time: float


@dataclass(frozen=True, slots=True, kw_only=True)
class MessageReceived(_Event):
    """Somebody said something where the bot can hear it.

    `message_seq` is the server's real sequence number, empty where unknown.
    """

    conversation: Conversation
    message_id: str
    sender: Sender
    segments: tuple[Segment, ...]
    sub_type: str = ""
    message_seq: str = ""
    group_name: str = ""
    type: Literal["message_received"] = "message_received"

    @property
    def identity(self) -> tuple[int, str, int, str]:
        """What makes it the same event when it is delivered again (facts.md 3.2)."""
        return (self.self_id, self.conversation.message_type, self.conversation.session_id, self.message_id)

    @property
    def is_own(self) -> bool:
        return self.sender.user_id == self.self_id


@dataclass(frozen=True, slots=True, kw_only=True)
class MessageSent(_Event):
    """The bot's own account said something (from here or from the owner's phone): confirms a send, never wakes."""

    conversation: Conversation
    message_id: str
    segments: tuple[Segment, ...]
    type: Literal["message_sent"] = "message_sent"


@dataclass(frozen=True, slots=True, kw_only=True)
class MessageRecalled(_Event):
    conversation: Conversation
    message_id: str
    user_id: int
    operator_id: int
    type: Literal["message_recalled"] = "message_recalled"


@dataclass(frozen=True, slots=True, kw_only=True)
class Poked(_Event):
    """`user_id` poked `target_id`; the bot's own pokes are reported too."""

    conversation: Conversation
    user_id: int
    target_id: int
    type: Literal["poked"] = "poked"


@dataclass(frozen=True, slots=True, kw_only=True)
class Muted(_Event):
    """`user_id` may not speak for `seconds` (0: lifted; -1: until lifted); user 0 is the whole group."""

    conversation: Conversation
    user_id: int
    operator_id: int
    seconds: int
    type: Literal["muted"] = "muted"

    @property
    def mutes_the_bot(self) -> bool:
        return self.user_id in (0, self.self_id)


@dataclass(frozen=True, slots=True, kw_only=True)
class MemberChanged(_Event):
    """Somebody joined or left a group: `change` is joined or left, `how` the server's word (approve, kick, ...)."""

    conversation: Conversation
    user_id: int
    operator_id: int
    change: Literal["joined", "left"]
    how: str = ""
    type: Literal["member_changed"] = "member_changed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Requested(_Event):
    """Somebody asks to be a friend, to join a group, or invites the bot; `flag` is needed to answer."""

    kind: Literal["friend", "group"]
    sub_type: str
    user_id: int
    group_id: int
    comment: str
    flag: str
    type: Literal["requested"] = "requested"


@dataclass(frozen=True, slots=True, kw_only=True)
class Connected(_Event):
    """The OneBot server says hello on a new connection (lifecycle), or says enable/disable."""

    change: str = "connect"
    type: Literal["connected"] = "connected"


@dataclass(frozen=True, slots=True, kw_only=True)
class Heartbeat(_Event):
    """`online` is None when the server does not say; `interval` in seconds, 0 unknown."""

    online: bool | None
    interval: float
    type: Literal["heartbeat"] = "heartbeat"


@dataclass(frozen=True, slots=True, kw_only=True)
class AccountChanged(_Event):
    """The bot's own account went offline or came back (bot_offline, bot_online)."""

    online: bool
    reason: str = ""
    type: Literal["account_changed"] = "account_changed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Noticed(_Event):
    """Any other notice, request or meta event: its wire names, so that logs can say what was ignored."""

    kind: str
    sub_type: str = ""
    conversation: Conversation | None = None
    user_id: int = 0
    type: Literal["noticed"] = "noticed"


Event: TypeAlias = (
    MessageReceived
    | MessageSent
    | MessageRecalled
    | Poked
    | Muted
    | MemberChanged
    | Requested
    | Connected
    | Heartbeat
    | AccountChanged
    | Noticed
)
