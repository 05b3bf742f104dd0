"""The language of a conversation's prompts: that of its people, or the operator's choice. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache

from bot.core.language import Language
from bot.prompt.wording import Wording
from bot.prompt.wording_en import EN
from bot.prompt.wording_zh import ZH
from frostagent.text.lazy_regex import lazy_regex
from frostagent.types.messages import Message, UserMessage

WORDINGS = (ZH, EN)
BY_NAME = {wording.language: wording for wording in WORDINGS}

FRAME = lazy_regex(r"^\[[^\]\n]*\].*$|^ *[^\n:]{1,80}#\d+[^\n:]*:|#\d+|https?://\S+", re.MULTILINE)
"""Headings, names and URLs, which have no language."""
CJK = lazy_regex(r"[\u3040-\u30ff\u3400-\u9fff]")
LETTER = lazy_regex(r"[A-Za-z]")
WRITTEN_IN = lazy_regex(
    rf"^\[({'|'.join(re.escape(words.question) for words in WORDINGS)}) \d\d:\d\d\]", re.MULTILINE
)
"""The heading of a question. In older versions it had no time, and was always Chinese."""
FEW = 8  # letters; "ok" and "hi" occur in every language


def is_chinese(text: str) -> bool:
    """Whether the text is Chinese. Chinese people also write English words, so a character counts
    as several letters.
    """
    words = FRAME.sub("", text)
    return 3 * len(CJK.findall(words)) >= len(LETTER.findall(words))


def language_of_text(text: str, *, usual: Language = Language.CHINESE) -> Language:
    """Return the language of a text, or `usual` if it is too short."""
    if len(LETTER.findall(text)) < FEW and not CJK.search(text):
        return usual
    return Language.CHINESE if is_chinese(text) else Language.ENGLISH


def choose_wording(rounds: Sequence[Message], user: str, *, chosen: str = "") -> Wording:
    """Choose the language of a conversation: `chosen`, else that of its first round, else that of
    `user`.

    The first round decides so that the beginning of the prompt does not change.
    """
    if chosen:
        return BY_NAME[chosen]
    return _spoken_in(next((one.text for one in rounds if isinstance(one, UserMessage)), user))


@lru_cache(maxsize=1024)  # every turn reads the same first round again
def _spoken_in(text: str) -> Wording:
    if heading := WRITTEN_IN.search(text):  # keep the language that the round was rendered in
        return next(words for words in WORDINGS if words.question == heading[1])
    few = len(LETTER.findall(FRAME.sub("", text))) < FEW
    return ZH if few or is_chinese(text) else EN
