"""The notices that ask a model for a better answer, and the lines that stand in place of one."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True, eq=False)
class Notices:
    """In one language. People read `no_conclusion` and the `fallbacks`, in any language, instead of
    an answer: a model that says one of them back has not answered.
    """

    last_step: str
    empty: str
    no_conclusion: str
    fallbacks: tuple[str, ...] = ()


ENGLISH_NOTICES = Notices(
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


TRACE: Final = re.compile(r"(?:（编号 [\w{}]+）| \(run [\w{}]+\))$")


def without_run_id(text: str) -> str:
    """A line without the id of its run."""
    return TRACE.sub("", text) if text.endswith((")", "）")) else text
