"""Notices to a model whose run goes on: what it did wrong, or that it must end now; and the words
that stand in place of its own where it did not. Pure; in Chinese they are in `wording_zh`.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, eq=False)
class Notices:
    """In one language; `no_conclusion` is what people read."""

    last_step: str
    empty: str
    no_conclusion: str


EN = Notices(
    last_step=(
        "You have no tool calls left. Do not call any tool: answer now, in words, from what you "
        "have found so far, and say what is still missing."
    ),
    empty="Your last answer was empty. Answer now, in words.",
    no_conclusion=(
        "I looked into it in several steps and came to no conclusion, so I stop here. Could you "
        "ask for something more specific?"
    ),
)
