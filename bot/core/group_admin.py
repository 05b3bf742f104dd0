"""Actions of group admins, friend requests and invites: data, and the ports that carry them out."""

from __future__ import annotations

from typing import ClassVar, Literal, Protocol, TypeAlias

from msgspec import Struct

from bot.core.conversation import Conversation
from frostagent.types.tools import ToolContext


class Mute(Struct, frozen=True, tag="mute"):
    """Mute a member for `seconds`; 0 lifts the mute."""

    user_id: int
    seconds: int
    type: ClassVar[Literal["mute"]] = "mute"


class SetCard(Struct, frozen=True, tag="set_card"):
    """Set a member's name in the group; empty restores their own."""

    user_id: int
    card: str
    type: ClassVar[Literal["set_card"]] = "set_card"


class Recall(Struct, frozen=True, tag="recall"):
    message_id: str
    type: ClassVar[Literal["recall"]] = "recall"


class Pin(Struct, frozen=True, tag="pin"):
    """Add a message to the group's essence messages (精华)."""

    message_id: str
    type: ClassVar[Literal["pin"]] = "pin"


GroupAct: TypeAlias = Mute | SetCard | Recall | Pin


class Topic(Struct, frozen=True):
    """The message quoted by the question of a run in a group; an empty id if it quotes none."""

    message_id: str = ""


class Chair(Protocol):
    """Carries out actions of group admins."""

    async def act(self, context: ToolContext, act: GroupAct) -> bool:
        """Carry it out, once an owner has approved the call. Returns False if the server cannot
        report a refusal by QQ. Raises Suspend if an owner is to be asked, ToolDenied if the bot or
        the asker may not, InvalidArguments, ToolFailed.
        """
        ...


Accept: TypeAlias = Literal["ask", "friends", "none"]
"""Ask owners about requests, accept friend requests at once, or ignore all."""


class JoinRequest(Struct, frozen=True, kw_only=True):
    """A request that waits for an owner since then (by our clock, in seconds since 1970): to be a
    friend, to have the bot in a group, or, of an applicant, to join one of its groups. `flag` is
    the server's id. While `answered` is set, it is unknown whether the server received the answer.
    """

    account: int
    kind: Literal["friend", "invite", "apply"]
    user_id: int
    group_id: int = 0
    comment: str = ""
    flag: str
    number: int = 0
    since: float = 0.0
    answered: bool = False

    @property
    def where(self) -> Conversation:
        """Where it is kept: the conversation that would result, a private chat or a group; of an
        applicant the private chat, since a group may have many.
        """
        if self.kind != "invite":
            return Conversation(self.account, "private", self.user_id)
        return Conversation(self.account, "group", self.group_id)
