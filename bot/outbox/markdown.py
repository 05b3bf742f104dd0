"""Markdown -> what QQ shows, which is text as it stands: no stars, hashes and pipes for people to
read through. Pure.

Nothing inside a code block, a code span or an address changes. A mark goes only where it is one:
kaomoji, products, powers, hashtags and names like `__init__` stay as they are. Every pattern takes
linear time, whatever a model writes.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Final

GAP: Final = re.compile(r"\n(?:[^\S\n]*\n){3,}")  # more than two blank lines: nothing but room

MARKED: Final = re.compile(r"[*_`<|\[\\]|^[^\S\n]*(?:[-+>~=]|#+\s)", re.MULTILINE)

# A line that opens a code block: a mark after it on the same line means a code span (CommonMark
# 4.5).
FENCE: Final = re.compile(r"[^\S\n]*(`{3,}|~{3,})[^`~\n]*$", re.MULTILINE)

END: Final = r"\s<>()\"'`|，。；！？、（）【】《》「」"  # of an address
URL: Final = rf"(?:https?|ftp)://[^{END}]*(?:\([^\s<>()]*\)[^{END}]*)*"
LINK: Final = (
    r"!?\[(?P<words>[^\[\]\n]*)\]\([^\S\n]*<?"
    r"(?P<to>(?:\w+://|mailto:|www\.)[^\s<>()]*(?:\([^\s<>()]*\)[^\s<>()]*)*)>?"
    r"(?:[^\S\n]+(?:\"[^\"\n]*\"|'[^'\n]*'))?[^\S\n]*\)"
)
CODE: Final = r"(?<!`)(?P<ticks>`{1,3})(?!`)(?P<code>[^\n]+?)(?<!`)(?P=ticks)(?!`)"
KEPT: Final = re.compile(
    rf"\\(?P<escaped>[*#>`|]|_(?=\w))|{CODE}|{LINK}|<(?P<auto>{URL})>|(?P<url>{URL})"
)
"""What nothing may change in: signs that are meant, spans of code, addresses."""

BOLD: Final = re.compile(
    r"(?<![A-Za-z0-9)])\*\*(?=[^\s*])([^*\n]*(?:\*(?!\*)[^*\n]*)*)(?<=[^\s*])\*\*"
    r"|\*\*(?=[^\s*])([^*\n]*(?:\*(?!\*)[^*\n]*)*)(?<=[^\s*])\*\*(?![A-Za-z0-9(])"
)
UNDERLINED: Final = re.compile(
    r"(?<!\w)__(?![a-z0-9_]+__)(?=[^\s_])([^_\n]*(?:_(?!_)[^_\n]*)*)(?<=[^\s_])__(?!\w)"
)
SLANTED: Final = re.compile(
    r"(?<![\w*)])\*(?=\w)([^*\n]*)(?<=[\w。！？.!?])\*(?!\*)"
    r"|(?<!\*)\*(?=\w)([^*\n]*)(?<=[\w。！？.!?])\*(?![\w*(])"
)

HEADING: Final = re.compile(r"^[^\S\n]{0,3}#{1,6}[^\S\n]+(?=\S)")
QUOTED: Final = re.compile(r"^[^\S\n]{0,3}>(?:[^\S\n]?>)*(?:[^\S\n]+|$)")
BULLET: Final = re.compile(r"^([^\S\n]*)[-*+][^\S\n]+(?=\S)")
RULE: Final = re.compile(r"[^\S\n]{0,3}(?:(?:-[^\S\n]*){3,}|(?:\*[^\S\n]*){3,}|(?:_[^\S\n]*){3,})")
UNDERLINE: Final = re.compile(r"[^\S\n]{0,3}={3,}[^\S\n]*")
DASHES: Final = re.compile(r"[^\S\n]*\|?(?:[^\S\n]*:?-+:?[^\S\n]*(?:\||$))+[^\S\n]*")
CJK: Final = re.compile(r"[\u3040-\u30ff\u3400-\u9fff]")


def plain(text: str) -> str:
    """The text as people shall read it; the very same where nothing in it is Markdown, or a gap."""
    if not MARKED.search(text):
        return GAP.sub("\n\n", text)  # as nearly all are
    lines: list[str] = []
    for block, is_code in blocks(text):
        lines += block[1 : -1 if _is_closed(block) else None] if is_code else _plain_lines(block)
    return "\n".join(lines)


def untouched(text: str) -> tuple[str, ...]:
    """The code and the addresses in it, in which nothing may change."""
    if not MARKED.search(text) and "://" not in text:
        return ()  # as nearly always
    found: list[str] = []
    for block, is_code in blocks(text):
        lines = "\n".join(block)
        matches = () if is_code else KEPT.finditer(lines)
        found += [lines] if is_code else [_kept(match)[0] for match in matches]
    return tuple(found)


def blocks(text: str) -> Iterator[tuple[list[str], bool]]:
    """Runs of lines, and whether they are a code block, fences included; one left open runs to the
    end.
    """
    lines: list[str] = []
    fence = ""
    for line in text.split("\n"):
        mark = None if fence else FENCE.fullmatch(line)
        if mark:
            if lines:
                yield lines, False
            lines, fence = [line], mark[1]
            continue
        lines.append(line)
        if fence and closes(line, fence):
            yield lines, True
            lines, fence = [], ""
    if lines:
        yield lines, bool(fence)


def closes(line: str, fence: str) -> bool:
    """Whether the line ends a code block that this fence began."""
    bare = line.strip()
    return bare.startswith(fence) and not bare.strip(fence[0])


def _is_closed(block: list[str]) -> bool:
    mark = FENCE.fullmatch(block[0])
    return mark is not None and len(block) > 1 and closes(block[-1], mark[1])


# --- prose ----------------------------------------------------------------------------------------


def _plain_lines(lines: list[str]) -> list[str]:
    text = "\n".join(lines)
    mark = next(sign for sign in map(chr, range(0xE000, 0xF900)) if sign not in text)
    kept: list[str] = []

    def keep(match: re.Match[str]) -> str:
        whole, before, behind = _kept(match)
        kept.append(whole)
        return f"{before}{mark}{len(kept) - 1}{mark}{behind}"

    read = _without_tables(KEPT.sub(keep, text).split("\n"))
    said = "\n".join(_without_marks(_without_rules(read)))
    whole = re.sub(f"{mark}(\\d+){mark}", lambda place: kept[int(place[1])], said)
    return GAP.sub("\n\n", whole).split("\n")


def _kept(match: re.Match[str]) -> tuple[str, str, str]:
    """The part that stays as it is, and the words before and behind it."""
    if code := match["code"]:
        is_padded = len(code) > 2 and code[0] == code[-1] == " "
        return code[1:-1] if is_padded else code, "", ""
    if url := match["url"]:
        bare = url.rstrip("*")
        return bare, "", url[len(bare) :]
    if escaped := match["escaped"]:
        return escaped, "", ""
    to = match["to"] or match["auto"]
    words = (match["words"] or "").strip().strip("`")
    # What follows would be taken for a part of the address.
    follows = re.match(r"\w", match.string[match.end() : match.end() + 1])
    return to, f"{words} " if words and words != to else "", " " if follows else ""


def _without_tables(lines: list[str]) -> Iterator[str]:
    """The lines with each row of a table as one: `a: b`, with the names of columns where there are
    more.
    """
    rest, names = list(reversed(lines)), list[str]()
    while rest:
        line = rest.pop()
        if names and "|" in line:
            yield _row(_cells(line), names)
        elif "|" in line and rest and "|" in rest[-1] and DASHES.fullmatch(rest[-1]):
            rest.pop()
            names = _cells(line)
            if len(names) < 3 and any(names):
                yield _row(names, names)
        else:
            names = []
            yield line


def _cells(row: str) -> list[str]:
    return [cell.strip() for cell in row.strip().removeprefix("|").removesuffix("|").split("|")]


def _row(cells: list[str], names: list[str]) -> str:
    first, *others = cells
    if len(names) > 2:
        named = zip(names[1:], others, strict=False)
        others = [f"{name} {cell}".strip() for name, cell in named if cell]
    comma = "，" if CJK.search("".join((*cells, *names))) else ", "
    return ": ".join(filter(None, (first, comma.join(filter(None, others)))))


def _without_rules(lines: Iterable[str]) -> Iterator[str]:
    """The lines without those that are drawn, nor two blank ones where one was."""
    before, drawn = "", False
    for line in lines:
        if RULE.fullmatch(line) or (before.strip() and UNDERLINE.fullmatch(line)):
            drawn = True
        elif not (drawn and not line.strip() and not before.strip()):
            drawn = False
            yield line
            before = line


def _without_marks(lines: Iterable[str]) -> Iterator[str]:
    for line in lines:
        bare = HEADING.sub("", QUOTED.sub("", line, count=1), count=1)
        bare = BULLET.sub(r"\1· ", bare, count=1)
        for mark in (BOLD, SLANTED, UNDERLINED):
            bare = mark.sub(lambda match: match[match.lastindex or 0], bare)
        yield bare
