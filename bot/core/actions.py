"""The actions we ask a OneBot server for, and what came of a send.

The id of a send that belongs to no turn begins with the person or the turn it is about, so that
erasure finds it (`send_prefix`); two parts without a `-` follow (`bot/outbox/sends`). Other ids
have no such prefix.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar, Literal, TypeAlias

from msgspec import Struct

from bot.core.segments import File, Picture, Record, Segment, Video
from frostagent.types.conversation import Conversation
from frostagent.types.speech import Attachment, Mention, Quote, SendSegment, Text

MAX_SOURCE = 100_000
"""Characters of a medium inside a message that the journal keeps: larger ones are cut out."""


class MergedForward(Struct, frozen=True, tag="merged"):
    """A merged forward of words of our own: each node is a message in it, said by `name`."""

    nodes: tuple[str, ...]
    name: str
    type: ClassVar[Literal["merged"]] = "merged"


SentSegment: TypeAlias = SendSegment | MergedForward


def as_received(segment: SentSegment) -> Segment:
    """The segments we send, as they look to whoever receives them; a merged forward as its words,
    which nobody has to fetch.
    """
    if isinstance(segment, MergedForward):
        return Text("\n\n".join(segment.nodes))
    if not isinstance(segment, Attachment):
        return segment
    match segment.kind:
        case "image":
            return Picture(file=segment.name)
        case "record":
            return Record(file=segment.name)
        case "video":
            return Video(file=segment.name)
        case "file":
            return File(name=segment.name)


class SendMessage(Struct, frozen=True, tag="send_message"):
    """Say this there, as one QQ message. A quote, if any, is the first segment; a merged forward
    stands alone.
    """

    conversation: Conversation
    segments: tuple[SentSegment, ...]
    type: ClassVar[Literal["send_message"]] = "send_message"

    @property
    def words(self) -> str:
        """All words of it, and the names it mentions."""
        words: list[str] = []
        for segment in self.segments:  # of each message, several times: patterns take twice as long
            if type(segment) is Text:
                words.append(segment.text)
            elif type(segment) is MergedForward:
                words.append("\n\n".join(segment.nodes))
            elif type(segment) is Mention and segment.name:
                words.append(f"@{segment.name}")
        return "".join(words)


# --- signs beside what is said --------------------------------------------------------------------


class React(Struct, frozen=True, tag="react"):
    """Put an emoji on a message; `emoji_id` is QQ's number of it."""

    conversation: Conversation
    message_id: str
    emoji_id: str
    type: ClassVar[Literal["react"]] = "react"


class ShowTyping(Struct, frozen=True, tag="show_typing"):
    """Let the person of a private conversation see that something is being written."""

    conversation: Conversation
    type: ClassVar[Literal["show_typing"]] = "show_typing"


Gesture: TypeAlias = React | ShowTyping


# --- what came of a send --------------------------------------------------------------------------


SEND_PREFIXES = PERSON_PREFIX, TURN_PREFIX = "user-", "turn-"


def send_prefix_of_person(user: int) -> str:
    """Of what is said to a person who gave a command."""
    return f"{PERSON_PREFIX}{user}-"


def send_prefix_of_turn(turn_id: str) -> str:
    """Of what owners are asked about the calls of a turn."""
    return f"{TURN_PREFIX}{turn_id}-"


def send_prefix(send_id: str) -> str:
    """The beginning of an id; empty if it has none."""
    name, *rest = send_id.rsplit("-", 2)
    return f"{name}-" if len(rest) == 2 and send_id.startswith(SEND_PREFIXES) else ""


def plain_words(segments: Iterable[Segment | SentSegment], *, own: int = 0) -> str:
    """A message as a line of text: whatever is no words is named in brackets. Quotes, and
    mentions of the `own` account, are left out.
    """
    parts = []
    for segment in segments:
        match segment:
            case Text(text=text):
                parts.append(text)
            case Quote():
                pass
            case Mention(user_id=user_id) if user_id == own:
                pass
            case Mention(user_id=user_id, name=name):
                parts.append(f"@{name or user_id} ")
            case _:
                parts.append(f"[{segment.type}]")
    return "".join(parts).strip()
