"""Text as people see it, without terminal escapes, invisible characters and direction overrides.

A model reads text from people, the web and programs, and owners see it. Characters that neither
would see can only mislead. All of Unicode's line ends become `\\n`. In a model's own text, joiners
and variants stay, because many scripts need them, and code is unchanged.
"""

from __future__ import annotations

import re

from frostagent.text.lazy_regex import lazy_regex

EMOJI = "\u2190-\u2bff\ufe0f\U0001f000-\U0001faff"

LINE_END = lazy_regex("\r\n?|[\v\f\x85\u2028\u2029]")

# A whole escape sequence (ECMA-48, or xterm's title), else the escape character alone. Possessive:
# linear time.
ESCAPE = lazy_regex(
    r"(?:\x1b\[|\x9b)[0-?]*+[ -/]*+[@-~]|\x1b\][^\x07\x1b\n]*+(?:\x07|\x1b\\)|\x1b[ -/]*+[0-~]?"
)

# Controls, zero-width blanks, directions, fillers, tags, and variants that no emoji uses. A joiner
# is kept only within an emoji.
UNSEEN = lazy_regex(
    "[\0-\b\x0e-\x1f\x7f-\x9f\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b\u200c\u200e\u200f"
    "\u202a-\u202e\u2060-\u206f\u3164\ufe00-\ufe0d\ufeff\uffa0\ufff0-\ufffb\U00013430-\U0001345f\U0001bca0-\U0001bca3"
    f"\U0001d173-\U0001d17a\U000e0000-\U000e0fff]|(?<![{EMOJI}])\u200d"
)

CONTROL = lazy_regex(
    "[\0-\b\x0e-\x1f\x7f-\x9f\xad\u061c\u200b\u200e\u200f\u202a-\u202e\u2060\u2066-\u2069\ufeff]"
)
"""Characters that belong to no word: controls, directions, zero-width blanks."""

ROLE_MARKER = lazy_regex(
    r"<[|｜][\w▁ -]{1,40}[|｜]>|</?(?:system|assistant|human)\s*/?>|</?s>"
    r"|<(?:start|end)_of_turn>|\[/?INST\]|<</?SYS>>",
    re.IGNORECASE,
)
SPEAKER = lazy_regex(
    r"^([ \t>#*_]*(?:system|assistant|human))([ \t*_]*)[:：]", re.IGNORECASE | re.MULTILINE
)

CODE = lazy_regex(r"(```.*?(?:```|\Z)|``[^\n]*?``|`[^`\n]*`)", re.DOTALL)

CLEAN = lazy_regex("[ -~\t\n\u3000-\u3020\u3400-\u9fff\uff01-\uff5e]*")
"""Matches nearly all that people write; such text needs no cleaning."""


def visible_text(text: str) -> str:
    """The text without invisible characters, in linear time. Unchanged text is the same object."""
    if CLEAN.fullmatch(text):
        return text
    ended = LINE_END.sub("\n", text)
    return UNSEEN.sub("", ESCAPE.sub("", ended))


def without_controls(text: str) -> str:
    """The text without escapes, controls, directions and zero-width blanks, except in code, in
    linear time. Returns the same object if nothing changes.
    """
    if CLEAN.fullmatch(text):
        return text
    parts = CODE.split(text)  # every second part is code
    parts[::2] = [CONTROL.sub("", ESCAPE.sub("", LINE_END.sub("\n", part))) for part in parts[::2]]
    return "".join(parts)


def without_role_markers(text: str) -> str:
    """The text without the markers that begin or end a turn in model templates, and with a dash in
    place of the colon in lines that begin like `System:`. In linear time.
    """
    return SPEAKER.sub(r"\1\2 -", ROLE_MARKER.sub(" ", text))
