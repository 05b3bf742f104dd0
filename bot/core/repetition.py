"""Whether something was said already. Pure; keeps a run from saying again what it has said.

Said already is what has the same letters, digits and signs, whatever its blanks, marks and emoji;
or the same content in the same order, where it adds and lacks function words only (`FUNCTION`), and
at least `SHARE` of its words and pairs of characters were said. Words of time may stand elsewhere
in their clause, and whole clauses of mere words may be left out. All else is content: names and
numbers, what negates, opposites. So two cities, two numbers, yes and no are never the same answer:
an addition, an exchange or an omission of any of them is something new. What is only a part of what
was said is new, too, where the rest of its sentence turns it round: "I do not think that ...", "if
...".
"""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_left
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise

from frostagent.text.lazy_regex import lazy_regex
from frostagent.text.similarity import UNHEARD, letters_only

SHARE = 0.45  # of its pairs of characters and words
COMPARABLE = 8
"""Letters and digits from which on a text can be part of another: less may occur anywhere by
chance.
"""
LONGEST = 4000  # characters; of longer texts only the same is the same
MOST = 100  # beginnings of clauses where it is looked for

CJK = r"\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af"
# Of Latin words: Chinese is written up against them.
WORD, END = "(?<![A-Za-z0-9_])", "(?![A-Za-z0-9_])"
NUMERALS = r"[零〇一二两三四五六七八九十百千万亿半]"
# No minus: 3-5, GPT-4.
NUMBERS = lazy_regex(r"(?:(?<![0-9a-z])-)?\d+(?:[.:/]\d+)*|" + NUMERALS + "+")
SIGNS = lazy_regex(r"[+<>±×÷≠≤≥≈√∞%‰°#$€£¥₩₽↑↓←→↗↘❌❎✖✗✘🚫👎🙅♂♀]")
NOTATION = lazy_regex(
    r"(?<=[A-Za-z0-9)\]}\"'])\s?(?:[=!<>]=+|&&?|\|\|?|[*/^=<>+~_\\])\s?(?=[A-Za-z0-9(\[{\"'.$-])"
    r"|(?<=\d)\s?-\s?(?=\d)|(?:(?<=\s)|^)(?:-[A-Za-z]+\b|(?:--|\.{0,2}/|~/)(?=[A-Za-z]))"
    r"|\b(?=\w*\d)(?=\w*[A-Z])[A-Za-z0-9]+\b|[\u00b2\u00b3\u00b9\u2070-\u209f]"
    r"|[♠♣♥♦♤♡♢♧🔴🟢🟡🔵🟠🟣🟤⚫⚪🟥🟩🟨🟦]",
    re.MULTILINE,
)
"""What code, paths, formulas and suits are told apart by: operators beside letters or digits,
options, codes.
"""
TIME = lazy_regex(
    r"[今明昨后前]天|[今明去后前]年|[上下][个]?(?:周|月|星期|礼拜)[一二三四五六日天末]?|(?:周|星期|礼拜)[一二三四五六日天末]"
    r"|凌晨|清晨|早上|上午|中午|下午|傍晚|晚上|夜里|半夜|今早|今晚|明早|明晚|昨晚|现在|目前|刚才"
    rf"|{WORD}(?:today|tomorrow|yesterday|tonight|now|currently"
    rf"|(?:mon|tues|wednes|thurs|fri|satur|sun)day){END}"
)
PARTICLES = "吧呢啊呀哦噢喔啦哈嘛哟呦哇诶欸嘿唉呗喽咯"
FILLERS = "(?:an|the|is|are|it|also|very|really|please)"  # of meaning, unless in capitals: IT
FUNCTION = lazy_regex(
    r"总的来说|也就是说|综上所述|具体来说|简单来说|一下|其实|那么|所以|因此|而且|并且|另外|此外|总之"
    r"|(?<=[晴阴])天|气?温(?:度)?(?=是?[零负-]?\d)|(?<![我你他她它们谁])[的是]|[就很]"
    # Elsewhere one is part of a word: 酒吧, 哈尔滨.
    rf"|[{PARTICLES}](?=[的{PARTICLES}]*(?![{CJK}]))"
    rf"|{WORD}(?:it's|that's|there's|here's|{FILLERS}|(?:so|well|oh)(?=,)){END}"
)
CAPITALS = lazy_regex(f"{WORD}{FILLERS.upper()}{END}")
NOTHING = frozenset(char for char in f"{FUNCTION.pattern}了" if char.isalnum())
"""The letters of all words without meaning: what has others that were not said says something
new.
"""
FLIPS = lazy_regex(
    r"(?!不错|不过|不客气|不好意思|没问题|别忘|别人)[不没無无非否别未勿莫假错谣吗](?!常)"
    r"|如果|要是|假如|倘若|除非|可能|也许|或许|应该|据说|听说|正在|准备|即将|马上|稍等|稍候"
    r"|让我|我来|我去|我先|等我|还是|或|取消|拒绝|失败"
    rf"|{WORD}(?:not?|never|none|nor|neither|without|cannot|[a-z]+n't|if|unless|whether"
    r"|may|might|maybe|perhaps|will|shall|i'll|going|let|let's|checking|or|fail[a-z]*|refus[a-z]*"
    rf"|deny|denied|instead|stop[a-z]*){END}"
)
VERDICTS = lazy_regex(
    r"假的|错的|谣言|不可能|不对|不是真|取消|如果|要是|除非"
    rf"|{WORD}(?:not true|false|wrong|fake|cancel[a-z]*|if|unless|whether){END}"
)
TURNS = lazy_regex(
    r"[和与跟及同之的除只仅光才想要该得约各每都]|几乎|差点|至少|最多|最少|以为|觉得|认为|怀疑|希望|打算|计划|尽量|因为|所以"
    rf"|{WORD}(?:and|of|with|only|just|except|but|almost|nearly|about|around|least|most|every"
    r"|want[a-z]*|plan[a-z]*|hope[a-z]*|think[a-z]*|seem[a-z]*|because|for|from|to|by|in|on|at"
    rf"|s){END}"
)
"""In what is left out: it joins, bounds or turns round what is left."""
LEAST_WHOLE = 2  # clauses said as they were, beside those that lack something
MOST_LEFT_OUT = 1 / 6  # of the letters
SENTENCE_ENDS = lazy_regex(r"[。!?;\n]|\.(?!\d)")
BREAKS = lazy_regex(r"[。!?;,:、\n|]|\.(?!\d)")
TOKEN = lazy_regex(
    rf"(?P<time>{TIME.pattern})|(?P<function>{FUNCTION.pattern})|(?P<number>{NUMBERS.pattern})"
    rf"|(?P<content>[{CJK}]|(?:(?![{CJK}_])\w)+(?:'[a-z]+)?|{SIGNS.pattern})"
    rf"|(?P<break>{BREAKS.pattern})"
)
DECORATION = lazy_regex(r"^[ \t]*[>#*+-]+[ \t]+", re.MULTILINE)  # of Markdown


def already_said(text: str, said: Sequence[str]) -> bool:
    """Whether the text adds nothing to what was said.

    Marks and emoji alone are said already only where they were said as they are.
    """
    if not said:
        return not text.strip()
    new = _fold(text)
    letters = _letters(new)
    if not letters:
        return not text.strip() or any(text.strip() in old for old in said)
    everything = (*said, "\n".join(said)) if len(said) > 1 else said
    return any(
        _repeats(new, letters, _fold(old)) and _is_noted_alike(text, old) for old in everything
    )


def only_omits(text: str, said: Sequence[str]) -> bool:
    """Whether the text is what was said but for a few words at the edges of its clauses, and most
    clauses are whole: as final words it tells nothing that has not been read.

    Numbers, times, signs, negations and questions agree; what is left out has none of them, and
    nothing that makes something else of the rest (`TURNS`).
    """
    if not said or len(text) > LONGEST:
        return False
    new = _fold(text)
    return any(
        len(old) <= LONGEST and _is_shortened(new, _fold(old)) and _is_noted_alike(text, old)
        for old in ((*said, "\n".join(said)) if len(said) > 1 else said)
    )


def _is_shortened(new: str, old: str) -> bool:
    ours, theirs = _clauses(new), _clauses(old)
    if len(ours) != len(theirs) or len(ours) <= LEAST_WHOLE:
        return False
    if any(
        kind.findall(_plain(new)) != kind.findall(_plain(old))
        for kind in (NUMBERS, TIME, SIGNS, FLIPS, VERDICTS)
    ) or ("?" in new) != ("?" in old):
        return False
    left_out = [
        _left_out(here, there) for here, there in zip(ours, theirs, strict=True) if here != there
    ]
    if len(ours) - len(left_out) < LEAST_WHOLE:
        return False
    gone = sum(map(len, filter(None, left_out)))
    return all(left_out) and gone <= MOST_LEFT_OUT * sum(map(len, theirs))


def _clauses(folded: str) -> list[str]:
    """The clauses of a text, letters and digits alone."""
    clauses = (UNHEARD.sub(" ", part).strip() for part in BREAKS.split(_plain(folded)))
    return [clause for clause in clauses if clause]


def _left_out(new: str, old: str) -> str:
    """What the clause lacks at its beginning or its end; empty where it differs otherwise, or that
    is not to be left out.
    """
    if not new or not (old.startswith(new) or old.endswith(new)):
        return ""
    gone = old.removesuffix(new) if old.endswith(new) else old.removeprefix(new)
    edge = old[len(gone) - 1 : len(gone) + 1] if old.endswith(new) else old[len(new) - 1 :][:2]
    in_a_word = edge.isascii() and edge.isalnum()
    return "" if in_a_word or TURNS.search(gone) or FLIPS.search(gone) else gone


def _is_noted_alike(new: str, old: str) -> bool:
    """Whether code, paths and formulas are the same; of a part, whether they are among those of the
    whole.
    """
    ours, theirs = (Counter(mark.strip() for mark in NOTATION.findall(text)) for text in (new, old))
    return ours == theirs or (ours <= theirs and letters_only(new) != letters_only(old))


@lru_cache(maxsize=512)
def cached_letters(known: str) -> str:
    """The same of what is asked for again and again: rules, names of places, the moment."""
    return letters_only(known)


def _repeats(new: str, letters: str, old: str) -> bool:
    if letters == (said := _letters(old)):
        if new.rstrip().endswith("?") != old.rstrip().endswith("?"):
            return False
        return NUMBERS.findall(new) == NUMBERS.findall(old) and SIGNS.findall(
            _plain(new)
        ) == SIGNS.findall(_plain(old))
    if (
        len(letters) < COMPARABLE
        or not {*letters} <= {*said, *NOTHING}
        or max(len(new), len(old)) > LONGEST
    ):
        return False
    if _share(new, old) < SHARE:
        return False
    # The particle 啦 is 了 and more: it may stand for it, and may be left out where 了 may not.
    told = {(new, old), (new.replace("啦", "了"), old.replace("啦", "了"))}
    return any(_is_within(_Content.of(ours), _Content.of(theirs)) for ours, theirs in told)


# --- what a text says -----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Content:
    """The words that mean something, in order, and where each begins in `text`.

    `times` are the words of time, each with the number of other words before it and its place,
    `breaks` those two of the ends of clauses.
    """

    text: str
    words: tuple[str, ...]
    places: tuple[tuple[int, int], ...]
    times: tuple[tuple[str, int, int], ...]
    breaks: tuple[tuple[int, int], ...]

    @classmethod
    def of(cls, folded: str) -> _Content:
        text = _plain(folded)
        words: list[str] = []
        places: list[tuple[int, int]] = []
        times: list[tuple[str, int, int]] = []
        breaks: list[tuple[int, int]] = []
        for match in TOKEN.finditer(text):
            match match.lastgroup:
                case "time":
                    times.append((match[0], len(words), match.start()))
                case "number" | "content":
                    words.append(match[0])
                    places.append(match.span())
                case "break":
                    breaks.append((len(words), match.start()))
                case _:
                    continue
        return cls(text, tuple(words), tuple(places), tuple(times), tuple(breaks))

    @property
    def starts(self) -> tuple[int, ...]:
        """Where clauses begin, in order."""
        return tuple(sorted({0, *(at for at, _ in self.breaks)}))

    def is_mere_words(self, begin: int, end: int) -> bool:
        """Whether these words may be left out without anybody missing a fact."""
        text = self.text[self.places[begin][0] : self.places[end - 1][1]]
        return not (
            NUMBERS.search(text) or SIGNS.search(text) or TIME.search(text) or FLIPS.search(text)
        )

    def whole(self) -> _Part:
        """All of it."""
        return _Part(
            times=tuple((time, at) for time, at, _ in self.times),
            breaks=tuple(at for at, _ in self.breaks),
            asks=self.text.rstrip().endswith("?"),
            is_turned_round=False,
        )

    def part(self, chosen: list[int]) -> _Part:
        """The clauses of these words of it."""
        first, last = self.places[chosen[0]][0], self.places[chosen[-1]][1]
        start = max((place for _, place in self.breaks if place < first), default=-1)
        stop = min((place for _, place in self.breaks if place >= last), default=len(self.text))
        begin_of_sentence = max(
            (mark.end() for mark in SENTENCE_ENDS.finditer(self.text, 0, first)), default=0
        )
        mark = SENTENCE_ENDS.search(self.text, last)
        return _Part(
            times=tuple(
                (time, bisect_left(chosen, at))
                for time, at, place in self.times
                if start < place < stop
            ),
            breaks=tuple(
                bisect_left(chosen, at) for at, place in self.breaks if start < place < stop
            ),
            asks=mark is not None and mark[0] == "?",
            is_turned_round=bool(
                FLIPS.search(self.text[begin_of_sentence:first])
                or VERDICTS.search(self.text[last : mark.start() if mark else len(self.text)])
            ),
        )


@dataclass(frozen=True, slots=True)
class _Part:
    """Some words in their clauses: the words of time and the ends there, each by the number of them
    before it.

    `is_turned_round`: what stands beside them in their sentences makes something else of them.
    """

    times: tuple[tuple[str, int], ...]
    breaks: tuple[int, ...]
    asks: bool
    is_turned_round: bool


def _is_within(new: _Content, old: _Content) -> bool:
    """Whether the words stand in the other text as they stand here, with the same words of time in
    their clauses.
    """
    if not new.words:
        return False
    ours, starts = new.whole(), old.starts
    for begin in starts[:MOST]:
        if places := _follow(new, old, begin, starts):
            theirs = old.part(places)
            if (
                _same_times(ours, theirs)
                and ours.asks == theirs.asks
                and not theirs.is_turned_round
            ):
                return True
    return False


def _follow(new: _Content, old: _Content, begin: int, starts: tuple[int, ...]) -> list[int]:
    """Where each of the words stands, from there on and up to the end of a clause; empty where they
    are others.

    Whole clauses may be left out between two others, as long as they are mere words: no numbers,
    nothing that negates.
    """
    at, places = begin, list[int]()
    for word in new.words:
        if old.words[at : at + 1] != (word,):
            if not places or at not in starts:
                return []
            ahead = next(
                (
                    place
                    for place in starts
                    if place > at and old.words[place : place + 1] == (word,)
                ),
                0,
            )
            if not ahead or not old.is_mere_words(at, ahead):
                return []
            at = ahead
        places.append(at)
        at += 1
    return places if at in starts or at == len(old.words) else []


def _same_times(ours: _Part, theirs: _Part) -> bool:
    """Whether each word of time is in both, in the same clause."""
    if [time for time, _ in ours.times] != [time for time, _ in theirs.times]:
        return False
    breaks = {*ours.breaks, *theirs.breaks}
    return all(
        not any(min(here, there) < place < max(here, there) for place in breaks)
        for (_, here), (_, there) in zip(ours.times, theirs.times, strict=True)
    )


def _share(new: str, old: str) -> float:
    """How much of the text's words and pairs of characters was said."""
    pieces, said = _pieces(new), frozenset(_pieces(old))
    return sum(piece in said for piece in pieces) / len(pieces) if pieces else 0.0


def _pieces(folded: str) -> list[str]:
    pieces: list[str] = []
    for run in re.findall(rf"[{CJK}]+|(?:(?![{CJK}_])\w)+", folded):
        is_cjk = re.match(rf"[{CJK}]", run) is not None and len(run) > 1
        pieces += [first + second for first, second in pairwise(run)] if is_cjk else [run]
    return pieces


# --- letters --------------------------------------------------------------------------------------


def _letters(folded: str) -> str:
    return UNHEARD.sub("", folded).casefold()


def _plain(folded: str) -> str:
    return DECORATION.sub("", folded).replace("**", "").replace("__", "")


def _fold(text: str) -> str:
    """In one case and width, but for capitals that make a name of a word without meaning."""
    text = unicodedata.normalize("NFKC", text).replace("−", "-").replace("’", "'")
    if (folded := text.casefold()) == text:
        return text
    pieces, at = list[str](), 0
    for name in CAPITALS.finditer(text):
        pieces += [text[at : name.start()].casefold(), name[0]]
        at = name.end()
    return "".join([*pieces, text[at:].casefold()]) if pieces else folded
