"""Does the errands of a group's life as the demo model: each is known by the mark with which its
instructions begin. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from adapters.offline.question import Json, Language, read_text

LINE: Final = re.compile(r"\d\d:\d\d (?P<name>[^\n:]+): (?P<text>[^\n]+)")
NOTE: Final = re.compile(r"\(\d+\) (?P<text>[^\n]+)")
MAX_WORDS: Final = 60  # characters of what somebody said last
MAX_PEOPLE: Final = 6


def do_errand(messages: Sequence[Json]) -> str:
    """The answer to an errand; empty if the messages are none."""
    system = "".join(read_text(one) for one in messages if one.get("role") == "system")
    asked = "\n".join(read_text(one) for one in messages if one.get("role") == "user")
    for mark, (errand, language) in ERRANDS.items():
        if mark in system:
            return errand(asked, language)
    return ""


def _recap(asked: str, language: Language) -> str:
    """Who said how much, and what last."""
    if notes := NOTE.findall(asked):
        return "\n".join(notes)
    said: dict[str, list[str]] = {}
    for line in LINE.finditer(asked):
        said.setdefault(line["name"], []).append(line["text"])
    form = "{name}（{count} 条）：{last}" if language == "zh" else "{name} ({count}): {last}"
    return "\n".join(
        form.format(name=name, count=len(texts), last=texts[-1][:MAX_WORDS])
        for name, texts in list(said.items())[:MAX_PEOPLE]
    )


ERRANDS: Final[Mapping[str, tuple[Callable[[str, Language], str], Language]]] = {
    "[省流]": (_recap, "zh"),
    "[Recap]": (_recap, "en"),
}
"""What is done for instructions with this mark, and in which language."""
