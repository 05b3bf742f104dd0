"""Answers that go round in circles, as small models give them: the same clauses to the end, a
sentence again, the answer of an earlier question. Pure, in linear time.

Who is asked for a song, or to say something five times, says it again and is right; so is who says
no twice, or is asked the same in other words. So only what is long counts, and what has nothing to
do with the question it is given to.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from itertools import pairwise

from bot.policy.already_said import bare

CJK = re.compile(r"[\u3400-\u9fff]")
LETTERS = 3  # that say as much as a Chinese character
PERIOD = 12  # clauses
ROUNDS = 3  # of several clauses
ALIKE = 5  # clauses, one as the other: people say three things thrice
SHORTEST = 4 * LETTERS  # what is gone round in
SENTENCE = 10 * LETTERS
FEW_MARKS = 8
QUESTION = 4 * LETTERS  # a shorter one says nothing of what it is about: where?

CLAUSE = re.compile(r"[^,，、。！？!?;；\n]*[,，、。！？!?;；\n]+|[^,，、。！？!?;；\n]+")
SENTENCES = re.compile(r"[^。！？!?\n]*[。！？!?\n]+|[^。！？!?\n]+")
NO_LETTER = re.compile(r"[\W_]+")
NOTATION = re.compile(r"[(){}\[\]=<>_*/\\|`:：]")
ASKS_AGAIN = re.compile(
    r"遍|[几\d一二三四五六七八九十百]次|重复|复读|复述|再说|再发|歌|诗|词|唱|背|念|抄|刷|循环|口号|绕口令"
    r"|\b(?:repeat|again|times|song|sing|lyrics?|poem|chant|loop|copy|twice|thrice)\b",
    re.IGNORECASE,
)
REFUSES = re.compile(
    r"不能|不会|不知道|不清楚|无法|没法|没有|看不|抱歉|对不起|不好意思"
    r"|\b(?:sorry|cannot|can't|unable|don't|not|apologi[sz]e)\b",
    re.IGNORECASE,
)
LATIN = re.compile(r"[a-z]{4,}")
COMMON = {
    *("什么", "怎么", "我们", "你们", "他们", "这个", "那个", "一下", "可以"),
    *("what", "when", "where", "which", "there", "their", "have", "does", "with", "this", "that"),
    *("they", "your", "about", "would", "could", "should", "please"),
}


def letters_of(text: str) -> str:
    """Its letters and digits alone, folded: `bare` for what is only looked for, at a tenth of
    the time.
    """
    return NO_LETTER.sub("", text).casefold()


def weight(letters: str) -> int:
    """How much letters say; a Chinese character says as much as three others."""
    return len(letters) + (LETTERS - 1) * len(CJK.findall(letters))


def without_circles(text: str, asked: str) -> str:
    """The text without the clauses that only come again and again until it ends, and without long
    sentences that it has said before; the very same text where it has none.
    """
    if len(text) < 2 * SHORTEST or ASKS_AGAIN.search(asked):
        return text
    return _without_repeated(_without_rounds(text))


def _without_rounds(text: str) -> str:
    clauses = CLAUSE.findall(text)
    if len(clauses) < ALIKE:
        return text
    keys = [letters_of(clause) for clause in clauses]
    for period in range(1, min(PERIOD, len(keys) // ROUNDS) + 1):
        again = _again(keys, period)
        least = ALIKE - 1 if period == 1 else (ROUNDS - 1) * period
        if again >= least:
            is_cheer = weight("".join(keys[-1 - period : -1])) < SHORTEST
            return text if is_cheer else "".join(clauses[:-again]).rstrip(" ,，、;；\n")
    return text


def _again(keys: list[str], period: int) -> int:
    """How many clauses at the end are what stands so many before them; the last may be cut off."""
    last = len(keys) - 1
    if not keys[last - period].startswith(keys[last]):
        return 0
    again = 1
    while last - again >= period and keys[last - again] == keys[last - again - period]:
        again += 1
    return again


def _without_repeated(text: str) -> str:
    sentences = SENTENCES.findall(text)
    said: set[str] = set()
    kept = []
    for sentence in sentences:
        key = letters_of(sentence)
        if key in said and weight(key) >= SENTENCE and not NOTATION.search(sentence):
            continue
        said.add(key)
        kept.append(sentence)
    return text if len(kept) == len(sentences) else "".join(kept).rstrip()


def is_same(text: str, answer: str) -> bool:
    """Whether two answers are the same, but for marks and blanks."""
    return answer == text or (
        abs(len(answer) - len(text)) < FEW_MARKS and bare(answer) == bare(text)
    )


def is_given_again(text: str, asked: str, given: Iterable[str]) -> bool:
    """Whether a member's line, which answered the questions `given` just now, has nothing to do
    with the one that is asked; a refusal may be said again.
    """
    if weight(bare(text)) < SHORTEST or REFUSES.search(text) or ASKS_AGAIN.search(asked):
        return False
    about = _topics(text).union(*map(_topics, given))
    return weight(bare(asked)) >= QUESTION and _topics(asked).isdisjoint(about)


def _topics(text: str) -> set[str]:
    """Its words, and its pairs of Chinese characters."""
    words = set(LATIN.findall(text.casefold()))
    words.update(
        one + other for one, other in pairwise(text) if CJK.match(one) and CJK.match(other)
    )
    return words - COMMON
