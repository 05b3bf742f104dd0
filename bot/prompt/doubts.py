"""Whether an answer may be no answer but a part of the prompt, which small models say back. Pure.

An honest answer can be the same: what somebody said, today's date, words in brackets. So nothing of
it is cut: the model is asked once more, with examples before the question, and what it says then is
sent; where that is nothing, what was doubted is.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import cache
from itertools import islice

from msgspec import Struct
from msgspec.structs import force_setattr

from bot.domain.chat import AssistantMessage, Message, SystemMessage, UserMessage
from bot.policy.already_said import bare, letters_of
from bot.policy.echo import is_greeting
from bot.prompt.language import WORDINGS
from bot.prompt.render import LINE, REPLY
from bot.prompt.wording import Wording

LONGEST = 600  # characters: nobody who says so much only says it back
TELLING = 6  # letters: fewer are said by many
ASKED_BACK = 4  # letters of a question said back: fewer are an answer
RECITED = 12  # letters of our rules, which say so much in no other words
WHOSE, MOST_COLONS = 60, 3  # in front of somebody's words: a time, a name, a number
COLON = re.compile("[:：]")
ENDS = " 。.!！"  # what a model adds to a line, or leaves out
BRACKETS = frozenset(("()", "（）", "[]", "［］", "【】"))
CJK = re.compile(r"[\u3400-\u9fff]")
THANKS = re.compile(r"谢|\bth(?:anks|x)", re.IGNORECASE)
ASKS_WHERE = re.compile(r"群|哪|叫|group|where|name|called", re.IGNORECASE)
ASKS_WHEN = re.compile(r"[号日天期几周时何]|截止|多久|when|dat|day|time|week|long", re.IGNORECASE)
ASKS_WHO = re.compile(
    r"身份|角色|权限|群主|管理|成员|我(?:算|是)(?:谁|什么)|who am i|role|owner|admin|member",
    re.IGNORECASE,
)
ASKS_RULES = re.compile(r"规|允许|禁止|不准|rule|allow|forbid", re.IGNORECASE)
REPLIES = REPLY.partition("{")[0].strip()
SAYS = LINE.partition("{text}")[0].removeprefix("{who}")
TOLD = tuple(
    bare(told) for words in WORDINGS for told in (words.notices.last_step, words.notices.empty)
)
ROLES = tuple(bare(role) for words in WORDINGS for role in words.roles.values())
OURS = "|".join(re.escape(words.rules.splitlines()[0]) for words in WORDINGS)
BEFORE_OURS = re.compile(rf".*\n\n(?={OURS})", re.DOTALL)
"""What stands before our rules: the persona, and the rules of the house."""


class EchoDoubts(Struct, frozen=True):
    """A prompt as `read`, and the question `asked` in it; the words about the moment behind that,
    the day in them and the name of the place; and what was answered twice in a row, if anything.
    What people said in it is `told`.
    """

    read: Sequence[Message]
    asked: str = ""
    now: str = ""
    day: str = ""
    place: str = ""
    twice: str = ""
    told: str = ""

    def __post_init__(self) -> None:
        # While the prompt is at hand anyway: hundreds of other questions come before the answer.
        # One text, not one after the other, and not isinstance: a prompt has many messages. What a
        # line begins with holds no line end, so it is found in none that was not there alone.
        said = [one.text for one in self.read if type(one) is UserMessage]
        force_setattr(self, "told", "\n".join(said))

    def has(self, text: str) -> bool:
        """Whether the answer may be nothing but a part of that, or what was said `twice` before."""
        words = text.strip()
        if not words or len(words) > LONGEST:
            return False
        lines = [(line, bare(line)) for line in words.splitlines() if line.strip()]
        letters = "".join(letters for _, letters in lines)
        return (
            _is_aside(words)
            or REPLIES in words
            or self._is_moment(letters)
            or self._is_place(words)
            or any(map(letters.__contains__, TOLD))
            or self._is_role(letters)
            or self._goes_round(words, letters)
            or self._is_said(lines)
            or self._is_recited(lines)
        )

    def _goes_round(self, words: str, letters: str) -> bool:
        """Whether it is the question itself, or the answer of the two before; people greet each
        other in the same words, and are greeted so in turn.
        """
        if letters == bare(self.asked) and _weight(letters) >= ASKED_BACK:
            return not is_greeting(self.asked) or bool(THANKS.search(self.asked))
        is_again = words == self.twice and _weight(letters) >= TELLING
        return is_again and not is_greeting(self.asked)

    def _is_place(self, words: str) -> bool:
        """Whether it tells the name of the place in our signs, and nobody asked for that."""
        named = bool(self.place) and f"「{self.place}」" in words
        return named and not ASKS_WHERE.search(self.asked)

    def _is_moment(self, letters: str) -> bool:
        """Whether it is of the words about the moment, or has both their day and their place."""
        place, weekday = letters_of(self.place), self.day.rpartition(" ")[2].casefold()
        is_here = bool(place) and (
            place == letters or (place in letters and bool(weekday) and weekday in letters)
        )
        if not is_here and (letters not in letters_of(self.now) or _weight(letters) < TELLING):
            return False
        return not self._is_asked_for(letters)

    def _is_asked_for(self, letters: str) -> bool:
        """Whether it is of that of the moment which the question asks for."""
        here = (bare(words.here.format(name=self.place)) for words in WORDINGS)
        parts = ((ASKS_WHEN, (bare(self.day),)), (ASKS_WHERE, here), (ASKS_WHO, ROLES))
        return any(
            letters in part for asks, told in parts if asks.search(self.asked) for part in told
        )

    def _is_role(self, letters: str) -> bool:
        """Whether it tells in our words who asks, and nobody asked for that."""
        return any(map(letters.__contains__, ROLES)) and not ASKS_WHO.search(self.asked)

    def _is_said(self, lines: Sequence[tuple[str, str]]) -> bool:
        """Whether with each line one of somebody's begins, whoever's name stands before it."""
        return all(any(begun in self.told for begun in beginnings(*line)) for line in lines)

    def _is_recited(self, lines: Sequence[tuple[str, str]]) -> bool:
        """Whether the letters of a line are of the rules; only ours are no answer to who asks for
        some.
        """
        said = [letters for _, letters in lines if len(letters) >= RECITED]
        rules = [letters_of(text) for text in self._rules()] if said else ()
        return any(letters in text for letters in said for text in rules)

    def _rules(self) -> Iterator[str]:
        is_asked = ASKS_RULES.search(self.asked)
        for one in self.read[:1]:  # where they stand
            if isinstance(one, SystemMessage):
                yield BEFORE_OURS.sub("", one.text) if is_asked else one.text


@cache
def example_rounds(words: Wording) -> tuple[Message, ...]:
    """The examples of a language, as messages."""
    return tuple(
        message
        for question, answer in words.examples
        for message in (UserMessage(question), AssistantMessage(answer))
    )


def said_twice(rounds: Sequence[Message]) -> str:
    """The last answer in these rounds, where the answer before was the same; else empty."""
    last = ""
    for one in reversed(rounds):
        if type(one) is AssistantMessage and one.text:
            if last:
                return last if one.text == last else ""
            last = one.text
    return ""


def _weight(letters: str) -> int:
    """How many letters it says as much as: a Chinese character is two."""
    return len(letters) + len(CJK.findall(letters))


def _is_aside(words: str) -> bool:
    """Whether it is in one pair of brackets."""
    inside = words[1:-1]
    return f"{words[0]}{words[-1]}" in BRACKETS and not (words[0] in inside or words[-1] in inside)


def beginnings(line: str, letters: str) -> Iterator[str]:
    """How a line of somebody would begin that has these words: all of them, or those behind one of
    the first colons; enough of each to be somebody's.
    """
    if len(letters) < TELLING:
        return
    yield SAYS + line.strip(ENDS)
    for colon in islice(COLON.finditer(line, 0, WHOSE), MOST_COLONS):
        part = line[colon.end() :]
        if len(bare(part)) >= TELLING:
            yield SAYS + part.strip(ENDS)
