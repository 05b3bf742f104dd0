"""Rules for people who ask to join a group, by what they answered to its question. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Final, NamedTuple, TypeAlias

from msgspec import Struct

Pattern: TypeAlias = Callable[[str], bool]
"""Whether a text has what is looked for in it, in time linear in its length."""

MAX_READ: Final = 500  # characters of an answer
ANSWER: Final = re.compile(
    r"\A\s*(?:问题|question)[:：].*?\n\s*(?:答案|answer)[:：]", re.IGNORECASE | re.DOTALL
)
"""What QQ puts before an answer: the group's question, which may have the right words in it."""


class JoinRule(Struct, frozen=True):
    """Accepts or refuses (with a `reason`) whoever's answer has this in it."""

    matches: Pattern
    accepts: bool
    reason: str = ""


class Decided(NamedTuple):
    """The first rule that fits, and its number from 1 on."""

    rule: JoinRule
    number: int


def answer_in(comment: str) -> str:
    """The applicant's own words, without the question of the group."""
    return ANSWER.sub("", comment, count=1).strip()


def decide(rules: Iterable[JoinRule], comment: str) -> Decided | None:
    """What the rules decide about an applicant; None if none fits. An empty answer fits none."""
    answer = answer_in(comment)[:MAX_READ]
    if not answer:
        return None
    found = (Decided(rule, number) for number, rule in enumerate(rules, 1) if rule.matches(answer))
    return next(found, None)
