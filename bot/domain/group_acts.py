"""Doings in a group that its admins may have done: data, and the port that tools do them by."""

from __future__ import annotations

from typing import ClassVar, Literal, Protocol, TypeAlias

from msgspec import Struct

from bot.domain.tool import ToolContext


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
