"""Detects answers that only repeat the question or part of the prompt, as small models do. Pure.

An honest answer can look the same: a quoted line, today's date, text in brackets. So nothing is
cut: the model is asked once more, with examples before the question, and its second answer is sent,
or the first one if the second is empty.
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
from frostagent.text.lazy_regex import lazy_regex
from frostagent.text.similarity import is_similar, letters_only
from frostagent.types.messages import AssistantMessage, Message, SystemMessage, UserMessage

ALIKE = 60.0  # percent; less similar texts differ in more than punctuation and spaces
FEW_WORDS = 3  # a name or a number alone is a real answer
BESIDE = 4  # letters and digits besides a greeting: `啦`, `你`, `all`
WORDS = lazy_regex(r"[A-Za-z]{2,}|[\u3400-\u9fff]")
ASKING = lazy_regex(
    r"[吗吧谁哪几]|什么|怎么|怎样|多少|为何|为什么|是不是|有没有|能不能|会不会|要不要|可不可以|是否|能否"
)
"""Marks a sentence as a question; the same words without it answer the question."""

ASKS_TO_REPEAT = lazy_regex(
    r"复述|重复|照[着抄]|原样|跟我|学我|朗?读|翻译|改写|润色|校对|纠正|改正|修改|更正|格式|标点"
    r"|大写|小写|排版|背"
    r"|\b(?:repeat|echo|say|copy|translate|rephrase|fix|correct|format"
    r"|upper|lower|capitali[sz]e|punctuate)",
    re.IGNORECASE,
)
DICTATES = lazy_regex(
    r"\W*(?:[^\W\d]{0,8}[念说喊讲唱打写发出回复]\w{0,4}"
    r"|(?:\w+ ){0,3}(?:write|print|type|send|post|output|reply)(?: \w+){0,3})\s*[:：]",
    re.IGNORECASE,
)
"""A request to repeat the text after it: an obedient answer leaves this part out."""
GREETING = lazy_regex(
    r"你们?好|大家|各位|[早晚]上好|[早晚]安|再见|谢谢|恭喜|发财|加油|祝|新[年春]|生日|[佳春元中]?[节宵秋]"
    r"|快乐|愉快|健康|身体|万事|如意|顺利|平安"
    r"|\b(?:happy|hello|good|morning|night|evening|thank|thanks|you"
    r"|congratulations|merry|christmas|new|year|welcome|bye|goodbye|see|later|soon|tomorrow)\b",
    re.IGNORECASE,
)


def repeats_whole(text: str, told: str) -> bool:
    """Whether the text repeats nearly all of `told`. A part, such as the date, is an answer."""
    if not told or len(text) > 2 * len(told) or len(told) > 2 * len(text):
        return False  # the usual case
    words = cached_letters(told)
    return len(words) >= LONG_ENOUGH and is_similar(letters_only(text), words, least=ECHO)


def is_echo(text: str, question: str) -> bool:
    """Whether the text only repeats the question, and is no greeting or wanted repetition."""
    if len(text) > 2 * len(question) or len(question) > 2 * len(text):
        return False
    if not is_similar(text.casefold(), question.casefold(), least=ALIKE):
        return False  # the usual case
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
    # A different number, name or negation makes it an answer, however much of the question it
    # contains.
    said, asked = (one.rstrip("?？ ") for one in (text, question))
    return already_said(said, (asked,)) and is_similar(
        letters_only(said), letters_only(asked), least=ECHO
    )


def is_greeting(text: str) -> bool:
    """Whether the text greets, thanks or wishes, and says hardly anything else."""
    beside, greetings = GREETING.subn("", text)
    return greetings > 0 and len(letters_only(beside)) < BESIDE


def _asks_the_same(text: str, question: str) -> bool:
    """Whether the text asks exactly the same question. To "read this", the answer "how do I read
    this" is a different question.
    """
    return ASKING.search(question) is not None and letters_only(text) == letters_only(question)


LONGEST = 600  # characters; longer answers are never only an echo
TELLING = 6  # letters; shorter texts are common to many people
ASKED_BACK = 4  # letters; a shorter repetition of the question is an answer
RECITED = 12  # letters; no honest answer shares that many with our rules
WHOSE, MOST_COLONS = 60, 3  # characters before the colon (time, name, number), and colons tried
COLON = lazy_regex("[:：]")
ENDS = " 。.!！"  # characters that a model adds to a line or leaves out
BRACKETS = frozenset(("()", "（）", "[]", "［］", "【】"))
THANKS = lazy_regex(r"谢|\bth(?:anks|x)", re.IGNORECASE)
ASKS_WHERE = lazy_regex(r"群|哪|叫|group|where|name|called", re.IGNORECASE)
ASKS_WHEN = lazy_regex(r"[号日天期几周时何]|截止|多久|when|dat|day|time|week|long", re.IGNORECASE)
ASKS_WHO = lazy_regex(
    r"身份|角色|权限|群主|管理|成员|我(?:算|是)(?:谁|什么)|who am i|role|owner|admin|member",
    re.IGNORECASE,
)
ASKS_RULES = lazy_regex(r"规|允许|禁止|不准|rule|allow|forbid", re.IGNORECASE)
REPLIES = REPLY.partition("{")[0].strip()
SAYS = LINE.partition("{text}")[0].removeprefix("{who}")
TOLD = tuple(
    letters_only(told)
    for words in WORDINGS
    for told in (words.engine[0].last_step, words.engine[0].empty)
)
ROLES = tuple(letters_only(role) for words in WORDINGS for role in words.roles.values())
OURS = "|".join(re.escape(words.rules.splitlines()[0]) for words in WORDINGS)
BEFORE_OURS = lazy_regex(rf".*\n\n(?={OURS})", re.DOTALL)
"""The text before our rules: persona and house rules."""


class PromptEcho(Struct, frozen=True):
    """A prompt: its messages `read`, the question `asked`, the facts of the moment (`now`) with
    their day and place, and the answer given `twice` in a row, if any. `told` is the text of all
    people in it.
    """

    read: Sequence[Message]
    asked: str = ""
    now: str = ""
    day: str = ""
    place: str = ""
    twice: str = ""
    told: str = ""

    def __post_init__(self) -> None:
        # Joined here because the prompt is still in the CPU cache; hundreds of other questions come
        # before the answer. One text and `type is` are faster than a loop with isinstance. The
        # beginning of a line holds no line end, so joining creates no false matches.
        said = [one.text for one in self.read if type(one) is UserMessage]
        force_setattr(self, "told", "\n".join(said))

    def has(self, text: str) -> bool:
        """Whether the answer may be part of the prompt, or repeats the one given twice before."""
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
        """Whether it is the question, or the answer of the previous two rounds. Greetings are
        exempt: people answer a greeting with the same words.
        """
        if letters == letters_only(self.asked) and _weight(letters) >= ASKED_BACK:
            return not is_greeting(self.asked) or bool(THANKS.search(self.asked))
        is_again = words == self.twice and _weight(letters) >= TELLING
        return is_again and not is_greeting(self.asked)

    def _is_place(self, words: str) -> bool:
        """Whether it quotes the name of the place in our marks without being asked for it."""
        named = bool(self.place) and f"「{self.place}」" in words
        return named and not ASKS_WHERE.search(self.asked)

    def _is_moment(self, letters: str) -> bool:
        """Whether it repeats part of the facts of the moment, or both their day and their place."""
        place, weekday = cached_letters(self.place), self.day.rpartition(" ")[2].casefold()
        is_here = bool(place) and (
            place == letters or (place in letters and bool(weekday) and weekday in letters)
        )
        if not is_here and (letters not in cached_letters(self.now) or _weight(letters) < TELLING):
            return False
        return not self._is_asked_for(letters)

    def _is_asked_for(self, letters: str) -> bool:
        """Whether the question asks for this part of the facts."""
        here = (letters_only(words.here.format(name=self.place)) for words in WORDINGS)
        parts = ((ASKS_WHEN, (letters_only(self.day),)), (ASKS_WHERE, here), (ASKS_WHO, ROLES))
        return any(
            letters in part for asks, told in parts if asks.search(self.asked) for part in told
        )

    def _is_role(self, letters: str) -> bool:
        """Whether it states the asker's role in our words without being asked for it."""
        return any(map(letters.__contains__, ROLES)) and not ASKS_WHO.search(self.asked)

    def _is_said(self, lines: Sequence[tuple[str, str]]) -> bool:
        """Whether every line begins a line that a person wrote, with or without a name."""
        return all(any(begun in self.told for begun in line_beginnings(*line)) for line in lines)

    def _is_recited(self, lines: Sequence[tuple[str, str]]) -> bool:
        """Whether it recites the rules. If the question asks for rules, only our own ones count."""
        said = [letters for _, letters in lines if len(letters) >= RECITED]
        rules = [cached_letters(text) for text in self._rules()] if said else ()
        return any(letters in text for letters in said for text in rules)

    def _rules(self) -> Iterator[str]:
        is_asked = ASKS_RULES.search(self.asked)
        for one in self.read[:1]:  # the rules are in the first message
            if isinstance(one, SystemMessage):
                yield BEFORE_OURS.sub("", one.text) if is_asked else one.text


@cache
def example_rounds(words: Wording) -> tuple[Message, ...]:
    return tuple(
        message
        for question, answer in words.examples
        for message in (UserMessage(question), AssistantMessage(answer))
    )


def repeated_answer(rounds: Sequence[Message]) -> str:
    """Return the last answer if it equals the one before, else an empty string."""
    last = ""
    for one in reversed(rounds):
        if type(one) is AssistantMessage and one.text:
            if last:
                return last if one.text == last else ""
            last = one.text
    return ""


def _weight(letters: str) -> int:
    """The length in letters; a Chinese character counts twice."""
    return len(letters) + len(CJK.findall(letters))


def _is_aside(words: str) -> bool:
    """Whether the text is enclosed in one pair of brackets."""
    inside = words[1:-1]
    return f"{words[0]}{words[-1]}" in BRACKETS and not (words[0] in inside or words[-1] in inside)


def line_beginnings(line: str, letters: str) -> Iterator[str]:
    """The ways in which a person's line with this text may begin: the whole text, or the part after
    one of its first colons, if long enough.
    """
    if len(letters) < TELLING:
        return
    yield SAYS + line.strip(ENDS)
    for colon in islice(COLON.finditer(line, 0, WHOSE), MOST_COLONS):
        part = line[colon.end() :]
        if len(letters_only(part)) >= TELLING:
            yield SAYS + part.strip(ENDS)
