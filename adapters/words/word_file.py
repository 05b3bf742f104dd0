"""The word list of WORDS_FILE: a word or a /regular expression/ per line, matched by RE2 in linear
time.

Prefix `in:`: messages with it are not answered; `out:`: the bot does not say it; without a prefix:
both.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unicodedata import normalize

from bot.core.blocked_words import LONGEST, fold_text
from bot.core.language import CATALOGUE, Phrase, text_of
from frostagent.types.errors import ConfigError, Problem

SETTING = "WORDS_FILE"
MEND = Phrase("按 docs/zh/safety.md 改正", "Correct it as docs/safety.md says").fill()
KINDS = {"in:": (True, False), "out:": (False, True), "both:": (True, True)}
MAX_LINES = 20_000
MEMORY = 256 * 2**20  # bytes that RE2 may use for a list, where it needs them
TOO_LARGE = Phrase(
    "内容太多，没法一次查完：缩短它，先从 /表达式/ 开始",
    "has too much in it to search for at once: shorten it, above all its /expressions/",
)
UNREADABLE = Phrase("{file} 读不了（{why}）", "{file} cannot be read ({why})")
NOT_UTF8 = Phrase("不是 UTF-8 文本", "it is not UTF-8 text")
IN_FILE = Phrase("{file} {what}", "{file} {what}")
TOO_MANY = Phrase("有 {count} 行，最多 {most} 行", "has {count} lines; at most {most} are allowed")
AT_LINE = Phrase("第 {number} 行：{why}", "line {number}: {why}")
TOO_LONG = Phrase("超过了 {most} 个字", "has more than {most} characters")
INVISIBLE = Phrase("里面没有看得见的字", "has no visible character")
BLANK = Phrase("要查的文字里没有空格，去掉它", "searched text has no blanks: leave the blank out")
NOT_RE2 = Phrase("不是 RE2 的正则表达式（{why}）", "is not a regular expression of RE2 ({why})")
FITS_ALL = Phrase("连空的文字都符合，等于全部", "matches an empty text, so everything")
NEVER_THERE = Phrase(
    "要查的文字里没有 {char}，去掉它", "{char} is in no searched text: leave it out"
)
WRITTEN_AS = Phrase(
    "{char} 在要查的文字里是 {folded}，写那个",
    "{char} is {folded} in searched text: write that",
)
TOKEN = re.compile(
    r"\\Q(?P<literal>.*?)(?:\\E|\Z)"
    r"|\\x(?:(?P<byte>[0-9a-fA-F]{2})|\{0*(?P<code>[0-9a-fA-F]{1,5})\})|\\.|(?P<char>.)",
    re.DOTALL,
)


CATALOGUE.register(__name__, globals())


@dataclass(frozen=True, slots=True)
class Rule:
    """A line: its number, its pattern, and where it applies."""

    line: int
    pattern: str
    coming: bool
    going: bool


class Automaton:
    """Many patterns matched at once."""

    def __init__(self, rules: Iterable[Rule] = ()) -> None:
        self._lines: list[int] = []
        self._set: Any = None
        for rule in rules:
            self._set = self._set or _library().Set.SearchSet(_options())
            self._set.Add(rule.pattern)
            self._lines.append(rule.line)
        if self._set is not None:
            self._set.Compile()

    def find(self, text: str) -> int:
        """The first line whose pattern matches; 0 for none."""
        if self._set is None:
            return 0
        found = self._set.Match(fold_text(text)) or ()
        return min((self._lines[index] for index in found), default=0)


class WordFile:
    """The `BlockedWords` port. Raises ConfigError for an unusable file."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._coming = self._going = Automaton()
        if problems := self.reload():
            raise ConfigError(*problems)

    def reload(self) -> tuple[Problem, ...]:
        """Read the file. Returns its problems, by line; if there are any, nothing changes."""
        try:
            text = self._file.read_text("utf-8-sig")
        except (OSError, UnicodeDecodeError) as error:
            why = getattr(error, "strerror", "") or NOT_UTF8.fill()
            what = UNREADABLE.fill(file=self._file.name, why=why)
            return (Problem(SETTING, what, MEND),)
        rules, wrong = read_rules(text)
        if not wrong:
            try:
                coming = Automaton(rule for rule in rules if rule.coming)
                going = Automaton(rule for rule in rules if rule.going)
            except _library().error:
                wrong = [TOO_LARGE.fill()]
            else:
                self._coming, self._going = coming, going
        return tuple(
            Problem(SETTING, IN_FILE.fill(file=self._file.name, what=what), MEND) for what in wrong
        )

    def stops(self, text: str) -> int:
        """The line that stops this message from being answered; 0 for none."""
        return self._coming.find(text)

    def blocks_answer(self, text: str) -> int:
        """The line that stops the bot from saying this; 0 for none."""
        return self._going.find(text)


def compile_pattern(words: str) -> Callable[[str], bool]:
    """What tells whether a text has this word, or /regular expression/, in it. Raises ValueError
    with the reason if it is none.
    """
    pattern, why = _pattern_of(words.strip())
    if why:
        raise ValueError(why)
    found = _library().compile(pattern, _options())
    return lambda text: found.search(fold_text(text)) is not None


def read_rules(text: str) -> tuple[list[Rule], list[str]]:
    """The rules of a list, and the problems of other lines."""
    rules: list[Rule] = []
    wrong: list[str] = []
    lines = text.splitlines()
    if len(lines) > MAX_LINES:
        return [], [TOO_MANY.fill(count=len(lines), most=MAX_LINES)]
    for number, line in enumerate(lines, 1):
        words = line.strip()
        if not words or words.startswith("#"):
            continue
        kind = next((kind for kind in KINDS if words.lower().startswith(kind)), "both:")
        words = words[len(kind) :].strip() if words.lower().startswith(kind) else words
        pattern, why = _pattern_of(words)
        if why:
            wrong.append(AT_LINE.fill(number=number, why=why))
        else:
            rules.append(Rule(number, pattern, *KINDS[kind]))
    return rules, wrong


def _pattern_of(words: str) -> tuple[str, str]:
    """The pattern for RE2, or the reason why there is none."""
    if len(words) > LONGEST:
        return "", TOO_LONG.fill(most=LONGEST)
    if not (len(words) > 1 and words.startswith("/") and words.endswith("/")):
        folded = fold_text(words)
        return _library().escape(folded), "" if folded else INVISIBLE.fill()
    pattern = words[1:-1]
    if any(map(str.isspace, pattern)):
        return "", BLANK.fill()
    try:
        pattern = TOKEN.sub(_folded, normalize("NFC", pattern))
    except _NeverThereError as error:
        return "", text_of(error)
    try:
        found = _library().compile(pattern, _options()).search("")
    except _library().error as error:
        told = error.args[0] if error.args else ""
        said = told.decode("utf-8", "replace") if isinstance(told, bytes) else str(told)
        return "", NOT_RE2.fill(why=said)
    return pattern, "" if found is None else FITS_ALL.fill()


def _folded(token: re.Match[str]) -> str:
    """Fold a token of an expression as text is folded; `（` is not a bracket of the expression.
    Raises _NeverThereError for a character that becomes several, which would change its meaning in
    `[]` or before `+`.
    """
    if (literal := token["literal"]) is not None:
        return str(_library().escape(fold_text(literal)))
    code = token["byte"] or token["code"]
    char = chr(int(code, 16)) if code else token["char"] or ""
    if char.isascii():
        return token[0]
    folded = fold_text(char)
    if not folded:
        raise _NeverThereError(NEVER_THERE.fill(char=ascii(char)))
    if len(folded) > 1:
        raise _NeverThereError(WRITTEN_AS.fill(char=repr(char), folded=repr(folded)))
    return str(_library().escape(folded))


class _NeverThereError(Exception):
    """A character that folded text never contains; the message is for the operator."""


def _options() -> Any:
    options = _library().Options()
    options.log_errors = False
    options.case_sensitive = False
    options.never_capture = True
    options.max_mem = MEMORY
    return options


def _library() -> Any:
    import re2  # noqa: PLC0415  # a megabyte and a half that only lists need

    return re2
