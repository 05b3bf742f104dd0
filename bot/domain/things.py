"""Entries of the journal about what people send besides words."""

from __future__ import annotations

from typing import ClassVar, Literal

from msgspec import Struct

from bot.domain.events import Conversation, Sender
from bot.domain.segments import File, Forward, Picture, Record


class ThingNamed(Struct, frozen=True, kw_only=True, tag="thing_named"):
    """A prompt showed something that it only names, by this number: `look` may open it.

    `sender` is whose it is; of what is inside a forward nobody knows that, and it is 0. Without a
    segment it was taken back since.
    """

    conversation: Conversation
    number: int
    message_id: str
    sender: Sender
    segment: Picture | Record | File | Forward | None
    type: ClassVar[Literal["thing_named"]] = "thing_named"


class PictureDescribed(Struct, frozen=True, tag="picture_described"):
    """A model that sees has said what is in the picture of this SHA-256, for those that do not."""

    digest: str
    words: str
    type: ClassVar[Literal["picture_described"]] = "picture_described"
