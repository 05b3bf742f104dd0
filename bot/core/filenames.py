"""Clean names for outgoing files, whether from a url, a server's header, the model or a tool. Pure.

People see only the name before they open a file, so it must not reverse its letters (`exe.fdp` for
`pdf.exe`), hide some of them, or lead a server out of the folder of its files.
"""

from __future__ import annotations

import re
import unicodedata

MAX_BYTES = 120  # of UTF-8; file systems allow 255, and servers prepend a date or a number
NEUTRAL = "file"

# Slashes and lookalikes, and what Windows forbids in names, where many members open files.
FORBIDDEN = re.compile(r'[/\\:*?"<>|\u2044\u2215\u2216\u29f5\u29f8\u29f9\uff0f\uff3c]+')
BLANKS = re.compile(r"\s+")
ENDING = re.compile(r"\.[A-Za-z0-9]{1,8}")

# Invisible, although Unicode calls them letters, marks or symbols: fillers, selectors, the empty
# Braille pattern.
UNSEEN = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2800\u3164\ufe00-\ufe0f\uffa0\U000e0100-\U000e01ef]"
)

# Device names of Windows, with any extension.
RESERVED = re.compile(
    r"(con|prn|aux|nul|conin\$|conout\$|com[0-9¹²³]|lpt[0-9¹²³])\s*(\.|$)", re.IGNORECASE
)


def clean_name(name: str, *, neutral: str = NEUTRAL) -> str:
    """The name as one line without tricks, at most 120 bytes with its extension kept; `neutral` if
    nothing is left. Idempotent. Controls, direction marks, zero-width and private characters and
    lone surrogates are removed; slashes become `_`; dots and blanks at both ends are stripped.
    """
    shown = "".join(filter(_is_seen, BLANKS.sub(" ", name)))
    bare = FORBIDDEN.sub("_", UNSEEN.sub("", shown))
    bare = BLANKS.sub(" ", bare).strip(" .")
    if RESERVED.match(bare):
        bare = f"_{bare}"
    bare = _shortened(bare)
    return bare if bare.strip("_ .") else neutral


def split_ending(name: str) -> tuple[str, str]:
    """`report.PDF` -> `report`, `.PDF`; the second is empty if there is no extension."""
    stem, dot, ending = name.rpartition(".")
    return (stem, dot + ending) if stem and ENDING.fullmatch(dot + ending) else (name, "")


def _is_seen(letter: str) -> bool:
    # Cc controls, Cf direction marks and zero widths, Co private use, Cs surrogates; Zl and Zp have
    # become blanks.
    return unicodedata.category(letter) not in {"Cc", "Cf", "Cn", "Co", "Cs"}


def _shortened(name: str) -> str:
    if len(name.encode()) <= MAX_BYTES:
        return name
    stem, ending = split_ending(name)
    room = MAX_BYTES - len(ending)
    return stem.encode()[:room].decode("utf-8", "ignore").rstrip(" .") + ending
