"""Words -> the QQ messages they become, as people read them. Pure.

Short answers of several paragraphs may be said as people write, message by message; what is long
becomes a merged forward, so that it does not push everybody else's talk off the screen.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import groupby, islice
from typing import Final, TypeAlias

from bot.core.actions import MergedForward
from bot.outbox.markdown import CJK, FENCE, blocks, closes, plain
from bot.prompt.prompt_language import language_of_text
from frostagent.types.speech import Attachment, Quote, SendSegment, Text

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


Parts: TypeAlias = tuple[SendSegment, ...]
"""The segments of one QQ message."""

MAX_MESSAGES: Final = 20  # for one thing said: more is a flood, and risk control's business
CUT_SHORT: Final = ("……（太长了，后面的省略了）", "… (too long, the rest is left out)")
ALONE: Final = ("record", "video", "file")  # media QQ shows only as a message of their own

SHORT: Final = 300  # characters in all, under which an answer is said paragraph by paragraph
AT_ONCE: Final = 3  # messages of one short answer
NODE: Final = 2000  # characters
MAX_NODES: Final = 50

PER_CJK, PER_OTHER = 0.12, 0.03  # seconds somebody needs to type a character
LEAST, MOST = 0.6, 3.0  # seconds between two messages of one answer


def messages_of(segments: Parts, *, limit: int = LIMIT) -> list[Parts]:
    """The segments as QQ messages: order kept, the quote first, long text in pieces, some media
    alone, Markdown as text.

    Blank text is left out, and a message with nothing but a quote is never made. More than
    `MAX_MESSAGES` end in a line that says so.
    """
    if _is_one(segments, limit):
        read = tuple([_read(segment) for segment in segments])
        return [read if _says_something(read) else segments]
    raw = _messages_of(segments, limit=limit)
    messages = list(islice(_readable(raw), MAX_MESSAGES + 1))
    if len(messages) <= MAX_MESSAGES:
        return messages
    said = "".join([segment.text for segment in segments if isinstance(segment, Text)])
    return [*messages[:-1], (Text(CUT_SHORT[language_of_text(said)]),)]


def in_turns(segments: Parts) -> list[Parts]:
    """The messages of a short answer that has several paragraphs, three at most, of which the first
    quotes; empty for all other answers.
    """
    quotes = tuple(segment for segment in segments if isinstance(segment, Quote))
    words = [segment.text for segment in segments if isinstance(segment, Text)]
    said = [plain(paragraph) for paragraph in paragraphs("".join(words))]
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
    """Words too long for messages, as a merged forward in which `name` says it; None where it is
    short (as more than three messages of words never are), or not in words alone.
    """
    if sum(map(_length, messages)) <= LIMIT:
        return None
    words = [segment.text for segment in segments if isinstance(segment, Text)]
    if not all(isinstance(segment, Quote | Text) for segment in segments):
        return None
    text = "".join(words)
    nodes = [plain(node) for node in split_text(text, NODE)]
    said = [node for node in nodes if node.strip()]
    kept = (
        said
        if len(said) <= MAX_NODES
        else [*said[: MAX_NODES - 1], CUT_SHORT[language_of_text(text)]]
    )
    return MergedForward(tuple(kept), name)


def pauses(messages: list[Parts]) -> list[float]:
    """The seconds somebody needs to type each message; none before the first, which took long
    enough.
    """
    return [0.0, *(min(max(_typing(message), LEAST), MOST) for message in messages[1:])]


def _typing(message: Parts) -> float:
    words = "".join(segment.text for segment in message if isinstance(segment, Text))
    cjk = len(CJK.findall(words))
    return cjk * PER_CJK + (len(words) - cjk) * PER_OTHER


def _is_one(segments: Parts, limit: int) -> bool:
    """Whether it is some words, perhaps behind a quote, that one message has room for: as most."""
    if len(segments) > 2 or not segments or not isinstance(words := segments[-1], Text):
        return False
    if len(segments) == 2 and not isinstance(segments[0], Quote):
        return False
    return len(words.text) <= limit and bool(words.text.strip())


def _length(message: Parts) -> int:
    return sum([len(segment.text) for segment in message if isinstance(segment, Text)])


def _readable(messages: Iterable[Parts]) -> Iterator[Parts]:
    """The messages as people read them; one that is marks and nothing else stays as it is."""
    for message in messages:
        read = tuple([one for one in map(_read, message) if not isinstance(one, Text) or one.text])
        yield read if _says_something(read) else message


def _read(segment: SendSegment) -> SendSegment:
    if not isinstance(segment, Text) or (text := plain(segment.text)) is segment.text:
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
    """Whether anything is in it besides a quote and blanks."""
    said = [segment for segment in segments if not isinstance(segment, Quote)]
    return any(not isinstance(segment, Text) or segment.text.strip() for segment in said)
