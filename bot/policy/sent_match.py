"""Whether a message that QQ shows is the one we sent, by words and the number of media. Pure."""

from __future__ import annotations

from bot.domain.actions import Attachment, Merged, SendMessage
from bot.domain.events import MessageReceived
from bot.domain.segments import File, Forward, Picture, Record, Sticker, Text, Video


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
