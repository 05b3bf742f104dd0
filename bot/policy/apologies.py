"""The polite lines that stand in place of an answer, in the asker's language, and how they are
addressed. Pure.
"""

from __future__ import annotations

from typing import Final

from bot.domain.actions import SendMessage
from bot.domain.events import MessageReceived
from bot.domain.segments import Quote, Text

SORRY: Final = "刚才重启了一下，没能答完，请再问一次。"
LOST: Final = "刚才的回答没能发出来，请再问一次。"


def apology(question: MessageReceived, words: str) -> SendMessage:
    """The words where the question was asked; in a group they quote it."""
    quote = (Quote(question.message_id),) if is_quoted(question) else ()
    return SendMessage(question.conversation, (*quote, Text(words)))


def is_quoted(question: MessageReceived) -> bool:
    """Whether what answers it quotes it: in a group, by an id that is no other message's too."""
    return question.conversation.is_group and question.has_identity


def is_apology(action: SendMessage) -> bool:
    """Whether it asks to ask again: whoever got that is not asked once more."""
    words = "".join(segment.text for segment in action.segments if isinstance(segment, Text))
    return words in (SORRY, LOST)
