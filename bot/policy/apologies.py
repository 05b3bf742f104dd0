"""The polite lines that stand in place of an answer, in the asker's language, and how they are
addressed. Pure.
"""

from __future__ import annotations

import re
from typing import Final

from bot.domain.actions import SendMessage
from bot.domain.events import MessageReceived
from bot.domain.segments import Quote, Text

SORRY: Final = "刚才重启了一下，没能答完，请再问一次。"
LOST: Final = "刚才的回答没能发出来，请再问一次。"
UNANSWERED: Final = "抱歉，这次没能回答上来，请稍后再试。（编号 {trace}）"
TOO_LONG: Final = "抱歉，回答太长，QQ 没让我发出来。请让我说得短一些，再问一次。"
NO_CONCLUSION: Final = "我查了好几步，还没有得出结论，先停在这里。换个更具体的问法再试试？"

OURS: Final = (SORRY, LOST, UNANSWERED, TOO_LONG, NO_CONCLUSION)
"""None of these is a model's: people quote them, and a small model says back what it reads."""
TRACED: Final = "（编号"
WITHOUT_TRACE: Final = frozenset(line.partition(TRACED)[0] for line in OURS)
TRACE: Final = re.compile(rf"{TRACED} \w+）$")


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


def is_ours(text: str) -> bool:
    """Whether a text is nothing but one of these lines."""
    return TRACE.sub("", text) in WITHOUT_TRACE
