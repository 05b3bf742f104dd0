"""Compares names of games: folded, by numbers, by similarity. Pure."""

from __future__ import annotations

import re
import unicodedata
from typing import Literal, TypeAlias

Language: TypeAlias = Literal["zh", "en"]

CLOSE = 86.0  # of 100: allows one typo in seven Chinese characters
LONG = 8  # letters of a word in which two typos are allowed
ALIKE = 60.0  # similar enough for a suggestion

BEGUN, BEGUN_IN_A_WORD = 0.6, 0.8  # the share of a name that an abbreviation must have

WORD = re.compile(r"[^\W_]+")
APOSTROPHES = re.compile("['’‘`]")  # inside of a word: Baldur's
HAN = re.compile(r"[\u3400-\u9fff]")
SIGNS = re.compile("[™®©]")  # before NFKC, which would turn ™ into the letters "TM"
ROMAN = {"ii": "2", "iii": "3", "iv": "4", "v": "5", "vi": "6", "vii": "7", "viii": "8", "ix": "9"}
NUMERAL = re.compile(r"(?<![a-z0-9])(?:viii|vii|vi|iv|ix|iii|ii|v)(?![a-z0-9])")
SUBTITLE = re.compile(
    r"\s*(?:[:：|｜(（「『《\-–—·]|~)"
)  # where a store's title may continue with a slogan

# After a name: the question itself, the server, or an edition that all sources share.
CHATTER = re.compile(
    r"(?:的?(?:最新|当前|现在)?的?版本号?|的?最新版?|(?:latest)?version|更新|游戏"
    r"|国际服|国服|外服|官服|渠道服|[bB美亚欧日台韩]服|电脑版|pc版|pc端|端游|steam版?)$"
)


def fold(name: str) -> str:
    """A name for comparison: without case, spaces, punctuation, width and chatter; II becomes 2."""
    bare = "".join(char for char in _spread(name) if char.isalnum())
    while (shorter := CHATTER.sub("", bare)) not in {"", bare}:
        bare = shorter
    return bare


def words_of(name: str) -> tuple[str, ...]:
    """The words of a name for comparison, without chatter; none if it is all chatter."""
    words = WORD.findall(APOSTROPHES.sub("", _spread(name)))
    while words and (shorter := CHATTER.sub("", words[-1])) != words[-1]:
        words[-1:] = [shorter] if shorter else []
    return tuple(words)


def is_slip(wanted: tuple[str, ...], known: tuple[str, ...]) -> bool:
    """Whether `wanted` misspells `known`: as many words, each the same or one typo away."""
    return len(wanted) == len(known) > 0 and all(map(_is_slip, wanted, known))


def may_stand_for(wanted: str, known: tuple[str, ...]) -> bool:
    """Whether a folded prefix is long enough to stand for a name. A series title is not (Monster
    Hunter), and even less the beginning of a word (Terra).
    """
    name = "".join(known)
    ends = {len("".join(known[:count])) for count in range(1, len(known) + 1)}
    part = BEGUN if HAN.search(wanted) or len(wanted) in ends else BEGUN_IN_A_WORD
    return name.startswith(wanted) and len(wanted) >= part * len(name)


def heads(title: str) -> frozenset[str]:
    """A store's title folded: the whole, and up to each place where a slogan may begin."""
    ends = [found.start() for found in SUBTITLE.finditer(title)]
    return frozenset(filter(None, (fold(title), *(fold(title[:end]) for end in ends))))


def same_numbers(one: str, other: str) -> bool:
    """Whether two folded names have the same numbers: Persona 3 is not Persona 5."""
    return re.findall(r"\d+", one) == re.findall(r"\d+", other)


def closeness(one: str, other: str) -> float:
    """The similarity of two folded names, of 100. At least `ALIKE` for a prefix, and for two
    Chinese characters with one wrong (圆神).
    """
    ratio = _ratio(one, other)
    begun = min(len(one), len(other)) >= 2 and (one.startswith(other) or other.startswith(one))
    half = (
        len(one) == len(other) == 2
        and bool(HAN.match(one))
        and (one[0] == other[0] or one[1] == other[1])
    )
    return max(ratio, ALIKE) if begun or half else ratio


def may_begin(wanted: str) -> bool:
    """Whether a folded name is long enough for a prefix: two Chinese characters or four letters."""
    return len(wanted) >= (2 if HAN.search(wanted) else 4)


def resembles(title: str, names: frozenset[str]) -> bool:
    """Whether a store's title fits a game with these folded names; detects a wrong id in a row."""
    whole, beginnings = fold(title), heads(title)
    return any(
        name in beginnings
        or whole.startswith(name)
        or (_ratio(name, whole) >= ALIKE and same_numbers(name, whole))
        for name in names
    )


def language_of(text: str) -> Language:
    """The language in which to answer a question."""
    return "zh" if HAN.search(text) else "en"


def _spread(name: str) -> str:
    spread = unicodedata.normalize("NFKC", SIGNS.sub("", name)).casefold()
    return NUMERAL.sub(lambda found: ROMAN[found[0]], spread)


def _is_slip(wanted: str, known: str) -> bool:
    """Whether one letter is wrong, missing, extra or swapped (two from eight letters on). Not the
    first letter, no word with digits, and no final s, which makes another word (Papers).
    """
    if wanted == known:
        return True
    if not same_numbers(wanted, known) or wanted[0] != known[0]:
        return False
    if HAN.search(known):
        return _ratio(wanted, known) >= CLOSE
    if re.search(r"\d", known) or wanted in {f"{known}s", known.removesuffix("s")}:
        return False
    from rapidfuzz.distance import OSA

    return OSA.distance(wanted, known) <= (2 if min(len(wanted), len(known)) >= LONG else 1)


def _ratio(one: str, other: str) -> float:
    from rapidfuzz import fuzz  # 4 MiB: most processes never need it

    return fuzz.ratio(one, other)
