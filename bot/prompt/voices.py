"""Whose words stand in rounds that were rendered before: the way back from the frame to the
accounts. Pure.

Only we write at the beginning of a line, so nobody can be left out of it. Somebody can be named by
what another wrote himself: that takes authority away from a question, and never adds any.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from functools import lru_cache

from bot.domain.chat import Message, ToolMessage, UserMessage
from bot.domain.traits import Audience
from bot.prompt.language import WORDINGS
from bot.prompt.render import NAMELESS

NOBODY_KNOWS = 0
"""Whoever wrote what was passed on: a forward, a card, the name of a file; or all that a summary
was made of; or has a number that nobody can look up.
"""

NAME = r"([^()#:\n]{1,24})#(\d{1,19})"
SPEAKER = re.compile(rf"^ *{NAME}(?: ↩[^\n]*?)?: ", re.MULTILINE)
REPLIED = re.compile(rf"↩{NAME}")
_quotes = "|".join(re.escape(words.quoted.partition("{who}")[0]) for words in WORDINGS)
QUOTED = re.compile(rf"(?:{_quotes}){NAME}")
MENTIONED = re.compile(rf"@{NAME}")
_kinds = "|".join(
    re.escape(word)
    for words in WORDINGS
    for s in (words.segments,)
    for word in (s.card, s.share, s.music, s.file, s.place, s.keys)
)
_forwards = "|".join(re.escape(words.heading(words.forwarded)) for words in WORDINGS)
PASSED_ON = re.compile(rf"^ *(?:{_forwards})$|\[(?:{_kinds}) ", re.MULTILINE)


def voices(
    rounds: Iterable[Message], person: Callable[[int], int | None], *, summary: str = ""
) -> frozenset[int]:
    """The accounts of those whose words, names included, are in these rounds or in the summary of
    older ones; `person` is who has a number.
    """
    rounds = tuple(rounds)
    heard = (_heard_in(message.text) for message in rounds if isinstance(message, UserMessage))
    told = any(
        isinstance(message, ToolMessage) and message.authority is not Audience.OWNER
        for message in rounds
    )
    numbers = frozenset[int]().union(*heard)
    known = {person(number) or NOBODY_KNOWS if number else NOBODY_KNOWS for number in numbers}
    return frozenset(known | {NOBODY_KNOWS} if summary or told else known)


@lru_cache(maxsize=1024)  # every turn reads the same rounds again
def _heard_in(text: str) -> frozenset[int]:
    said = (SPEAKER, REPLIED, QUOTED)
    found = {int(number) for pattern in said for _, number in pattern.findall(text)}
    # Where nobody knows the name, the mention is nobody's word.
    found |= {int(number) for name, number in MENTIONED.findall(text) if name != NAMELESS}
    if PASSED_ON.search(text):
        found.add(NOBODY_KNOWS)
    return frozenset(found)
