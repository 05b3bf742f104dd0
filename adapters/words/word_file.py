"""The word list of WORDS_FILE: a word or a /regular expression/ a line, looked for in linear time
by RE2 whatever it is and whatever people write.

`in:` before it: what has it is not answered; `out:`: it is not said; neither: both.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unicodedata import normalize

from bot.core.blocked_words import LONGEST, fold_text
from frostagent.types.errors import ConfigError, Problem

SETTING = "WORDS_FILE"
MEND = "Correct it as docs/safety.md says"
KINDS = {"in:": (True, False), "out:": (False, True), "both:": (True, True)}
MAX_LINES = 20_000
MEMORY = 256 * 2**20  # bytes that RE2 may use for a list, where it needs them
TOO_LARGE = "has too much in it to be looked for at once: shorten it, above all its /expressions/"
TOKEN = re.compile(
    r"\\Q(?P<literal>.*?)(?:\\E|\Z)"
    r"|\\x(?:(?P<byte>[0-9a-fA-F]{2})|\{0*(?P<code>[0-9a-fA-F]{1,5})\})|\\.|(?P<char>.)",
    re.DOTALL,
)


@dataclass(frozen=True, slots=True)
class Rule:
    """A line: its number, what is looked for, and where it counts."""

    line: int
    pattern: str
    coming: bool
    going: bool


class Automaton:
    """Many patterns, looked for at once."""

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
        """The first line whose pattern is in it; 0 for none."""
        if self._set is None:
            return 0
        found = self._set.Match(fold_text(text)) or ()
        return min((self._lines[index] for index in found), default=0)


class WordFile:
    """Fits `BlockedWords`. Raises ConfigError for a file that cannot be used."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._coming = self._going = Automaton()
        if problems := self.reload():
            raise ConfigError(*problems)

    def reload(self) -> tuple[Problem, ...]:
        """Read the file; what is wrong with it, by line. Where anything is, all stays as it was."""
        try:
            text = self._file.read_text("utf-8-sig")
        except (OSError, UnicodeDecodeError) as error:
            why = getattr(error, "strerror", "") or "it is not UTF-8 text"
            return (Problem(SETTING, f"{self._file.name} cannot be read ({why})", MEND),)
        rules, wrong = read_rules(text)
        if not wrong:
            try:
                coming = Automaton(rule for rule in rules if rule.coming)
                going = Automaton(rule for rule in rules if rule.going)
            except _library().error:
                wrong = [TOO_LARGE]
            else:
                self._coming, self._going = coming, going
        return tuple(Problem(SETTING, f"{self._file.name} {what}", MEND) for what in wrong)

    def stops(self, text: str) -> int:
        """The line that keeps what somebody said from being answered; 0 for none."""
        return self._coming.find(text)

    def blocks_answer(self, text: str) -> int:
        """The line that keeps this from being said; 0 for none."""
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
    """The rules in a list, and what is wrong with other lines."""
    rules: list[Rule] = []
    wrong: list[str] = []
    lines = text.splitlines()
    if len(lines) > MAX_LINES:
        return [], [f"has {len(lines)} lines; {MAX_LINES} at most are looked for"]
    for number, line in enumerate(lines, 1):
        words = line.strip()
        if not words or words.startswith("#"):
            continue
        kind = next((kind for kind in KINDS if words.lower().startswith(kind)), "both:")
        words = words[len(kind) :].strip() if words.lower().startswith(kind) else words
        pattern, why = _pattern_of(words)
        if why:
            wrong.append(f"line {number}: {why}")
        else:
            rules.append(Rule(number, pattern, *KINDS[kind]))
    return rules, wrong


def _pattern_of(words: str) -> tuple[str, str]:
    """The pattern that RE2 is to look for, or why it cannot."""
    if len(words) > LONGEST:
        return "", f"has more than {LONGEST} characters"
    if not (len(words) > 1 and words.startswith("/") and words.endswith("/")):
        folded = fold_text(words)
        return _library().escape(folded), "" if folded else "nothing of it can be seen"
    pattern = words[1:-1]
    if any(map(str.isspace, pattern)):
        return "", "a blank is in no text that is looked at: leave it out"
    try:
        pattern = TOKEN.sub(_folded, normalize("NFC", pattern))
    except _NeverThereError as error:
        return "", str(error)
    try:
        found = _library().compile(pattern, _options()).search("")
    except _library().error as error:
        told = error.args[0] if error.args else ""
        said = told.decode("utf-8", "replace") if isinstance(told, bytes) else str(told)
        return "", f"is no regular expression of RE2 ({said})"
    return pattern, "" if found is None else "fits an empty text, so everything"


def _folded(token: re.Match[str]) -> str:
    """A piece of an expression, its letters as they are in folded text; `（` is no bracket of the
    expression's. Raises _NeverThereError for what is several characters there, which is another
    thing in `[]` or before `+`.
    """
    if (literal := token["literal"]) is not None:
        return str(_library().escape(fold_text(literal)))
    code = token["byte"] or token["code"]
    char = chr(int(code, 16)) if code else token["char"] or ""
    if char.isascii():
        return token[0]
    folded = fold_text(char)
    if not folded:
        raise _NeverThereError(f"{char!a} is in no text that is looked at: leave it out")
    if len(folded) > 1:
        raise _NeverThereError(f"{char!r} is {folded!r} in what is looked at: write that")
    return str(_library().escape(folded))


class _NeverThereError(Exception):
    """A character that folded text has not; its words are for the operator."""


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
