"""Whether a line looks as if more of its author were to come. Pure; takes linear time.

People in a group write in bursts: a call, a picture, half a sentence, the rest.
"""

from __future__ import annotations

import re

from bot.core.events import MessageReceived
from bot.core.segments import Markdown, Record, Sticker
from frostagent.text.visible_text import visible_text
from frostagent.types.speech import Face, Mention, MentionAll, Quote, Text

SHORT = 12  # characters: shorter words without an end may be the beginning of something
END = tuple(".!?。！？…~～;；)）」』”\"'】》")
ASKING = re.compile(
    r"吗|嘛|呢|么|什么|啥|谁|哪|几|多少|多久|多大|怎|咋|为何|如何|是不是|有没有|能不能|可不可以|对不对|会不会"
    r"|\b(?:who|whom|whose|what|when|where|which|why|how|is|are|was|do|does|did|can|could|will"
    r"|would|should)\b",
    re.IGNORECASE,
)
CALLS = re.compile(
    r"(?:在(?:吗|嘛|么|不|不在|呢|没)?|你?在哪|有人(?:吗|么|在吗)?|你好(?:呀|啊)?|您好|哈喽|嗨|喂|早(?:上好|安)?"
    r"|晚上好|打扰(?:一下|了)?|问(?:一下|个问题|你个问题)|请问(?:一下)?|hi|hello|hey"
    r"|are you there|you there)"
    r"(?:你们|大家)?",
    re.IGNORECASE,
)
MARKS = " \t\r\n,.!?;:~…，。！？；：、～"


def message_words(message: MessageReceived) -> str:
    """The words written in it."""
    parts = [
        visible_text(segment.text if isinstance(segment, Text) else segment.content)
        for segment in message.segments
        if isinstance(segment, Text | Markdown)
    ]
    return "".join(parts).strip()


def shows_something(message: MessageReceived) -> bool:
    """Whether it brings what words are about: a picture, a file, a forward, a card."""
    words = (Text, Markdown, Mention, MentionAll, Quote, Face, Sticker, Record)
    return any(not isinstance(segment, words) for segment in message.segments)


def is_bare_mention(message: MessageReceived) -> bool:
    """Whether it mentions the bot and says nothing else: neither a word nor anything besides."""
    said = [
        segment
        for segment in message.segments
        if not (isinstance(segment, Text) and not visible_text(segment.text).strip())
    ]
    return bool(said) and all(
        isinstance(segment, Mention) and segment.user_id == message.self_id for segment in said
    )


def looks_unfinished(message: MessageReceived) -> bool:
    """Whether more is to be expected: few words that neither end nor ask, a picture alone, a bare
    call, a greeting. What is spoken is finished, and so is a quote without words: it is the
    question.
    """
    words = message_words(message)
    if CALLS.fullmatch(words.strip(MARKS)):
        return True
    if not words:
        return not any(isinstance(segment, Record | Quote) for segment in message.segments)
    return len(words) < SHORT and not words.endswith(END) and not ASKING.search(words)


def is_addressed_to_bot(message: MessageReceived) -> bool:
    """Whether it is said to the bot beyond doubt: in private all is."""
    return not message.conversation.is_group or any(
        isinstance(segment, Mention) and segment.user_id == message.self_id
        for segment in message.segments
    )


def is_for_others(message: MessageReceived, quoted: MessageReceived | None = None) -> bool:
    """Whether it mentions or quotes somebody else: it may be for him, and goes on with nothing.

    What it quotes is somebody else's unless `quoted`, where that is known, is its author's own.
    """
    author = message.sender.user_id
    is_own = quoted is not None and quoted.sender.user_id == author
    return any(
        isinstance(segment, MentionAll)
        or (isinstance(segment, Quote) and not is_own)
        or (isinstance(segment, Mention) and segment.user_id not in (message.self_id, author))
        for segment in message.segments
    )
