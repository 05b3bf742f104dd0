"""Whose words stand in rounds that were rendered before: the way back from the frame to the
numbers. Pure.

Only we write at the beginning of a line, so nobody can be left out of it. Somebody can be named by
what another wrote himself: that takes authority away from a question, and never adds any.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache

from bot.domain.chat import Message, ToolMessage, UserMessage
from bot.domain.traits import Audience

NOBODY_KNOWS = 0
"""Whoever wrote what was passed on: a forward, a card, the name of a file; or all that a summary
was made of.
"""

NAME = r"([^()\n]{1,24})\((\d{1,19})\)"
SPEAKER = re.compile(rf"^ *{NAME}: ", re.MULTILINE)
QUOTED = re.compile(rf"\[引用 {NAME} 的「")
MENTIONED = re.compile(rf"@{NAME}")
PASSED_ON = re.compile(r"^ *\[转发内容\]$|\[(?:卡片|分享|音乐|文件|位置|按钮) ", re.MULTILINE)


def voices(rounds: Iterable[Message], *, summary: str = "") -> frozenset[int]:
    """The numbers of those whose words, names included, are in these rounds or in the summary of
    older ones.
    """
    rounds = tuple(rounds)
    heard = (_heard_in(message.text) for message in rounds if isinstance(message, UserMessage))
    told = any(
        isinstance(message, ToolMessage) and message.authority is not Audience.OWNER
        for message in rounds
    )
    return frozenset({NOBODY_KNOWS} if summary or told else ()).union(*heard)


@lru_cache(maxsize=1024)  # every turn reads the same rounds again
def _heard_in(text: str) -> frozenset[int]:
    found = {int(number) for pattern in (SPEAKER, QUOTED) for _, number in pattern.findall(text)}
    # Where a number stands for a name, the mention is nobody's word.
    found |= {int(number) for name, number in MENTIONED.findall(text) if name != number}
    if PASSED_ON.search(text):
        found.add(NOBODY_KNOWS)
    return frozenset(found)
