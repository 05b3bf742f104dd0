"""Rules for requests to join a group, by the answer to the group's question. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Final, NamedTuple, TypeAlias

from msgspec import Struct

Pattern: TypeAlias = Callable[[str], bool]
"""Whether a text contains the pattern, in time linear in its length."""

MAX_READ: Final = 500  # characters of an answer that are searched
ANSWER: Final = re.compile(
    r"\A\s*(?:问题|question)[:：].*?\n\s*(?:答案|answer)[:：]", re.IGNORECASE | re.DOTALL
)
"""QQ puts the group's question before the answer. The question is cut, since it may contain the
expected words.
"""


class JoinRule(Struct, frozen=True):
    """Accepts or refuses (with a `reason`) each applicant whose answer contains the pattern, which
    the file writes as `text`.
    """

    matches: Pattern
    accepts: bool
    reason: str = ""
    text: str = ""


class Decided(NamedTuple):
    """The first rule that fits, and its number, counted from 1."""

    rule: JoinRule
    number: int


def answer_in(comment: str) -> str:
    """The applicant's own words, without the group's question."""
    return ANSWER.sub("", comment, count=1).strip()


def decide(rules: Iterable[JoinRule], comment: str) -> Decided | None:
    """The decision about an applicant; None if no rule fits. No rule fits an empty answer."""
    answer = answer_in(comment)[:MAX_READ]
    if not answer:
        return None
    found = (Decided(rule, number) for number, rule in enumerate(rules, 1) if rule.matches(answer))
    return next(found, None)
