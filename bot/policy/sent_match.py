"""Whether a message that QQ shows is the one we sent, by words and the number of media. Pure."""

from __future__ import annotations

from msgspec.structs import replace

from bot.domain.actions import Attachment, Merged, SendMessage, SendSegment, as_received
from bot.domain.events import MessageReceived
from bot.domain.journal import KnownLine
from bot.domain.segments import File, Forward, Picture, Record, Segment, Sticker, Text, Video


def is_same_message(seen: MessageReceived, sent: SendMessage) -> bool:
    """Whether the account's own message says what was sent: the same words, blanks aside, and as
    many media; of a merged forward QQ shows no words.
    """
    if seen.conversation != sent.conversation:
        return False
    if any(isinstance(segment, Merged) for segment in sent.segments):
        return any(isinstance(segment, Forward) for segment in seen.segments)
    words = "".join(segment.text for segment in seen.segments if isinstance(segment, Text))
    sent_words = "".join(segment.text for segment in sent.segments if isinstance(segment, Text))
    media = sum(
        isinstance(segment, Picture | Record | Video | File | Sticker) for segment in seen.segments
    )
    sent_media = sum(isinstance(segment, Attachment) for segment in sent.segments)
    return media == sent_media and "".join(words.split()) == "".join(sent_words.split())


BASE64 = "base64://"


def as_line(sent: SendMessage, message_id: str, at: float) -> KnownLine:
    """A message of ours as a history shows it, without what it weighs."""
    parts = (
        Forward("") if isinstance(part, Merged) else _with_size(part) for part in sent.segments
    )
    return KnownLine(message_id, sent.conversation.platform_id, at, tuple(parts))


def is_same_file(seen: MessageReceived, sent: KnownLine) -> bool:
    """Whether a message is nothing but the file that was sent: by its name, and by its size if both
    are known. Words prove nothing: people repeat what the bot said.
    """
    match seen.segments, sent.segments:
        case (File(name=name, size=size),), (File(name=sent_name, size=sent_size),):
            return bool(name) and name == sent_name and (size == sent_size or not size * sent_size)
        case _:
            return False


def _with_size(part: SendSegment) -> Segment:
    received = as_received(part)
    if isinstance(received, File) and isinstance(part, Attachment):
        source = part.source
        if source.startswith(BASE64):
            size = (len(source) - len(BASE64)) * 3 // 4 - source[-2:].count("=")
            return replace(received, size=size)
    return received
