"""Lays text out as QQ messages. Pure.

A short answer of several paragraphs may become several messages, as people write; a long one a
merged forward, so that it does not push other people's messages off the screen.

QQ shows text unrendered, so Markdown is removed. Code blocks, code spans and addresses never
change, nor do kaomoji, multiplications, powers, hashtags and names like `__init__`. Every pattern
takes linear time for any input.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import groupby, islice
from typing import Final, TypeAlias

from bot.core.actions import MergedForward
from bot.core.language import CATALOGUE, Phrase
from bot.core.segments import SendSegment
from bot.prompt.prompt_language import language_of_text
from frostagent.text.lazy_regex import lazy_regex
from frostagent.types.speech import Attachment, Quote, Text

LIMIT = 1500  # characters

ENDS = (
    lazy_regex(r"\n"),
    lazy_regex(r"[。！？!?；;…][”’」』）)\"']?|\.(?=\s)"),
    lazy_regex(r"[，,、：:]|\s"),
)


def split_text(text: str, limit: int = LIMIT) -> tuple[str, ...]:
    """The text in non-empty pieces of at most `limit` characters; only blanks between pieces are
    lost. A code block is cut only if it is longer than `limit`; then each piece is fenced.
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
    # A fence that fills a whole piece is not worth repeating.
    return _cut_prose(block, limit)


def _cut_prose(text: str, limit: int) -> list[str]:
    pieces = []
    while len(text) > limit:
        at = _place(text, limit)
        pieces.append(text[:at].rstrip())
        text = text[at:].lstrip()
    return [*pieces, text]


def _place(text: str, limit: int) -> int:
    """Cut after the last sentence or clause end that leaves at least a third; else at the limit."""
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


Parts: TypeAlias = tuple[SendSegment, ...]
"""The segments of one QQ message."""

MAX_MESSAGES: Final = 20  # per call; more would be a flood, and attract risk control
CUT_SHORT: Final = Phrase("……（太长了，后面的省略了）", "… (too long, the rest is left out)")
CATALOGUE.register(__name__, globals())
ALONE: Final = ("record", "video", "file")  # media that QQ shows only in a message of their own

SHORT: Final = 300  # characters in total, below which an answer is sent paragraph by paragraph
AT_ONCE: Final = 3  # messages of one short answer
NODE: Final = 2000  # characters
MAX_NODES: Final = 50


def messages_of(segments: Parts, *, limit: int = LIMIT) -> list[Parts]:
    """The segments as QQ messages: in order, the quote first, long text in pieces, some media
    alone, Markdown as text. Blank messages and mere quotes are omitted. If there are more than
    MAX_MESSAGES, the last one says that the rest was cut.
    """
    if _is_one(segments, limit):
        read = tuple([_read(segment) for segment in segments])
        return [read if _says_something(read) else segments]
    raw = _messages_of(segments, limit=limit)
    messages = list(islice(_readable(raw), MAX_MESSAGES + 1))
    if len(messages) <= MAX_MESSAGES:
        return messages
    said = "".join([segment.text for segment in segments if isinstance(segment, Text)])
    return [*messages[:-1], (Text(CUT_SHORT.format(language_of_text(said))),)]


def in_turns(segments: Parts) -> list[Parts]:
    """The messages of a short answer with several paragraphs, at most AT_ONCE, the first with the
    quote; empty for any other answer.
    """
    quotes = tuple(segment for segment in segments if isinstance(segment, Quote))
    words = [segment.text for segment in segments if isinstance(segment, Text)]
    said = [strip_markdown(paragraph) for paragraph in paragraphs("".join(words))]
    said = [paragraph for paragraph in said if paragraph.strip()]
    is_text = len(quotes) + len(words) == len(segments)
    if not is_text or len(said) < 2 or sum(map(len, said)) >= SHORT:
        return []
    while len(said) > AT_ONCE:
        shortest = min(range(len(said) - 1), key=lambda at: len(said[at]) + len(said[at + 1]))
        said[shortest : shortest + 2] = ["\n\n".join(said[shortest : shortest + 2])]
    first, *others = said
    return [(*quotes, Text(first)), *((Text(paragraph),) for paragraph in others)]


def merged(segments: Parts, messages: list[Parts], *, name: str) -> MergedForward | None:
    """Text too long for messages as a merged forward by `name`; None if it is short, or contains
    more than text and a quote.
    """
    if sum(map(_length, messages)) <= LIMIT:
        return None
    words = [segment.text for segment in segments if isinstance(segment, Text)]
    if not all(isinstance(segment, Quote | Text) for segment in segments):
        return None
    text = "".join(words)
    nodes = [strip_markdown(node) for node in split_text(text, NODE)]
    said = [node for node in nodes if node.strip()]
    kept = (
        said
        if len(said) <= MAX_NODES
        else [*said[: MAX_NODES - 1], CUT_SHORT.format(language_of_text(text))]
    )
    return MergedForward(tuple(kept), name)


def _is_one(segments: Parts, limit: int) -> bool:
    """Whether it is text for one message, with or without a quote: the usual case."""
    if len(segments) > 2 or not segments or not isinstance(words := segments[-1], Text):
        return False
    if len(segments) == 2 and not isinstance(segments[0], Quote):
        return False
    return len(words.text) <= limit and bool(words.text.strip())


def _length(message: Parts) -> int:
    return sum([len(segment.text) for segment in message if isinstance(segment, Text)])


def _readable(messages: Iterable[Parts]) -> Iterator[Parts]:
    """The messages without Markdown; one that consists of marks alone stays as it is."""
    for message in messages:
        read = tuple([one for one in map(_read, message) if not isinstance(one, Text) or one.text])
        yield read if _says_something(read) else message


def _read(segment: SendSegment) -> SendSegment:
    if not isinstance(segment, Text) or (text := strip_markdown(segment.text)) is segment.text:
        return segment
    return Text(text)


def _messages_of(segments: Parts, *, limit: int) -> Iterator[Parts]:
    quote = next((segment for segment in segments if isinstance(segment, Quote)), None)
    current: list[SendSegment] = []
    characters = 0
    for segment in segments:
        match segment:
            case Quote() | Text(text=""):
                continue
            case Attachment(kind=kind) if kind in ALONE:
                if _says_something(current):
                    yield _quoting(quote, current)
                    quote = None
                yield (segment,)
                current, characters = [], 0
            case Text(text=text) if characters + len(text) > limit:
                if characters and _says_something(current):
                    yield _quoting(quote, current)
                    quote = None
                if characters:
                    current = []
                *whole, rest = split_text(text, limit) or ("",)
                for piece in whole:
                    yield _quoting(quote, [*current, Text(piece)])
                    quote, current = None, []
                current += [Text(rest)] if rest else []
                characters = len(rest)
            case _:
                current.append(segment)
                characters += len(segment.text) if isinstance(segment, Text) else 0
    if _says_something(current):
        yield _quoting(quote, current)


def _quoting(quote: Quote | None, segments: list[SendSegment]) -> Parts:
    return (*((quote,) if quote else ()), *segments)


def _says_something(segments: Iterable[SendSegment]) -> bool:
    """Whether it contains more than a quote and blanks."""
    said = [segment for segment in segments if not isinstance(segment, Quote)]
    return any(not isinstance(segment, Text) or segment.text.strip() for segment in said)


# --- Markdown -------------------------------------------------------------------------------------

GAP: Final = lazy_regex(r"\n(?:[^\S\n]*\n){3,}")  # more than two blank lines

MARKED: Final = lazy_regex(r"[*_`<|\[\\]|^[^\S\n]*(?:[-+>~=]|#+\s)", re.MULTILINE)

# Opens a code block: a mark later on the same line would make it a code span (CommonMark 4.5).
FENCE: Final = lazy_regex(r"[^\S\n]*(`{3,}|~{3,})[^`~\n]*$", re.MULTILINE)

END: Final = r"\s<>()\"'`|，。；！？、（）【】《》「」"  # of an address
URL: Final = rf"(?:https?|ftp)://[^{END}]*(?:\([^\s<>()]*\)[^{END}]*)*"
LINK: Final = (
    r"!?\[(?P<words>[^\[\]\n]*)\]\([^\S\n]*<?"
    r"(?P<to>(?:\w+://|mailto:|www\.)[^\s<>()]*(?:\([^\s<>()]*\)[^\s<>()]*)*)>?"
    r"(?:[^\S\n]+(?:\"[^\"\n]*\"|'[^'\n]*'))?[^\S\n]*\)"
)
CODE: Final = r"(?<!`)(?P<ticks>`{1,3})(?!`)(?P<code>[^\n]+?)(?<!`)(?P=ticks)(?!`)"
KEPT: Final = lazy_regex(
    rf"\\(?P<escaped>[*#>`|]|_(?=\w))|{CODE}|{LINK}|<(?P<auto>{URL})>|(?P<url>{URL})"
)
"""Text that must not change: escaped characters, code spans, addresses."""

BOLD: Final = lazy_regex(
    r"(?<![A-Za-z0-9)])\*\*(?=[^\s*])([^*\n]*(?:\*(?!\*)[^*\n]*)*)(?<=[^\s*])\*\*"
    r"|\*\*(?=[^\s*])([^*\n]*(?:\*(?!\*)[^*\n]*)*)(?<=[^\s*])\*\*(?![A-Za-z0-9(])"
)
UNDERLINED: Final = lazy_regex(
    r"(?<!\w)__(?![a-z0-9_]+__)(?=[^\s_])([^_\n]*(?:_(?!_)[^_\n]*)*)(?<=[^\s_])__(?!\w)"
)
SLANTED: Final = lazy_regex(
    r"(?<![\w*)])\*(?=\w)([^*\n]*)(?<=[\w。！？.!?])\*(?!\*)"
    r"|(?<!\*)\*(?=\w)([^*\n]*)(?<=[\w。！？.!?])\*(?![\w*(])"
)

HEADING: Final = lazy_regex(r"^[^\S\n]{0,3}#{1,6}[^\S\n]+(?=\S)")
QUOTED: Final = lazy_regex(r"^[^\S\n]{0,3}>(?:[^\S\n]?>)*(?:[^\S\n]+|$)")
BULLET: Final = lazy_regex(r"^([^\S\n]*)[-*+][^\S\n]+(?=\S)")
RULE: Final = lazy_regex(r"[^\S\n]{0,3}(?:(?:-[^\S\n]*){3,}|(?:\*[^\S\n]*){3,}|(?:_[^\S\n]*){3,})")
UNDERLINE: Final = lazy_regex(r"[^\S\n]{0,3}={3,}[^\S\n]*")
DASHES: Final = lazy_regex(r"[^\S\n]*\|?(?:[^\S\n]*:?-+:?[^\S\n]*(?:\||$))+[^\S\n]*")
CJK: Final = lazy_regex(r"[\u3040-\u30ff\u3400-\u9fff]")


def strip_markdown(text: str) -> str:
    """The text without Markdown and large gaps; the same object if it has neither."""
    if not MARKED.search(text):
        return GAP.sub("\n\n", text)  # the usual case
    lines: list[str] = []
    for block, is_code in blocks(text):
        lines += block[1 : -1 if _is_closed(block) else None] if is_code else _plain_lines(block)
    return "\n".join(lines)


def verbatim_parts(text: str) -> tuple[str, ...]:
    """The code and addresses in the text, which must not change."""
    if not MARKED.search(text) and "://" not in text:
        return ()  # the usual case
    found: list[str] = []
    for block, is_code in blocks(text):
        lines = "\n".join(block)
        matches = () if is_code else KEPT.finditer(lines)
        found += [lines] if is_code else [_kept(match)[0] for match in matches]
    return tuple(found)


def blocks(text: str) -> Iterator[tuple[list[str], bool]]:
    """Runs of lines, and whether each is a code block, fences included; an unclosed one runs to the
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
    """Whether the line closes a code block opened by this fence."""
    bare = line.strip()
    return bare.startswith(fence) and not bare.strip(fence[0])


def _is_closed(block: list[str]) -> bool:
    mark = FENCE.fullmatch(block[0])
    return mark is not None and len(block) > 1 and closes(block[-1], mark[1])


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
    """The part that stays as it is, and the words before and after it."""
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
    # Without the blank, following text would be read as part of the address.
    follows = re.match(r"\w", match.string[match.end() : match.end() + 1])
    return to, f"{words} " if words and words != to else "", " " if follows else ""


def _without_tables(lines: list[str]) -> Iterator[str]:
    """The lines with each table row as `a: b`, with column names if there are more than two
    columns.
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
    """The lines without rules and underlines, and without doubled blank lines in their place."""
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
