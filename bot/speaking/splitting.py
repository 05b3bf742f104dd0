"""Long text -> pieces QQ takes: at paragraph ends, else line ends, else sentence ends; code blocks
stay whole.

Other bots split between 1000 and 2000 characters; risk control cuts far below QQ's own limit of
about 4500 (`docs/protocol/onebot.md` 4.4).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import groupby

from bot.speaking.markdown import FENCE, blocks, closes

LIMIT = 1500  # characters

ENDS = (
    re.compile(r"\n"),
    re.compile(r"[。！？!?；;…][”’」』）)\"']?|\.(?=\s)"),
    re.compile(r"[，,、：:]|\s"),
)


def split_text(text: str, limit: int = LIMIT) -> tuple[str, ...]:
    """The text in pieces of at most `limit` characters, none empty, nothing lost but blank space
    between pieces.

    A code block is only cut when it is longer than `limit` itself; then each piece is fenced again.
    """
    if len(text) <= limit:
        return (text.strip(),) if text.strip() else ()
    pieces: list[str] = []
    current = ""
    for block in paragraphs(text.strip()):
        joined = f"{current}\n\n{block}" if current else block
        if len(joined) <= limit:
            current = joined
            continue
        if current:
            pieces.append(current)
        *whole, current = [block] if len(block) <= limit else _cut(block, limit)
        pieces.extend(whole)
    return tuple(piece for piece in (*pieces, current) if piece.strip())


def paragraphs(text: str) -> Iterator[str]:
    """Paragraphs and code blocks, in order. An unclosed fence runs to the end."""
    for lines, is_code in blocks(text):
        if is_code:
            yield "\n".join(lines)
        else:
            for is_blank, paragraph in groupby(lines, key=lambda line: not line.strip()):
                if not is_blank:
                    yield "\n".join(paragraph)


def _cut(block: str, limit: int) -> list[str]:
    mark = FENCE.match(block)
    if mark and len(mark[0]) <= limit // 3:
        return _cut_code(block, limit, opening=mark[0], closing=mark[1])
    # A fence that fills a piece by itself is no fence worth repeating.
    return _cut_prose(block, limit)


def _cut_prose(text: str, limit: int) -> list[str]:
    pieces = []
    while len(text) > limit:
        at = _place(text, limit)
        pieces.append(text[:at].rstrip())
        text = text[at:].lstrip()
    return [*pieces, text]


def _place(text: str, limit: int) -> int:
    """Where to cut: after the last end that leaves a piece of at least a third; else at the
    limit.
    """
    for end in ENDS:
        places = [
            match.end() for match in end.finditer(text, 0, limit) if match.end() >= limit // 3
        ]
        if places:
            return places[-1]
    return limit


def _cut_code(block: str, limit: int, *, opening: str, closing: str) -> list[str]:
    lines = block.split("\n")
    closed = len(lines) > 1 and closes(lines[-1], closing)
    body = lines[1:-1] if closed else lines[1:]
    room = limit - len(opening) - len(closing) - 2
    pieces: list[str] = []
    current: list[str] = []
    length = 0
    for line in (part for whole in body for part in _hard(whole, room)):
        if current and length + len(line) > room:
            pieces.append("\n".join([opening, *current, closing]))
            current, length = [], 0
        current.append(line)
        length += len(line) + 1
    return [*pieces, "\n".join([opening, *current, closing])]


def _hard(line: str, room: int) -> list[str]:
    return [line[start : start + room] for start in range(0, len(line), room)] or [""]
