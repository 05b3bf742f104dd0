"""Text as people see it: without escapes for terminals, marks that cannot be seen, and marks that
turn letters round.

What comes from people, from the web and from programs is read by a model and shown to owners. What
neither of them would see on a screen can only mislead. Line ends become `\\n`, whatever Unicode
calls one.

What a model says itself keeps the joiners and variants that many scripts are written with, and its
code stays as it is.
"""

from __future__ import annotations

import re

EMOJI = "\u2190-\u2bff\ufe0f\U0001f000-\U0001faff"

LINE_END = re.compile("\r\n?|[\v\f\x85\u2028\u2029]")

# An escape sequence as a whole (ECMA-48, and a title of xterm's), else the escape alone.
# Possessive: linear.
ESCAPE = re.compile(
    r"(?:\x1b\[|\x9b)[0-?]*+[ -/]*+[@-~]|\x1b\][^\x07\x1b\n]*+(?:\x07|\x1b\\)|\x1b[ -/]*+[0-~]?"
)

# Controls, blanks without a width, directions, fillers, tags, and the variants no emoji has. A
# joiner is part of an emoji, and of nothing else here.
UNSEEN = re.compile(
    "[\0-\b\x0e-\x1f\x7f-\x9f\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b\u200c\u200e\u200f"
    "\u202a-\u202e\u2060-\u206f\u3164\ufe00-\ufe0d\ufeff\uffa0\ufff0-\ufffb\U00013430-\U0001345f\U0001bca0-\U0001bca3"
    f"\U0001d173-\U0001d17a\U000e0000-\U000e0fff]|(?<![{EMOJI}])\u200d"
)

CONTROL = re.compile(
    "[\0-\b\x0e-\x1f\x7f-\x9f\xad\u061c\u200b\u200e\u200f\u202a-\u202e\u2060\u2066-\u2069\ufeff]"
)
"""What is part of no word: controls, directions, and blanks without a width."""

ROLE_MARKER = re.compile(
    r"<[|｜][\w▁ -]{1,40}[|｜]>|</?(?:system|assistant|human)\s*/?>|</?s>"
    r"|<(?:start|end)_of_turn>|\[/?INST\]|<</?SYS>>",
    re.IGNORECASE,
)
SPEAKER = re.compile(
    r"^([ \t>#*_]*(?:system|assistant|human))([ \t*_]*)[:：]", re.IGNORECASE | re.MULTILINE
)

CODE = re.compile(r"(```.*?(?:```|\Z)|``[^\n]*?``|`[^`\n]*`)", re.DOTALL)

CLEAN = re.compile("[ -~\t\n\u3000-\u3020\u3400-\u9fff\uff01-\uff5e]*")
"""Nearly all that people write, in which nothing is to be looked for."""


def visible_text(text: str) -> str:
    """The text without what cannot be seen in it, in time linear in its length; the same object
    where nothing is.
    """
    if CLEAN.fullmatch(text):
        return text
    ended = LINE_END.sub("\n", text)
    return UNSEEN.sub("", ESCAPE.sub("", ended))


def without_controls(text: str) -> str:
    """The text without escapes, controls, directions and blanks without a width, but in its code,
    in time linear in its length; the same object where nothing is.
    """
    if CLEAN.fullmatch(text):
        return text
    parts = CODE.split(text)  # code is every second one
    parts[::2] = [CONTROL.sub("", ESCAPE.sub("", LINE_END.sub("\n", part))) for part in parts[::2]]
    return "".join(parts)


def without_role_markers(text: str) -> str:
    """The text without what begins or ends a turn in the templates of models, and with a dash in
    the place of the colon in a line that begins as `System:` does. In time linear in its length.
    """
    return SPEAKER.sub(r"\1\2 -", ROLE_MARKER.sub(" ", text))
