"""Which facts a question is about: the words by which they are looked for, and their order. Pure.

Chinese has no blanks, so its words are looked for by pairs of characters; a single character, by
itself.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from itertools import pairwise

from bot.domain.memories import Kind, StoredFact
from bot.policy.tokens import estimate_text

LONGEST = 1000  # characters of a question or a fact that are looked at
MOST = 80  # words of a question
ROWS = 5
TOKENS = 300.0

CJK = r"\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af"
RUN = re.compile(rf"[{CJK}]+|(?:(?![{CJK}_])\w)+")
STOP_WORDS = frozenset(
    re.findall(
        r"\S+",
        """
    什么 怎么 怎样 这个 那个 哪个 为什 么样 一下 知道 可以 是不 不是 我们 你们 他们 还有 没有 就是
    现在 记得 the an is are was do does did what who how why when where which you me my your of to
    in on it and or for with this that know remember please
    """,
    )
)
"""Words that every other sentence has: nothing is found by them."""


OF_KIND = {
    Kind.TASTE: "喜欢 口味 爱好 忌口 likes",
    Kind.NAME: "称呼 叫什 name",
    Kind.PLAN: "计划 安排 plans",
}
"""What facts of a kind are asked for by, whatever their own words."""


def found_by(memory: StoredFact) -> tuple[str, ...]:
    """The words that a fact is found by: its own, and those of its kind."""
    return tuple(dict.fromkeys((*terms(memory.text), *OF_KIND.get(memory.kind, "").split())))


def terms(text: str) -> tuple[str, ...]:
    """The words of a text by which it is found, each once, in order."""
    folded = unicodedata.normalize("NFKC", text[:LONGEST]).casefold()
    found: dict[str, None] = {}
    for run in RUN.findall(folded):
        found.update(dict.fromkeys(word for word in _words(run) if word not in STOP_WORDS))
    return tuple(found)[:MOST]


def _words(run: str) -> tuple[str, ...]:
    if re.match(rf"[{CJK}]", run) is None:
        return (run,) if len(run) > 1 or run.isdigit() else ()
    return tuple(map("".join, pairwise(run))) if len(run) > 1 else (run,)


def characters(text: str) -> tuple[str, ...]:
    """The single characters a short question consists of: what no pair of them can find."""
    return tuple(term for term in terms(text) if len(term) == 1 and re.match(rf"[{CJK}]", term))


def best(found: Iterable[StoredFact], question: str, *, asker: int) -> tuple[StoredFact, ...]:
    """The few that are told: by how many of the question's words they have, the asker's own first,
    the latest used first; each fact once.
    """
    asked = set(terms(question))
    scored = [(len(asked.intersection((*found_by(one), *one.text))), one) for one in found]
    scored.sort(key=lambda pair: (-pair[0], pair[1].subject != asker, -pair[1].used))
    told: dict[str, StoredFact] = {}
    left = TOKENS
    for score, one in scored:
        cost = estimate_text(one.text)
        if score and one.text not in told and cost <= left and len(told) < ROWS:
            told[one.text] = one
            left -= cost
    return tuple(told.values())
