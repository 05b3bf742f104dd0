"""The names that people give - to themselves, files, cards, pictures - as they can stand in our
frame and not leave it.

The frame is `name#number ↩name#number「words」: text` and `[word detail]`. So a name keeps no
bracket, no colon, no number sign and no such arrow, nor what looks like one: the one table of all
of them is here. What is taken out becomes a blank. A person's name loses numbers behind such a
sign, too: `Carol#1` who is #2 would be `Carol 1#2`.
"""

from __future__ import annotations

import re
from urllib.parse import quote

from bot.domain.visible import visible

# Unicode's opening and closing punctuation (Ps, Pe) but for braces, angles and low quotes, which
# the frame does not have and titles often do; then pieces and corners that are drawn as brackets.
BRACKETS = (
    "()[]༺༻༼༽᚛᚜⁅⁆⁽⁾₍₎⌈⌉⌊⌋〈〉❨❩❪❫❬❭❮❯❰❱❲❳❴❵⟅⟆⟦⟧⟨⟩⟬⟭⟮⟯⦃⦄⦅⦆⦇⦈⦉⦊⦋⦌⦍⦎⦏⦐"
    "⦑⦒⦓⦔⦕⦖⦗⦘⧘⧙⧚⧛⧼⧽⸢⸣⸤⸥⸦⸧⸨⸩⹕⹖⹗⹘⹙⹚⹛⹜「」【】〔〕〖〗〘〙〚〛﴾﴿︗︘︵︶︷︸︹︺︻︼﹁﹂﹇﹈﹙﹚"
    "﹛﹜﹝﹞（）［］｟｠｢｣⎛⎜⎝⎞⎟⎠⎡⎢⎣⎤⎥⎦⎴⎵⎶⏜⏝⏠⏡⌜⌝⌞⌟˹˺˻˼꜀꜁꜂꜃꜄꜅꜆꜇"
)
ENCLOSED = (  # letters and numbers in brackets of their own, first and last
    (0x2474, 0x2487),
    (0x249C, 0x24B5),
    (0x3200, 0x321E),
    (0x3220, 0x3243),
    (0x1F110, 0x1F129),
)

# U+003A, what Unicode's confusables.txt takes for it, and all that Unicode calls a colon.
COLONS = (
    ":\u02d0\u02d1\u02f8\u0589\u05c3\u0703\u0704\u0705\u0706\u0707\u0708\u0709\u0903\u0a83\u0f14"
    "\u1361\u1365\u1366\u16ec\u1803\u1804\u1809\u205a\u205d\u205e\u2236\u2237\u2254\u2255\u2982"
    "\u2a74\u2af6\u2e2c\ua4fd\ua6f4\ua789\ufe13\ufe30\ufe55\uff1a\U00010781\U00010782"
)

HASHES = "#＃﹟♯⋕⌗⧣⧤⧥⨳⩨⩩ⵌ𝄪"
"""The number sign, what Unicode's confusables.txt takes for it, and what is drawn like one."""
SIGNS = f"{HASHES}\u20e3↩⤶⏎↵"  # number signs, the key of one, arrows back
NUMBER = re.compile(rf"[{HASHES}]\ufe0f?\s*\d+")

BLANKS = "\r\n\t\u3164\u115f\u1160\uffa0\u2800"  # letters among them that are drawn as nothing

FRAME = str.maketrans(
    dict.fromkeys([*BRACKETS, *COLONS, *SIGNS, *BLANKS], " ")
    | {chr(code): " " for first, last in ENCLOSED for code in range(first, last + 1)}
)
BUT_HASHES = {char: by for char, by in FRAME.items() if chr(char) not in HASHES}

UNSAFE = re.compile(r"[^!#-&*-;=?-Z_a-z~]")
"""In a url: all but ASCII that is visible and no bracket or quote."""
URL = re.compile(r"https?://", re.IGNORECASE)

FENCES = ("```", "~~~")


def label(text: str, limit: int) -> str:
    """A name that somebody gave, in one line of at most so many characters, without anything that
    looks like our frame, or begins code.
    """
    seen = "".join(filter(str.isprintable, text[: 16 * limit].translate(FRAME)))
    name = " ".join(visible(seen).split())[:limit]
    return name[0] + name.lstrip(name[0]) if name.startswith(FENCES) else name


def person_name(text: str, limit: int) -> str:
    """The label of a person, without a number that could be taken for ours."""
    seen = visible("".join(filter(str.isprintable, text[: 16 * limit].translate(BUT_HASHES))))
    return label(NUMBER.sub(" ", seen), limit)


def address(url: str, limit: int) -> str:
    """A url, with what could look like our frame escaped as urls can have it; what is none, as a
    label.
    """
    if not URL.match(url):
        return label(url, limit)
    return UNSAFE.sub(lambda found: quote(found[0], safe="", errors="replace"), url[:limit])[:limit]
