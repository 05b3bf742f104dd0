"""What admins of a group may do, friend requests, invites: data, and the ports that do it."""

from __future__ import annotations

from typing import ClassVar, Literal, Protocol, TypeAlias

from msgspec import Struct

from bot.core.conversation import Conversation
from frostagent.types.tools import ToolContext


class Mute(Struct, frozen=True, tag="mute"):
    """Keep a member from speaking for so many seconds; 0 lets him speak again."""

    user_id: int
    seconds: int
    type: ClassVar[Literal["mute"]] = "mute"


class SetCard(Struct, frozen=True, tag="set_card"):
    """Give a member this name in the group; empty: his own."""

    user_id: int
    card: str
    type: ClassVar[Literal["set_card"]] = "set_card"


class Recall(Struct, frozen=True, tag="recall"):
    """Take a message back."""

    message_id: str
    type: ClassVar[Literal["recall"]] = "recall"


class Pin(Struct, frozen=True, tag="pin"):
    """Keep a message among those of note (精华)."""

    message_id: str
    type: ClassVar[Literal["pin"]] = "pin"


GroupAct: TypeAlias = Mute | SetCard | Recall | Pin


class Topic(Struct, frozen=True):
    """The message that the question of a run in a group quotes; an empty id for none."""

    message_id: str = ""


class Chair(Protocol):
    """Does what admins of a group may have done there."""

    async def act(self, context: ToolContext, act: GroupAct) -> bool:
        """Do it, whichever tool wants it, once an owner has allowed the call; False if the server
        could not have said that QQ refused it. Raises Suspend where he is to be asked, ToolDenied
        where the bot or the asker may not, InvalidArguments, ToolFailed.
        """
        ...


Accept: TypeAlias = Literal["ask", "friends", "none"]
"""What becomes of them: owners are asked, friends are accepted at once, or nobody is answered."""


class JoinRequest(Struct, frozen=True, kw_only=True):
    """Somebody waits for an owner's word since then (by our clock, in seconds since 1970); `flag`
    is the server's name for it. Where it is `answered` nobody knows yet whether the server heard.
    """

    account: int
    kind: Literal["friend", "invite"]
    user_id: int
    group_id: int = 0
    comment: str = ""
    flag: str
    number: int = 0
    since: float = 0.0
    answered: bool = False

    @property
    def where(self) -> Conversation:
        """The place that would come of it: a private chat, or a group."""
        if self.kind == "friend":
            return Conversation(self.account, "private", self.user_id)
        return Conversation(self.account, "group", self.group_id)
