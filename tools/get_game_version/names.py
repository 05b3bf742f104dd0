"""How names of games compare: folded, by their numbers, by how close they are. Pure."""

from __future__ import annotations

import re
import unicodedata
from typing import Literal, TypeAlias

Language: TypeAlias = Literal["zh", "en"]

CLOSE = 86.0  # of 100: one slip in seven Chinese characters is the same word
LONG = 8  # letters of a word in which two slips are forgiven
ALIKE = 60.0  # still worth a suggestion

BEGUN, BEGUN_IN_A_WORD = 0.6, 0.8  # the part of a name that a beginning must have to stand for it

WORD = re.compile(r"[^\W_]+")
APOSTROPHES = re.compile("['’‘`]")  # inside a word: Baldur's
HAN = re.compile(r"[\u3400-\u9fff]")
SIGNS = re.compile("[™®©]")  # before NFKC, which would write ™ as the letters "TM"
ROMAN = {"ii": "2", "iii": "3", "iv": "4", "v": "5", "vi": "6", "vii": "7", "viii": "8", "ix": "9"}
NUMERAL = re.compile(r"(?<![a-z0-9])(?:viii|vii|vi|iv|ix|iii|ii|v)(?![a-z0-9])")
SUBTITLE = re.compile(
    r"\s*(?:[:：|｜(（「『《\-–—·]|~)"
)  # where a store's title goes on with a slogan

# Behind a name: the question itself, the server, the edition that all sources of the game speak of
# anyway.
CHATTER = re.compile(
    r"(?:的?(?:最新|当前|现在)?的?版本号?|的?最新版?|(?:latest)?version|更新|游戏"
    r"|国际服|国服|外服|官服|渠道服|[bB美亚欧日台韩]服|电脑版|pc版|pc端|端游|steam版?)$"
)


def fold(name: str) -> str:
    """A name as it compares: no case, spaces, punctuation or width, II as 2, and without the
    chatter behind it.
    """
    bare = "".join(char for char in _spread(name) if char.isalnum())
    while (shorter := CHATTER.sub("", bare)) not in {"", bare}:
        bare = shorter
    return bare


def words_of(name: str) -> tuple[str, ...]:
    """The words of a name as they compare, without the chatter behind them; none where all of it is
    chatter.
    """
    words = WORD.findall(APOSTROPHES.sub("", _spread(name)))
    while words and (shorter := CHATTER.sub("", words[-1])) != words[-1]:
        words[-1:] = [shorter] if shorter else []
    return tuple(words)


def is_slip(wanted: tuple[str, ...], known: tuple[str, ...]) -> bool:
    """Whether somebody who wrote `wanted` mistyped `known`: as many words, each the same or one
    slip away.
    """
    return len(wanted) == len(known) > 0 and all(map(_is_slip, wanted, known))


def may_stand_for(wanted: str, known: tuple[str, ...]) -> bool:
    """Whether a folded beginning says enough of a name's words: what a series is called (Monster
    Hunter) does not, and less so a word that only begins like one of them (Terra)."""
    name = "".join(known)
    ends = {len("".join(known[:count])) for count in range(1, len(known) + 1)}
    part = BEGUN if HAN.search(wanted) or len(wanted) in ends else BEGUN_IN_A_WORD
    return name.startswith(wanted) and len(wanted) >= part * len(name)


def heads(title: str) -> frozenset[str]:
    """A store's title folded, as a whole and up to each place where a slogan may begin."""
    ends = [found.start() for found in SUBTITLE.finditer(title)]
    return frozenset(filter(None, (fold(title), *(fold(title[:end]) for end in ends))))


def same_numbers(one: str, other: str) -> bool:
    """Whether two folded names have the same numbers: Persona 3 is not Persona 5."""
    return re.findall(r"\d+", one) == re.findall(r"\d+", other)


def closeness(one: str, other: str) -> float:
    """How alike two folded names are, of 100; one that begins with the other is at least `ALIKE`,
    and so is one of two Chinese characters that has one wrong (圆神)."""
    ratio = _ratio(one, other)
    begun = min(len(one), len(other)) >= 2 and (one.startswith(other) or other.startswith(one))
    half = (
        len(one) == len(other) == 2
        and bool(HAN.match(one))
        and (one[0] == other[0] or one[1] == other[1])
    )
    return max(ratio, ALIKE) if begun or half else ratio


def may_begin(wanted: str) -> bool:
    """Whether a folded name is long enough to stand for a longer one: two Chinese characters, or
    four letters.
    """
    return len(wanted) >= (2 if HAN.search(wanted) else 4)


def resembles(title: str, names: frozenset[str]) -> bool:
    """Whether a store's title may be of a game with these folded names; guards against a wrong id
    in a row.
    """
    whole, beginnings = fold(title), heads(title)
    return any(
        name in beginnings
        or whole.startswith(name)
        or (_ratio(name, whole) >= ALIKE and same_numbers(name, whole))
        for name in names
    )


def language_of(text: str) -> Language:
    """The language to answer a question in."""
    return "zh" if HAN.search(text) else "en"


def _spread(name: str) -> str:
    spread = unicodedata.normalize("NFKC", SIGNS.sub("", name)).casefold()
    return NUMERAL.sub(lambda found: ROMAN[found[0]], spread)


def _is_slip(wanted: str, known: str) -> bool:
    """One letter wrong, missing, too many or swapped, two from eight letters on; never the first,
    none in a word with figures, and no s at the end, which makes another word (Papers)."""
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
