"""`@小明#2` in what a model says -> a mention of that person, as QQ shows it. Pure.

A few people at most are called so at once, and never everybody: the rest stay names.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection
from typing import Final, TypeAlias

from bot.domain.segments import Mention, Text

Who: TypeAlias = Callable[[int, str], tuple[int, str] | None]
"""Of a number its account and the name last seen; None where nobody has it, or the name that
stands before it, if any, is another's.
"""

MOST: Final = 3  # people mentioned in one thing said
NUMBER: Final = re.compile(r"[#＃](\d{1,7})(?!\d)(?:[#＃]\1(?!\d))*")  # models say it twice
LONGEST: Final = 32  # characters of a name, with what stands before it
CALLED: Final = re.compile(r"(?<![A-Za-z0-9._-])@([^\s@#＃]+)$")
JOINED: Final = re.compile(r"[a-z0-9._-]$")  # an address, not a mention


def may_call(text: str) -> bool:
    """Whether anybody could be called in it: in most answers nobody is."""
    return any(map(text.__contains__, "#＃")) and NUMBER.search(text) is not None


def mentioning(
    text: str, who: Who, *, most: int = MOST, but: Collection[str] = ()
) -> list[Text | Mention]:
    """The text with mentions in it, `most` of them; whoever else is meant is called by name.

    Nobody is called by what stands in one of the texts in `but`: code, or an address.
    """
    parts: list[Text | Mention] = []
    words, done, left = "", 0, most
    for number in NUMBER.finditer(text):
        words += text[done : number.start()]
        done = number.end()
        found = who(int(number[1]), "")
        name = _name(words, found[1] if found else "")
        found = who(int(number[1]), name) if name else None
        if not name or any(f"@{name}{number[0]}" in one for one in but):
            words += number[0]
        elif found is not None and left:
            left -= 1
            parts += [Text(words[: -len(name) - 1]), Mention(found[0], name)]
            words = "" if text[done : done + 1].isspace() or done == len(text) else " "
    parts.append(Text(words + text[done:]))
    return [part for part in parts if not isinstance(part, Text) or part.text]


def naming(text: str, *, but: Collection[str] = ()) -> str:
    """The text with whoever it calls called by name alone: where nobody can be mentioned."""
    said = mentioning(text, lambda *_: None, but=but)
    return "".join(part.text for part in said if isinstance(part, Text))


def _name(words: str, known: str) -> str:
    """The name that is called at the end of these words; empty where none is."""
    called, known = words[-LONGEST:].casefold(), f"@{known}".casefold()
    if len(known) > 1 and called.endswith(known) and not JOINED.search(called[: -len(known)]):
        return words[1 - len(known) :]
    match = CALLED.search(words[-LONGEST:])
    return match[1] if match else ""
