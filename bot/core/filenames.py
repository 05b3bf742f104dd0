"""The name a file is given on its way out, whoever made it up: a url, a server's header, the model,
a tool.

Pure. What people see of a file before they open it is its name, so nothing in it may turn its
letters round (`exe.fdp` for `pdf.exe`), hide some of them, or lead a server out of the folder it
keeps files in.
"""

from __future__ import annotations

import re
import unicodedata

MAX_BYTES = 120  # of UTF-8; file systems take 255, servers put a date or a number before it
NEUTRAL = "file"

# Slashes and what looks like one, and what Windows takes in no name (many members open files
# there).
FORBIDDEN = re.compile(r'[/\\:*?"<>|\u2044\u2215\u2216\u29f5\u29f8\u29f9\uff0f\uff3c]+')
BLANKS = re.compile(r"\s+")
ENDING = re.compile(r"\.[A-Za-z0-9]{1,8}")

# What shows nothing though Unicode calls it a letter, a mark or a symbol: fillers, selectors, an
# empty Braille.
UNSEEN = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2800\u3164\ufe00-\ufe0f\uffa0\U000e0100-\U000e01ef]"
)

# Device names of Windows, with any ending behind them.
RESERVED = re.compile(
    r"(con|prn|aux|nul|conin\$|conout\$|com[0-9¹²³]|lpt[0-9¹²³])\s*(\.|$)", re.IGNORECASE
)


def clean_name(name: str, *, neutral: str = NEUTRAL) -> str:
    """The name as one line without tricks, at most 120 bytes with its ending kept; `neutral` where
    nothing is left.

    Controls, marks of direction, zero-width and private characters and half surrogates are left
    out; slashes become `_`; dots and blanks at both ends go. Cleaning what is clean changes
    nothing.
    """
    shown = "".join(filter(_is_seen, BLANKS.sub(" ", name)))
    bare = FORBIDDEN.sub("_", UNSEEN.sub("", shown))
    bare = BLANKS.sub(" ", bare).strip(" .")
    if RESERVED.match(bare):
        bare = f"_{bare}"
    bare = _shortened(bare)
    return bare if bare.strip("_ .") else neutral


def split_ending(name: str) -> tuple[str, str]:
    """`report.PDF` is `report` and `.PDF`; the second is empty where there is no ending."""
    stem, dot, ending = name.rpartition(".")
    return (stem, dot + ending) if stem and ENDING.fullmatch(dot + ending) else (name, "")


def _is_seen(letter: str) -> bool:
    # Cc controls, Cf marks of direction and zero widths, Co private use, Cs half surrogates; Zl and
    # Zp were blanks.
    return unicodedata.category(letter) not in {"Cc", "Cf", "Cn", "Co", "Cs"}


def _shortened(name: str) -> str:
    if len(name.encode()) <= MAX_BYTES:
        return name
    stem, ending = split_ending(name)
    room = MAX_BYTES - len(ending)
    return stem.encode()[:room].decode("utf-8", "ignore").rstrip(" .") + ending
