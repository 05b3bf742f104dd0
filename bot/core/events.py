"""The events of a OneBot server.

All data are frozen; `type` is the tag by which `bot/core/codec.py` distinguishes union members. Ids
of people and groups are numbers (up to 10 digits, often above 2**31). Message ids are opaque text:
servers use signed numbers that may repeat and do not last (`docs/protocol/onebot.md` 3.2).
"""

from __future__ import annotations

from typing import ClassVar, Literal, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from bot.core.conversation import Conversation, read_number
from bot.core.segments import Segment
from frostagent.types.speech import Quote, Text
from frostagent.types.traits import Audience

Role: TypeAlias = Literal["owner", "admin", "member", "unknown"]
MemberChange: TypeAlias = Literal["joined", "left", "promoted", "demoted"]

Identity: TypeAlias = tuple[
    int, str, int, str
]  # account, message type, group or person, message id

NO_IDS = ("", "0")  # not ids: some servers give many messages the latter
ANONYMOUS = 80_000_000  # the account shared by a group's anonymous members
CAPPED = "job:"  # in place of a sub_type, with the most authority that the words may have
_MASKS = 10**15  # numbers of anonymous members start here: no account has one


def masked(number: int) -> int:
    """The user id of an anonymous member, from the number of the mask."""
    return _MASKS + number % _MASKS


def account_of(user_id: int) -> int:
    """QQ's account of a user id: the same one for all anonymous members."""
    return ANONYMOUS if user_id >= _MASKS else user_id


def read_id(text: str) -> int | None:
    """The number of a person or group, in digits; None for any other text, 0, and numbers beyond 64
    bits. No one has the number 0, and some servers take it for everyone (Lagrange, go-cqhttp: `at`
    with qq=0).
    """
    return read_number(text) or None


class Sender(Struct, frozen=True):
    """The sender. `card` is the name in the group, often empty; `role` is unknown while the
    server's cache is cold.
    """

    user_id: int
    nickname: str = ""
    card: str = ""
    role: Role = "unknown"

    @property
    def name(self) -> str:
        """The displayed name: the card, else the nickname, else the number."""
        return self.card or self.nickname or str(self.user_id)


class _Event(Struct, frozen=True, kw_only=True):
    """`self_id` is the bot's account that received the event; `time` is in seconds since 1970."""

    self_id: int
    time: float


class MessageReceived(_Event, frozen=True, kw_only=True, tag="message_received"):
    """A message in a conversation of the bot. `message_seq` is the server's real sequence number,
    or empty. `unproven` marks the bot's own words in a history that would also list them if QQ had
    refused them.
    """

    conversation: Conversation
    message_id: str
    sender: Sender
    segments: tuple[Segment, ...]
    sub_type: str = ""
    message_seq: str = ""
    group_name: str = ""
    unproven: bool = False
    type: ClassVar[Literal["message_received"]] = "message_received"

    @property
    def identity(self) -> Identity:
        """Equal for events that are delivered again (onebot.md 3.2)."""
        return (
            self.self_id,
            self.conversation.message_type,
            self.conversation.session_id,
            self.message_id,
        )

    @property
    def has_identity(self) -> bool:
        """Whether its id identifies it."""
        return self.message_id not in NO_IDS

    @property
    def cap(self) -> str:
        """The most authority that a run may have which reads this as a job's question, or as words
        of others that the bot passed on: news, reminders, recaps. Empty for what people say, and
        for the bot's answers.
        """
        return self.sub_type.removeprefix(CAPPED) if self.sub_type.startswith(CAPPED) else ""

    @property
    def is_own(self) -> bool:
        return self.sender.user_id == self.self_id

    def was_before(self, other: MessageReceived) -> bool:
        """Whether it was said before another message of the conversation: repeated events may
        arrive later. Within a second only sequence numbers decide.
        """
        if self.time != other.time:
            return self.time < other.time
        own, others = self.message_seq, other.message_seq
        return own.isdecimal() and others.isdecimal() and int(own) < int(others)


def relayed(message: MessageReceived, authority: Audience = Audience.EVERYONE) -> MessageReceived:
    """The message with this `cap`."""
    return replace(message, sub_type=f"{CAPPED}{authority}")


def quote_in(message: MessageReceived) -> str:
    """The id of the quoted message, or empty."""
    return next(
        (segment.message_id for segment in message.segments if isinstance(segment, Quote)), ""
    )


def message_words(message: MessageReceived) -> str:
    """The text of a message, without the quoted one."""
    return "".join(segment.text for segment in message.segments if isinstance(segment, Text))


class MessageWaited(_Event, frozen=True, kw_only=True, tag="message_waited"):
    """A message that waited `seconds` on its way, in a broker without a consumer."""

    message: MessageReceived
    seconds: float
    type: ClassVar[Literal["message_waited"]] = "message_waited"


class MessageLost(_Event, frozen=True, kw_only=True, tag="message_lost"):
    """A message that was dropped on its way for lack of room. Reported only if it mentions the bot,
    or is private.
    """

    message: MessageReceived
    type: ClassVar[Literal["message_lost"]] = "message_lost"


class MessageSent(_Event, frozen=True, kw_only=True, tag="message_sent"):
    """The bot's own account sent a message (from here or from the owner's phone): confirms a send,
    never wakes.
    """

    conversation: Conversation
    message_id: str
    segments: tuple[Segment, ...]
    type: ClassVar[Literal["message_sent"]] = "message_sent"

    @property
    def message(self) -> MessageReceived:
        """The segments as others received them."""
        return MessageReceived(
            self_id=self.self_id,
            time=self.time,
            conversation=self.conversation,
            message_id=self.message_id,
            sender=Sender(self.self_id),
            segments=self.segments,
        )


class MessageRecalled(_Event, frozen=True, kw_only=True, tag="message_recalled"):
    conversation: Conversation
    message_id: str
    user_id: int
    operator_id: int
    type: ClassVar[Literal["message_recalled"]] = "message_recalled"


class Poked(_Event, frozen=True, kw_only=True, tag="poked"):
    """`user_id` poked `target_id`; the bot's own pokes are reported too."""

    conversation: Conversation
    user_id: int
    target_id: int
    type: ClassVar[Literal["poked"]] = "poked"


class Muted(_Event, frozen=True, kw_only=True, tag="muted"):
    """`user_id` may not speak for `seconds` (0: lifted; -1: until lifted); user 0 is the whole
    group.
    """

    conversation: Conversation
    user_id: int
    operator_id: int
    seconds: int
    type: ClassVar[Literal["muted"]] = "muted"

    @property
    def mutes_the_bot(self) -> bool:
        return self.user_id in (0, self.self_id)


class MemberChanged(_Event, frozen=True, kw_only=True, tag="member_changed"):
    """A member joined or left a group, or was made an admin (promoted) or is no longer one
    (demoted); `how` is the server's word (approve, kick, set, ...).
    """

    conversation: Conversation
    user_id: int
    operator_id: int
    change: MemberChange
    how: str = ""
    type: ClassVar[Literal["member_changed"]] = "member_changed"


class Requested(_Event, frozen=True, kw_only=True, tag="requested"):
    """A request to be a friend or to join a group, or an invite of the bot; `flag` is needed to
    answer.
    """

    kind: Literal["friend", "group"]
    sub_type: str
    user_id: int
    group_id: int
    comment: str
    flag: str
    type: ClassVar[Literal["requested"]] = "requested"


class Connected(_Event, frozen=True, kw_only=True, tag="connected"):
    """A lifecycle event of a new connection, or of the server's enable/disable."""

    change: str = "connect"
    type: ClassVar[Literal["connected"]] = "connected"


class Heartbeat(_Event, frozen=True, kw_only=True, tag="heartbeat"):
    """`online` is None if the server does not say; `interval` is in seconds, 0 if unknown."""

    online: bool | None
    interval: float
    type: ClassVar[Literal["heartbeat"]] = "heartbeat"


class AccountChanged(_Event, frozen=True, kw_only=True, tag="account_changed"):
    """The bot's own account went offline or came back (bot_offline, bot_online)."""

    online: bool
    reason: str = ""
    type: ClassVar[Literal["account_changed"]] = "account_changed"


class Noticed(_Event, frozen=True, kw_only=True, tag="noticed"):
    """Any other notice, request or meta event, with its wire names for the log."""

    kind: str
    sub_type: str = ""
    conversation: Conversation | None = None
    user_id: int = 0
    type: ClassVar[Literal["noticed"]] = "noticed"


Event: TypeAlias = (
    MessageReceived
    | MessageWaited
    | MessageLost
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
