"""What a tool returns of a document: the passages that a question is about, or a part. Pure.

Words are compared by BM25: Chinese in pairs of characters, other scripts in words.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from bot.core.documents import Document
from frostagent.types.errors import InvalidArguments

PART: Final = 6000  # characters of one part
ABOUT: Final = 2400  # characters of all passages about a question
LONGEST: Final = 400  # characters of one passage
GAP: Final = "…"

CJK: Final = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]+")
WORD: Final = re.compile(r"[a-z0-9][a-z0-9_.+#-]*")
SENTENCE: Final = re.compile(r"(?<=[。！？!?；])|(?<=[.;])\s")
HEADING: Final = ("#", "[page ")
SATURATION, BY_LENGTH = 1.2, 0.5  # BM25's k1 and b


@dataclass(frozen=True, slots=True)
class Selection:
    """Text of a document. `is_all`: it is the whole document. `shown` says so to the model, or
    which part it is, and what kind of document.
    """

    text: str
    shown: str
    is_all: bool = False


def select_text(document: Document, *, about: str = "", part: int = 1) -> Selection:
    """The passages about these words if the document is long, else this part, counted from 1.
    Raises InvalidArguments if the document has fewer parts.
    """
    paragraphs = document.paragraphs
    words = " ".join(about.split())
    is_all = False
    if words and sum(map(len, paragraphs)) > ABOUT:
        text, what = passages_about(paragraphs, words), f"passages about {words[:80]!r}"
        if not text:
            text = parts_of(paragraphs, ABOUT)[0]
            what = f"the beginning, as no passage is about {words[:80]!r}"
    else:
        parts = parts_of(paragraphs)
        if not 0 < part <= len(parts):
            problem = f"part: it has only {len(parts)}"
            raise InvalidArguments(problem, fields=(problem,))
        text, is_all = parts[part - 1], len(parts) == 1 and not document.is_cut
        what = f"part {part} of {len(parts)}" if len(parts) > 1 else "all"
    cut = "; the document says more than is kept" if document.is_cut else ""
    return Selection(text, f"{what} ({document.kind}{cut})", is_all)


def format_fields(fields: Mapping[str, str], text: str) -> str:
    """Fields that are not empty, a line each, then the text, which is indented so that none of its
    lines can pass for a field.
    """
    head = "\n".join(f"{name}: {value}" for name, value in fields.items() if value)
    return f"{head}\ntext:\n  {text.replace(chr(10), chr(10) + '  ')}"


def parts_of(paragraphs: Sequence[str], size: int = PART) -> list[str]:
    """The text in parts of at most `size` characters, divided between paragraphs if possible."""
    parts, part = list[str](), ""
    for paragraph in paragraphs:
        for piece in _pieces(paragraph, size):
            joined = f"{part}\n{piece}" if part else piece
            if len(joined) > size:
                parts.append(part)
                joined = piece
            part = joined
    return [*parts, part] if part else parts


def passages_about(paragraphs: Sequence[str], about: str, size: int = ABOUT) -> str:
    """The best-matching passages in document order, each with its heading; empty if no passage
    contains any of the words.
    """
    passages, headings = _passages(paragraphs)
    words = set(_words(about))
    counted = [Counter(_words(passage)) for passage in passages]
    scores = _scores(words, counted)
    best = sorted(
        (place for place, score in enumerate(scores) if score > 0),
        key=lambda place: (-scores[place], place),
    )
    chosen = set[int]()
    room = size
    for place in best:
        added = [one for one in (headings[place], place) if one is not None and one not in chosen]
        length = sum(len(passages[one]) + 1 + len(GAP) for one in added)
        if length > room:
            break
        chosen.update(added)
        room -= length
    lines, last = list[str](), -1
    for place in sorted(chosen):
        if place != last + 1:
            lines.append(GAP)
        lines.append(passages[place])
        last = place
    if chosen and last != len(passages) - 1:
        lines.append(GAP)
    return "\n".join(lines)


def _passages(paragraphs: Sequence[str]) -> tuple[list[str], list[int | None]]:
    """The passages, and for each the index of its heading."""
    passages, headings = list[str](), list[int | None]()
    heading: int | None = None
    for paragraph in paragraphs:
        if paragraph.startswith(HEADING) and len(paragraph) <= LONGEST:
            heading = len(passages)
        for piece in _pieces(paragraph, LONGEST):
            headings.append(None if heading == len(passages) else heading)
            passages.append(piece)
    return passages, headings


def _pieces(paragraph: str, size: int) -> list[str]:
    """The paragraph, or its sentences in pieces of at most `size` characters."""
    if len(paragraph) <= size:
        return [paragraph]
    pieces, piece = list[str](), ""
    for sentence in filter(None, SENTENCE.split(paragraph)):
        for start in range(0, len(sentence), size):
            bit = sentence[start : start + size]
            if len(piece) + len(bit) > size:
                pieces.append(piece)
                piece = ""
            piece += bit
    return [*pieces, piece] if piece else pieces


def _words(text: str) -> list[str]:
    folded = text.casefold()
    found = WORD.findall(folded)
    for run in CJK.findall(folded):
        found += [run[at : at + 2] for at in range(len(run) - 1)] or [run]
    return found


def _scores(words: set[str], counted: Sequence[Counter[str]]) -> list[float]:
    """Each passage's BM25 score for these words."""
    total = len(counted)
    lengths = [sum(counts.values()) for counts in counted]
    usual = sum(lengths) / total if total else 1.0
    rare = {
        word: math.log(1 + (total - found + 0.5) / (found + 0.5))
        for word in words
        if (found := sum(word in counts for counts in counted))
    }
    return [
        sum(
            weight
            * counts[word]
            * (SATURATION + 1)
            / (counts[word] + SATURATION * (1 - BY_LENGTH + BY_LENGTH * length / (usual or 1.0)))
            for word, weight in rare.items()
            if counts[word]
        )
        for counts, length in zip(counted, lengths, strict=True)
    ]
