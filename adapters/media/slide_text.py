"""pptx -> the text of slides in their order, with notes. Used only in the reader's process."""

from __future__ import annotations

from adapters.media.archive import Archive, Enough
from adapters.media.document_text import Paragraphs, seen
from adapters.media.office_package import read_properties, relationships, with_macros
from adapters.media.xml_events import Attributes, Visitor, is_on, relation_id, walk
from bot.core.documents import Document
from frostagent.types.errors import Lack, MediaError

MOST_SLIDES = 1000
SHAPES = frozenset({"sp", "graphicFrame", "pic", "cxnSp"})
TITLES = frozenset({"title", "ctrTitle"})
FRAME = frozenset({"sldNum", "dt", "ftr", "hdr", "sldImg"})
"""Kinds of placeholders that say the same on each slide."""


class _Presentation(Visitor):
    def __init__(self) -> None:
        self.slides: list[str] = []

    def start(self, name: str, attributes: Attributes, /) -> None:
        if name == "sldId":
            self.slides.append(relation_id(attributes))


class _Slide(Visitor):
    """The title of a slide or a page of notes, and its other lines, a table's row as one."""

    skipped = frozenset({"Fallback"})

    def __init__(self) -> None:
        self.title = ""
        self.lines: list[str] = []
        self.is_hidden = False
        self._placeholder = ""
        self._is_shape_hidden = self._is_text = False
        self._words: list[str] = []
        self._row: list[str] | None = None
        self._cell: list[str] = []

    def start(self, name: str, attributes: Attributes, /) -> None:
        match name:
            case "sld" if "show" in attributes and not is_on(attributes, "show"):
                self.is_hidden = True
                raise Enough
            case "cNvPr":
                self._is_shape_hidden = "hidden" in attributes and is_on(attributes, "hidden")
                self._placeholder = ""
            case "ph":
                self._placeholder = attributes.get("type", "body")
            case "p":
                self._words = []
            case "t":
                self._is_text = True
            case "br":
                self._words.append(" ")
            case "tr":
                self._row = []
            case "tc":
                self._cell = []
            case _:
                pass

    def end(self, name: str, /) -> None:
        match name:
            case "t":
                self._is_text = False
            case "p":
                self._end_paragraph()
            case "tc" if self._row is not None:
                self._row.append(" ".join(self._cell))
            case "tr":
                if self._row and any(self._row):
                    self.lines.append(" | ".join(self._row))
                self._row = None
            case _ if name in SHAPES:
                self._placeholder, self._is_shape_hidden = "", False
            case _:
                pass

    def text(self, words: str, /) -> None:
        if self._is_text:
            self._words.append(words)

    def _end_paragraph(self) -> None:
        words = " ".join(seen("".join(self._words)).split())
        self._words = []
        if not words or self._is_shape_hidden or self._placeholder in FRAME:
            return
        if self._row is not None:
            self._cell.append(words)
        elif self._placeholder in TITLES:
            self.title = f"{self.title} {words}".strip()
        else:
            self.lines.append(words)


def read_slides(archive: Archive, main: str) -> Document:
    """The text of a PowerPoint file whose main entry this is. Raises MediaError if it has none."""
    parts = relationships(archive, main)
    presentation, paragraphs = _Presentation(), Paragraphs()
    is_whole = walk(archive.chunks(main), presentation)
    hidden, has_text = 0, False
    for number, relation in enumerate(presentation.slides[:MOST_SLIDES], 1):
        part = parts.get(relation)
        if part is None or part.target not in archive:
            continue
        slide = _Slide()
        if not walk(archive.chunks(part.target), slide):
            hidden += slide.is_hidden
            is_whole &= slide.is_hidden
        if slide.is_hidden:
            continue
        notes = _notes(archive, part.target)
        has_text |= bool(slide.title or slide.lines or notes)
        paragraphs.add(f"# [slide {number}] {slide.title}")
        for line in (*slide.lines, *(f"notes: {line}" for line in notes)):
            paragraphs.add(line)
        if paragraphs.is_full or archive.is_cut:
            break
    if not has_text:
        raise MediaError("no slide has text: they may be pictures", Lack.SCANNED)
    unseen = f", {hidden} hidden ones are not read" if hidden else ""
    about = read_properties(archive)
    return Document(
        kind=f"PowerPoint, {len(presentation.slides)} slides{unseen}{with_macros(archive)}",
        title=about.title,
        author=about.author,
        date=about.date,
        paragraphs=tuple(paragraphs.kept),
        is_cut=not is_whole or paragraphs.is_full or len(presentation.slides) > MOST_SLIDES,
    )


def _notes(archive: Archive, slide: str) -> list[str]:
    for part in relationships(archive, slide).values():
        if part.kind == "notesSlide" and part.target in archive:
            notes = _Slide()
            walk(archive.chunks(part.target), notes)
            return notes.lines
    return []
