"""The prompt, said back: what a model answers that is not its own, by what the prompt of its run
shows. Pure; it begins where `frames` ends, which knows the form of the frame alone.

A small model that does not know what to say repeats what it reads: lines of the log under bare
names, the line of the moment inside a sentence, our rules and notices, what stands in place of an
answer, its last answer, or itself. Each of these is an honest answer to some question, so the
question decides. Nothing inside a code block is touched.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from msgspec import Struct

from bot.domain.chat import AssistantMessage, UserMessage
from bot.policy.circling import is_given_again, is_same, without_circles
from bot.prompt.log_lines import without_log
from bot.prompt.moments import is_date_alone, without_moment
from bot.prompt.people import People
from bot.prompt.recited import is_template, without_ours
from bot.prompt.stand_ins import asks_for_somebody, without_stand_in
from bot.prompt.wording import Wording
from bot.prompt.wording_zh import ZH

RECENT = 4  # rounds
LETTER = re.compile(r"\w")
SPEAKER = re.compile(r"\s*(?P<name>[^\s@#:：]{1,24})#(?P<number>\d+)\s*[:：.。]?\s*")
ASKING = re.compile(r"[?？吗呢]|[谁哪几啥]|什么|怎|多少|为何")
CODE = re.compile(
    r"(^\s{0,3}(?:```|~~~).*?(?:^\s{0,3}(?:```|~~~)[^\n]*$|\Z))", re.DOTALL | re.MULTILINE
)


class Shown(Struct, frozen=True):
    """What the prompt of a run shows, and what is asked there.

    `question` is the line that is answered, `asked` all that its asker said of late, the question
    last; `group` is its name as the prompt has it. So many messages stand `before` the rounds.
    """

    people: People = People()
    words: Wording = ZH
    question: str = ""
    asked: str = ""
    group: str = ""
    before: int = 0

    def is_speaker(self, text: str) -> bool:
        """Whether it is a name and its number alone, as they stand before a line."""
        if "#" not in text or not (match := SPEAKER.fullmatch(text)) or not self.question:
            return False
        known = self.people.is_shown(match["name"].casefold(), match["number"])
        return known and not asks_for_somebody(self.wanted)

    def without(self, text: str) -> str:
        """The text without what only says the prompt back; the same text where nothing does."""
        if not text.strip() or not self.question:
            return text
        if "```" in text or "~~~" in text:
            parts = CODE.split(text)
            left = "".join(
                part if place % 2 else self._plain(part) for place, part in enumerate(parts)
            )
        else:
            left = self._plain(text)
        if left == text:
            return "" if self._is_nothing_new(text) else text
        return left.strip() if LETTER.search(left) else ""

    @property
    def wanted(self) -> str:
        """What asks for something: the question where it does, else all of it."""
        return self.question if ASKING.search(self.question) else self.asked

    def _plain(self, text: str) -> str:
        if not text.strip():
            return text
        wanted = self.wanted
        left = without_moment(text, self.group, wanted)
        left = without_log(left, self.people, question=self.question, asked=wanted)
        if "#" in left:
            lines = left.split("\n")
            kept = [line for line in lines if not is_template(line, self.asked)]
            left = left if len(kept) == len(lines) else "\n".join(kept)
        left = without_ours(left, self.words, self.asked)
        left = without_stand_in(left, wanted, has_read=self.people.has_stand_in)
        return without_circles(left, self.asked)

    def _is_nothing_new(self, text: str) -> bool:
        if is_date_alone(text, self.asked):
            return True
        # Who is greeted or thanked twice says the same twice: only what was somebody else's line
        # is no answer of its own.
        if not self.people.has_shown(text):
            return False
        given = [question for question, answer in self._given() if is_same(text, answer)]
        return bool(given) and is_given_again(text, self.wanted, given)

    def _given(self) -> Iterator[tuple[str, str]]:
        """The latest answers, each with its question."""
        rounds, answer = 0, ""
        for message in reversed(self.people.messages[self.before : -1]):
            if isinstance(message, AssistantMessage):
                answer = answer or message.text
            elif isinstance(message, UserMessage):
                if answer:
                    yield message.text.rpartition("\n")[2], answer
                    rounds, answer = rounds + 1, ""
                if rounds == RECENT:
                    return


NOTHING_SHOWN = Shown()
