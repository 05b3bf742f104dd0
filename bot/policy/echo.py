"""Whether an answer is nothing but its question, said back. Pure; small models do that, and it is
no answer.
"""

from __future__ import annotations

import re

from bot.domain.errors import ERROR
from bot.policy.already_said import already_said, bare, letters_of
from bot.policy.likeness import is_like, is_near, of_length

ECHO = 90.0  # percent
ALIKE = 60.0  # percent: below, marks and blanks alone cannot keep two texts from being the same
FEW_WORDS = 3  # a name or a number alone is said back by who answers with it
LONG_ENOUGH = 8  # letters and digits: people greet in fewer, and are greeted back in the same words
BESIDE = 4  # letters and digits beside a greeting: `啦`, `你`, `all`
LETTERS = 3  # that say as much as a Chinese character: "Delivered." is an answer, and in our lines

CJK = re.compile(r"[\u3400-\u9fff]")
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


OUR_ERROR = re.compile(rf"\s*{ERROR}.*\[[A-Z]+(?:_[A-Z]+)+\]\s*", re.DOTALL)
"""A failed call, in the words a model is told of it."""


class ToldTexts:
    """What we told a model ourselves, to look for in what it says: made once for texts that are
    always told, as each answer is looked at.
    """

    def __init__(self, *texts: str) -> None:
        self._texts = tuple(map(bare, texts))
        self._all = "\n".join(self._texts)
        self._longest = max(map(len, self._texts), default=0)
        self._near: dict[int, tuple[str, ...]] = {}  # by the length of what is said

    def has(self, text: str) -> bool:
        """Whether the text is nothing but a part of one of these, or nearly all of one."""
        words = bare(text)
        if words in self._all or is_near(words, self._like(len(words)), least=ECHO):
            return len(words) + (LETTERS - 1) * len(CJK.findall(words)) >= LETTERS * LONG_ENOUGH
        return False  # as nearly all are

    def _like(self, length: int) -> tuple[str, ...]:
        if length > 2 * self._longest:
            return ()
        if (near := self._near.get(length)) is None:
            near = self._near[length] = tuple(of_length(length, self._texts, least=ECHO))
        return near


def is_call_error(text: str) -> bool:
    """Whether it is what a model is told of a call that failed."""
    return OUR_ERROR.fullmatch(text) is not None


def is_all_of(text: str, told: str) -> bool:
    """Whether it is nothing but all of what we told, nearly in the same letters; a part of it, as
    the date alone, is an answer.
    """
    if not told or len(text) > 2 * len(told) or len(told) > 2 * len(text):
        return False  # as nearly all are
    words = letters_of(told)
    return len(words) >= LONG_ENOUGH and is_like(bare(text), words, least=ECHO)


def is_echo(text: str, question: str) -> bool:
    """Whether it is nothing but the question, said back; who asks for that, or greets, gets it."""
    if len(text) > 2 * len(question) or len(question) > 2 * len(text):
        return False
    if not is_like(text.casefold(), question.casefold(), least=ALIKE):
        return False  # as nearly all are
    if len(bare(GREETING.sub("", text))) < LONG_ENOUGH:
        return False
    if ASKS_TO_REPEAT.search(question) and not _asks_the_same(text, question):
        return False
    if (dictates := DICTATES.match(question)) and not bare(text).startswith(bare(dictates[0])):
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
    return already_said(said, (asked,)) and is_like(bare(said), bare(asked), least=ECHO)


def is_greeting(text: str) -> bool:
    """Whether it greets, thanks or wishes, and says hardly anything else."""
    beside, greetings = GREETING.subn("", text)
    return greetings > 0 and len(bare(beside)) < BESIDE


def _asks_the_same(text: str, question: str) -> bool:
    """Whether it asks what the question asks, in the same letters: "how do I read this" is none for
    who was asked to read.
    """
    return ASKING.search(question) is not None and bare(text) == bare(question)
