"""Whether somebody said a fact of himself in these words. Pure.

A model that picks facts may turn what was said round, guess, or give one person what is another's.
So each clause of a fact is held against the clause of his lines that has most of its words: its
numbers and days stand there, both or neither negate, ask or suppose, and the one who is spoken of
there is the speaker.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection, Sequence

from bot.policy.already_said import NUMERALS, TIME
from bot.policy.recall import terms

SHARE = 0.5  # of a fact's words that stand in its lines
LEAST = 2  # characters of a name that tells somebody

CLAUSE = re.compile(r"[^。!;\n,，、；！?？.]+[?？]?(?:\.(?=\d)[^。!;\n,，、；！?？.]+[?？]?)*")
MEASURES = "[只个条匹家门份台辆把]"  # 一 before these is the article that a picker adds
FIGURE = re.compile(rf"{TIME.pattern}|\d+|(?!一(?:{MEASURES})){NUMERALS}+")
TURNS = re.compile(
    r"(?!不错|不过|不光|不仅|不只|不管|不得不|没问题|别人|别的|非常|非洲|无论)(?<![特区分级性个识告])[不没無无非未勿莫别]"
    r"|如果|要是|假如|假装|除非|可能|也许|或许|听说|据说|差点|以前|曾经|讨厌|[?？]$|[吗嘛]\s*$"
    r"|\b(?:not?|never|if|unless|may|might|maybe|used to|without|hates?|[a-z]+n't)\b"
)
KIN = (
    "妈|爸|爷|奶|外公|外婆|姥|哥|姐|弟|妹|叔|姨|舅|姑|老公|老婆|丈夫|妻子|男朋友|女朋友|男友|女友|对象|朋友|同事|同学"
    "|室友|老师|老板|领导|邻居|儿子|女儿|孩子|娃"
)
RELATIVES = (
    "mom|mum|mother|dad|father|parents?|brother|sister|wife|husband|girlfriend|boyfriend|partner"
    "|friend|boss|teacher|colleague|roommate|neighbou?r|sons?|daughters?|kids?|child"
)
MINE = re.compile(r"^(?:我们?(?:的|家)?|my )")
PERSON = re.compile(
    rf"(?P<kin>我们?(?:的|家)?(?:{KIN})|\bmy (?:{RELATIVES})\b)"
    r"|(?P<own>我说|[我咱俺]|本人|\b(?:i|i'm|i've|my|me|we|our)\b)"
    r"|(?P<other>[你您他她它@]|别人|有人|说|\b(?:you|your|he|she|they|his|her|their|says?|said)\b)"
)


def is_grounded(fact: str, said: Sequence[str], *, others: Collection[str] = ()) -> bool:
    """Whether these lines of one person say the fact; `others` are the names of whoever else spoke
    there.
    """
    words, text = set(terms(fact)), _folded("\n".join(said))
    if not words or len(words & set(terms(text))) < SHARE * len(words):
        return False
    clauses = CLAUSE.findall(text)
    names = [_folded(name) for name in others if len(name) >= LEAST]
    return all(_says(clauses, part, names) for part in CLAUSE.findall(_folded(fact)))


def _says(clauses: Sequence[str], part: str, names: Sequence[str]) -> bool:
    """Whether the clause that has most of this part's words says it of the speaker."""
    words = terms(part)
    if not words or not clauses:
        return True  # a word that every sentence has
    clause = max(clauses, key=lambda one: len({*words} & {*terms(one)}))
    if not {*FIGURE.findall(part)} <= {*FIGURE.findall(clause)}:
        return False
    if (TURNS.search(part) is None) is not (TURNS.search(clause) is None):
        return False
    places = [place for word in words if (place := clause.find(word)) >= 0]
    before = clause[: min(places, default=0)]
    if any(name in before and name not in part for name in names):
        return False
    persons = [*PERSON.finditer(before)]
    if not persons or persons[-1]["own"]:
        return True
    return bool(persons[-1]["kin"]) and MINE.sub("", persons[-1][0]) in part


def _folded(text: str) -> str:
    return unicodedata.normalize("NFKC", text).casefold()
