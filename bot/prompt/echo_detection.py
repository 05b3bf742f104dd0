"""Whether an answer is no answer, but its question or a part of the prompt, which small models say
back. Pure.

An honest answer can be the same: what somebody said, today's date, words in brackets. So nothing of
it is cut: the model is asked once more, with examples before the question, and what it says then is
sent; if it says nothing, the doubted answer is.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import cache
from itertools import islice

from msgspec import Struct
from msgspec.structs import force_setattr

from bot.core.repetition import already_said, cached_letters
from bot.prompt.prompt_language import WORDINGS
from bot.prompt.render import LINE, REPLY
from bot.prompt.wording import Wording
from frostagent.engine.answer_filter import CJK, ECHO, LONG_ENOUGH
from frostagent.text.similarity import is_similar, letters_only
from frostagent.types.messages import AssistantMessage, Message, SystemMessage, UserMessage

ALIKE = 60.0  # percent: below, marks and blanks alone cannot keep two texts from being the same
FEW_WORDS = 3  # a name or a number alone is said back by who answers with it
BESIDE = 4  # letters and digits beside a greeting: `啦`, `你`, `all`
WORDS = re.compile(r"[A-Za-z]{2,}|[\u3400-\u9fff]")
ASKING = re.compile(
    r"[吗吧谁哪几]|什么|怎么|怎样|多少|为何|为什么|是不是|有没有|能不能|会不会|要不要|可不可以|是否|能否"
)
"""What makes a question of a sentence: without it the same words are its answer."""

ASKS_TO_REPEAT = re.compile(
    r"复述|重复|照[着抄]|原样|跟我|学我|朗?读|翻译|改写|润色|校对|纠正|改正|修改|更正|格式|标点"
    r"|大写|小写|排版|背"
    r"|\b(?:repeat|echo|say|copy|translate|rephrase|fix|correct|format"
    r"|upper|lower|capitali[sz]e|punctuate)",
    re.IGNORECASE,
)
DICTATES = re.compile(
    r"\W*(?:[^\W\d]{0,8}[念说喊讲唱打写发出回复]\w{0,4}"
    r"|(?:\w+ ){0,3}(?:write|print|type|send|post|output|reply)(?: \w+){0,3})\s*[:：]",
    re.IGNORECASE,
)
"""The beginning of a question that asks for what follows it: who does as he is asked leaves it
out.
"""
GREETING = re.compile(
    r"你们?好|大家|各位|[早晚]上好|[早晚]安|再见|谢谢|恭喜|发财|加油|祝|新[年春]|生日|[佳春元中]?[节宵秋]"
    r"|快乐|愉快|健康|身体|万事|如意|顺利|平安"
    r"|\b(?:happy|hello|good|morning|night|evening|thank|thanks|you"
    r"|congratulations|merry|christmas|new|year|welcome|bye|goodbye|see|later|soon|tomorrow)\b",
    re.IGNORECASE,
)


def repeats_whole(text: str, told: str) -> bool:
    """Whether it is nothing but all of what we told, nearly in the same letters; a part of it, as
    the date alone, is an answer.
    """
    if not told or len(text) > 2 * len(told) or len(told) > 2 * len(text):
        return False  # as nearly all are
    words = cached_letters(told)
    return len(words) >= LONG_ENOUGH and is_similar(letters_only(text), words, least=ECHO)


def is_echo(text: str, question: str) -> bool:
    """Whether it is nothing but the question, said back; who asks for that, or greets, gets it."""
    if len(text) > 2 * len(question) or len(question) > 2 * len(text):
        return False
    if not is_similar(text.casefold(), question.casefold(), least=ALIKE):
        return False  # as nearly all are
    if len(letters_only(GREETING.sub("", text))) < LONG_ENOUGH:
        return False
    if ASKS_TO_REPEAT.search(question) and not _asks_the_same(text, question):
        return False
    if (dictates := DICTATES.match(question)) and not letters_only(text).startswith(
        letters_only(dictates[0])
    ):
        return False
    if "```" in text or text.count("\n") > question.count("\n"):
        return False
    if len(WORDS.findall(text)) < FEW_WORDS or not {*ASKING.findall(question)} <= {
        *ASKING.findall(text)
    }:
        return False
    # What differs in a number, a name or a negation is an answer, however much of the question is
    # in it.
    said, asked = (one.rstrip("?？ ") for one in (text, question))
    return already_said(said, (asked,)) and is_similar(
        letters_only(said), letters_only(asked), least=ECHO
    )


def is_greeting(text: str) -> bool:
    """Whether it greets, thanks or wishes, and says hardly anything else."""
    beside, greetings = GREETING.subn("", text)
    return greetings > 0 and len(letters_only(beside)) < BESIDE


def _asks_the_same(text: str, question: str) -> bool:
    """Whether it asks what the question asks, in the same letters: "how do I read this" is none for
    who was asked to read.
    """
    return ASKING.search(question) is not None and letters_only(text) == letters_only(question)


LONGEST = 600  # characters: nobody who says so much only says it back
TELLING = 6  # letters: fewer are said by many
ASKED_BACK = 4  # letters of a question said back: fewer are an answer
RECITED = 12  # letters of our rules, which say so much in no other words
WHOSE, MOST_COLONS = 60, 3  # in front of somebody's words: a time, a name, a number
COLON = re.compile("[:：]")
ENDS = " 。.!！"  # what a model adds to a line, or leaves out
BRACKETS = frozenset(("()", "（）", "[]", "［］", "【】"))
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
    letters_only(told)
    for words in WORDINGS
    for told in (words.engine[0].last_step, words.engine[0].empty)
)
ROLES = tuple(letters_only(role) for words in WORDINGS for role in words.roles.values())
OURS = "|".join(re.escape(words.rules.splitlines()[0]) for words in WORDINGS)
BEFORE_OURS = re.compile(rf".*\n\n(?={OURS})", re.DOTALL)
"""What stands before our rules: the persona, and the rules of the house."""


class PromptEcho(Struct, frozen=True):
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
        lines = [(line, letters_only(line)) for line in words.splitlines() if line.strip()]
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
        if letters == letters_only(self.asked) and _weight(letters) >= ASKED_BACK:
            return not is_greeting(self.asked) or bool(THANKS.search(self.asked))
        is_again = words == self.twice and _weight(letters) >= TELLING
        return is_again and not is_greeting(self.asked)

    def _is_place(self, words: str) -> bool:
        """Whether it tells the name of the place in our signs, and nobody asked for that."""
        named = bool(self.place) and f"「{self.place}」" in words
        return named and not ASKS_WHERE.search(self.asked)

    def _is_moment(self, letters: str) -> bool:
        """Whether it is of the words about the moment, or has both their day and their place."""
        place, weekday = cached_letters(self.place), self.day.rpartition(" ")[2].casefold()
        is_here = bool(place) and (
            place == letters or (place in letters and bool(weekday) and weekday in letters)
        )
        if not is_here and (letters not in cached_letters(self.now) or _weight(letters) < TELLING):
            return False
        return not self._is_asked_for(letters)

    def _is_asked_for(self, letters: str) -> bool:
        """Whether it is of that of the moment which the question asks for."""
        here = (letters_only(words.here.format(name=self.place)) for words in WORDINGS)
        parts = ((ASKS_WHEN, (letters_only(self.day),)), (ASKS_WHERE, here), (ASKS_WHO, ROLES))
        return any(
            letters in part for asks, told in parts if asks.search(self.asked) for part in told
        )

    def _is_role(self, letters: str) -> bool:
        """Whether it tells in our words who asks, and nobody asked for that."""
        return any(map(letters.__contains__, ROLES)) and not ASKS_WHO.search(self.asked)

    def _is_said(self, lines: Sequence[tuple[str, str]]) -> bool:
        """Whether with each line one of somebody's begins, whoever's name stands before it."""
        return all(any(begun in self.told for begun in line_beginnings(*line)) for line in lines)

    def _is_recited(self, lines: Sequence[tuple[str, str]]) -> bool:
        """Whether the letters of a line are of the rules; only ours are no answer to who asks for
        some.
        """
        said = [letters for _, letters in lines if len(letters) >= RECITED]
        rules = [cached_letters(text) for text in self._rules()] if said else ()
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


def repeated_answer(rounds: Sequence[Message]) -> str:
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


def line_beginnings(line: str, letters: str) -> Iterator[str]:
    """How a line of somebody would begin that has these words: all of them, or those behind one of
    the first colons; enough of each to be somebody's.
    """
    if len(letters) < TELLING:
        return
    yield SAYS + line.strip(ENDS)
    for colon in islice(COLON.finditer(line, 0, WHOSE), MOST_COLONS):
        part = line[colon.end() :]
        if len(letters_only(part)) >= TELLING:
            yield SAYS + part.strip(ENDS)
