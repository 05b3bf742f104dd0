"""The polite lines sent instead of an answer, in the asker's language regardless of BOT_LANGUAGE,
and their addressing. Pure.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Final

from bot.core.actions import SendMessage
from bot.core.engine_words import ENGINE_WORDS
from bot.core.events import MessageReceived
from bot.core.language import CATALOGUE, Language, Phrase
from bot.core.refusals import is_muted, is_too_long
from frostagent.engine.answer_filter import own_words
from frostagent.types.speech import Quote, Refused, Text
from frostagent.words import ENGLISH

SORRY: Final = Phrase(
    "刚才重启了一下，没能答完，请再问一次。",
    "I was restarted just now and did not finish: please ask again.",
)
LOST: Final = Phrase(
    "刚才的回答没能发出来，请再问一次。",
    "My last answer could not be delivered: please ask again.",
)
REST: Final = Phrase(
    "后面的话没能发出来，要接着看的话请再问一次。",
    "The rest of my answer could not be delivered: please ask again if you need it.",
)
UNANSWERED: Final = Phrase(
    "抱歉，这次没能回答上来，请稍后再试。（编号 {trace}）",
    "Sorry, I could not answer that. Please try again later. (run {trace})",
)
TOO_LONG: Final = Phrase(
    "抱歉，回答太长，QQ 没让我发出来。请让我说得短一些，再问一次。",
    "Sorry, QQ did not take so long an answer. Please ask for a shorter one.",
)
NO_CONCLUSION: Final = Phrase(
    "我查了好几步，还没有得出结论，先停在这里。换个更具体的问法再试试？",
    ENGLISH.no_conclusion,
)
SLOW_DOWN: Final = Phrase(
    "问得有点快，我歇一会儿，过一分钟再问我吧。",
    "That was a bit fast for me: please ask again in a minute.",
)
CROWDED: Final = Phrase(
    "这会儿群里问我的人太多，过一分钟再问我吧。",
    "Too many people are asking me just now: please ask again in a minute.",
)
NO_MORE: Final = Phrase(
    "今天的额度用完了，明天再来问我吧。",
    "All I may spend today is spent: please ask again tomorrow.",
)
CATALOGUE.register(__name__, globals())

LINES: Final = (
    *(SORRY, LOST, REST, UNANSWERED, TOO_LONG, NO_CONCLUSION),
    *(SLOW_DOWN, CROWDED, NO_MORE),
)
OURS: Final = (*(line.zh for line in LINES), *(line.en for line in LINES))
"""Recognized as ours, since people quote them and small models repeat them."""
OWN: Final = replace(ENGINE_WORDS, fallbacks=OURS, run_marks=("（编号 {run}）", " (run {run})"))
WITHOUT_RUN: Final = frozenset(map(own_words(OWN).without_run, OURS))
ASK_AGAIN: Final = frozenset(text for line in (SORRY, LOST, REST) for text in (line.zh, line.en))
CJK: Final = re.compile(r"[\u3400-\u9fff]")
LATIN: Final = re.compile(r"[A-Za-z]")
ADDRESS: Final = re.compile(r"https?://\S+")  # of no language
FEW: Final = 8  # letters; "ok?" occurs in every language


def apology(question: MessageReceived, words: Phrase) -> SendMessage:
    """The line where the question was asked, in its language; in a group it quotes the question."""
    quote = (Quote(question.message_id),) if is_quoted(question) else ()
    return SendMessage(question.conversation, (*quote, Text(in_question_language(words, question))))


def refusal_reply(refused: Refused, *, is_part: bool) -> Phrase | None:
    """The line for an asker whose answer, or the rest of it, QQ refused; None if QQ would refuse
    the line as well.
    """
    if not refused.by_server or refused.blocks_place or is_muted(refused.reason):
        return None
    return TOO_LONG if is_too_long(refused.reason) else REST if is_part else LOST


def in_question_language(words: Phrase, question: MessageReceived, **values: object) -> str:
    return words.format(language_of(question), **values)


def language_of(question: MessageReceived) -> Language:
    """Return the language of a question; for a short one, that of the names of asker and group."""
    asked = "".join(part.text for part in question.segments if isinstance(part, Text))
    if CJK.search(asked):
        return Language.CHINESE
    words = ADDRESS.sub("", asked) if "://" in asked else asked
    names = "" if len(LATIN.findall(words)) >= FEW else question.sender.name + question.group_name
    return Language.CHINESE if CJK.search(names) else Language.ENGLISH


def is_quoted(question: MessageReceived) -> bool:
    """Whether an answer quotes the question: in a group, if its message id is unique."""
    return question.conversation.is_group and question.has_identity


def is_apology(action: SendMessage) -> bool:
    """Whether the message invites the asker to ask again."""
    words = "".join(segment.text for segment in action.segments if isinstance(segment, Text))
    return words in ASK_AGAIN


def is_fallback_reply(text: str) -> bool:
    """Whether a text is nothing but one of these lines."""
    return own_words(OWN).without_run(text) in WITHOUT_RUN
