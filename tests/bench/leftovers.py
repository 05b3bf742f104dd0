"""What of our prompt stands in words that were sent: found by other means than the bot cuts it by. Pure.

These are for counting, and may take an honest word for a frame: who reads the talk decides.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from bot.prompt.prompt_language import WORDINGS

SHORTEST = 6  # characters of somebody's words that are known again inside an answer
RECITED = 14  # characters of our rules in a row
ROUND = 3  # times a line is said
HEADINGS = {
    word.partition(" ")[0]
    for words in WORDINGS
    for word in (words.question, words.record, words.forwarded, words.earlier, words.now, words.recalled, words.notes)
}
NOTICES = [
    notice.casefold()
    for words in WORDINGS
    for notice in (
        *(words.engine[0].last_step, words.engine[0].empty),
        *(words.about.unanswered, words.about.stopped, words.about.silent, words.about.broken_off),
    )
]
ROLES = [role for words in WORDINGS for role in words.roles.values()]
MARKDOWN = re.compile(r"\*\*|__|^\s*#{1,6}\s|^\s*[*-]\s|```|^\|.*\|$|\[[^\]\n]+\]\(http", re.MULTILINE)
STAND_IN = re.compile(r"\s*[(（\[【][^()（）\[\]【】]*[)）\]】]\s*")
DATE = re.compile(r"[(（\[【]\s*\d{2,4}-\d\d-\d\d|\d{4}-\d\d-\d\d (?:星期|\w+day)")


FORMS = (
    *("heading", "number", "speaker", "log line", "moment", "stand-in", "notice", "rules", "question", "circle"),
    "markdown",
)
"""What is looked for, by the names it is counted under; all but the last are of our frame."""


@dataclass(frozen=True, slots=True)
class Room:
    """Where it was said: the group, who is in it, the bot's names, what people said, and our rules."""

    group: str
    people: tuple[str, ...]
    own: tuple[str, ...]
    lines: Sequence[str] = ()
    rules: str = ""

    def forms(self, said: str, question: str = "") -> tuple[str, ...]:
        """What of FORMS is in it, where it answers this question."""
        return tuple(self._forms(said, question))

    def _forms(self, said: str, question: str) -> Iterator[str]:
        names = "|".join(map(re.escape, sorted((*self.people, *self.own, "我", "me"), key=len, reverse=True)))
        if any(re.search(rf"[\[［【]\s*{re.escape(heading)}", said) for heading in HEADINGS):
            yield "heading"
        if re.search(rf"(?:{names})\s*[#＃]\d", said):
            yield "number"
        if re.search(
            rf"^\W{{0,2}}(?:\d\d:\d\d\W+)?(?:{names})(?: ↩[^:：\n]*)?\s*[:：]|^\S{{1,24}}#\d+\s*[:：]",
            said,
            re.MULTILINE,
        ):
            yield "speaker"
        if any(len(line) >= SHORTEST and line in said for line in self.lines):
            yield "log line"
        is_place = plain(said) == plain(self.group) or f"「{self.group}」" in said
        if DATE.search(said) or is_place or any(role in said for role in ROLES):
            yield "moment"
        if STAND_IN.fullmatch(said):
            yield "stand-in"
        if any(notice in said.casefold() or recites(said.casefold(), notice) for notice in NOTICES):
            yield "notice"
        if recites(said, self.rules):
            yield "rules"
        if question and plain(said) == plain(question):
            yield "question"
        if any(times >= ROUND for line, times in Counter(said.splitlines()).items() if line.strip()):
            yield "circle"
        if MARKDOWN.search(said):
            yield "markdown"


def recites(said: str, ours: str) -> bool:
    """Whether so much of ours stands in it, in a row."""
    return any(said[start : start + RECITED] in ours for start in range(len(said) - RECITED + 1))


def plain(text: str) -> str:
    return re.sub(r"[\W_]", "", text).casefold()
