"""The actions requested from a OneBot server.

The id of a send that belongs to no turn begins with the person or turn it is about, so that erasure
finds it (`send_prefix`), followed by two parts without a `-` (`bot/outbox/sends`). Other ids have
no such prefix.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from enum import StrEnum
from typing import ClassVar, Final, Literal, TypeAlias

from msgspec import Struct

from bot.core.conversation import Conversation
from bot.core.segments import File, Mention, Picture, Record, Segment, SendSegment, Video
from frostagent.types.speech import Attachment, Quote, Text

MAX_SOURCE = 100_000
"""Characters of an attachment that the journal keeps; larger ones are cut out."""


class MergedForward(Struct, frozen=True, tag="merged"):
    """A merged forward of the bot's own words; each node is a message in it, sent by `name`."""

    nodes: tuple[str, ...]
    name: str
    type: ClassVar[Literal["merged"]] = "merged"


SentSegment: TypeAlias = SendSegment | MergedForward


def as_received(segment: SentSegment) -> Segment:
    """A sent segment in the form in which it is received; a merged forward as its words, so that it
    need not be fetched.
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
    """One QQ message to send. A quote must be the first segment; a merged forward stands alone."""

    conversation: Conversation
    segments: tuple[SentSegment, ...]
    type: ClassVar[Literal["send_message"]] = "send_message"

    @property
    def words(self) -> str:
        """Its text, with the names it mentions."""
        words: list[str] = []
        for segment in self.segments:  # several times a message: `match` takes twice as long
            if type(segment) is Text:
                words.append(segment.text)
            elif type(segment) is MergedForward:
                words.append("\n\n".join(segment.nodes))
            elif type(segment) is Mention and segment.name:
                words.append(f"@{segment.name}")
        return "".join(words)


# --- gestures beside messages ---------------------------------------------------------------------


class React(Struct, frozen=True, tag="react"):
    """Put an emoji on a message; `emoji_id` is QQ's number for it."""

    conversation: Conversation
    message_id: str
    emoji_id: str
    type: ClassVar[Literal["react"]] = "react"


class ShowTyping(Struct, frozen=True, tag="show_typing"):
    """Show "typing" in a private chat."""

    conversation: Conversation
    type: ClassVar[Literal["show_typing"]] = "show_typing"


Gesture: TypeAlias = React | ShowTyping


# --- ids of sends ---------------------------------------------------------------------------------


SEND_PREFIXES = PERSON_PREFIX, TURN_PREFIX = "user-", "turn-"


def send_prefix_of_person(user: int) -> str:
    """For messages to a person who gave a command."""
    return f"{PERSON_PREFIX}{user}-"


def send_prefix_of_turn(turn_id: str) -> str:
    """For requests to owners about the calls of a turn."""
    return f"{TURN_PREFIX}{turn_id}-"


class JobWords(StrEnum):
    """What is said of jobs: the words of a firing, a report of missed ones, a feed that cannot be
    read. The letter stands in the send's id.
    """

    FIRED = "J"
    MISSED = "M"
    DEAD_FEED = "D"


OF_JOBS: Final = re.compile(rf"({'|'.join(JobWords)})(\d+(?:\+\d+)*)\.")


def send_name_of_jobs(maker: int, words: JobWords, numbers: Iterable[int]) -> str:
    """The beginning of the id of what is said of these jobs: `user-345-M7+8.`"""
    return f"{send_prefix_of_person(maker)}{words}{'+'.join(map(str, numbers))}."


def jobs_in(send_id: str) -> tuple[JobWords, tuple[int, ...]] | None:
    """What a send says of which jobs; None for any other send."""
    found = OF_JOBS.match(send_id.removeprefix(send_prefix(send_id)))
    if found is None or not send_id.startswith(PERSON_PREFIX):
        return None
    return JobWords(found[1]), tuple(map(int, found[2].split("+")))


def send_prefix(send_id: str) -> str:
    """The prefix of a send id; empty if it has none."""
    name, *rest = send_id.rsplit("-", 2)
    return f"{name}-" if len(rest) == 2 and send_id.startswith(SEND_PREFIXES) else ""


def plain_words(segments: Iterable[Segment | SentSegment], *, own: int = 0) -> str:
    """A message as a line of text, with non-text segments named in brackets. Quotes, and mentions
    of the `own` account, are omitted.
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
