"""docx -> text with headings, rows of tables and footnotes. Used only in the reader's process.

Deleted text of tracked changes and hidden text are left out: people do not see them.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Final

from adapters.media.archive import Archive, Enough
from adapters.media.document_text import Paragraphs, seen
from adapters.media.office_package import read_properties, relationships, with_macros
from adapters.media.xml_events import Attributes, Visitor, attribute, is_on, walk
from bot.core.documents import Document
from frostagent.types.errors import Lack, MediaError

HEADING: Final = re.compile(r"heading ?(\d)", re.IGNORECASE)
DEEPEST_HEADING: Final = 4
LONGEST_CHAIN: Final = 10  # styles that a style is based on
SMALLEST: Final = 2  # half points; nobody reads smaller letters
NOTES: Final = {"footnotes": "# Footnotes", "endnotes": "# Endnotes"}
CHANGES: Final = frozenset(
    f"{what}Change" for what in ("pPr", "rPr", "tblPr", "tcPr", "trPr", "sectPr", "numbering")
)
"""Elements with the properties from before a change."""


@dataclass(slots=True)
class _Style:
    level: int | None = None
    is_hidden: bool = False
    based_on: str = ""


class _Styles(Visitor):
    """The styles of a document: which are headings, and which hide their text."""

    def __init__(self) -> None:
        self._styles: dict[str, _Style] = {}
        self._style = _Style()

    def start(self, name: str, attributes: Attributes, /) -> None:
        value = attribute(attributes, "val")
        match name:
            case "style":
                self._style = self._styles[attribute(attributes, "styleId")] = _Style()
            case "name" if heading := HEADING.fullmatch(value):
                self._style.level = int(heading[1])
            case "name" if value.lower() == "title":
                self._style.level = 1
            case "outlineLvl":
                self._style.level = _outline_level(value)
            case "basedOn":
                self._style.based_on = value
            case "vanish":
                self._style.is_hidden = is_on(attributes)
            case _:
                pass

    def level(self, name: str) -> int:
        """The level of a heading of this style; 0 if it is none."""
        for style in self._chain(name):
            if style.level is not None:
                return style.level
        heading = HEADING.fullmatch(name)
        return int(heading[1]) if heading else 0

    def is_hidden(self, name: str) -> bool:
        return any(style.is_hidden for style in self._chain(name))

    def _chain(self, name: str) -> list[_Style]:
        chain: list[_Style] = []
        while name in self._styles and len(chain) < LONGEST_CHAIN:
            chain.append(self._styles[name])
            name = chain[-1].based_on
        return chain


def _outline_level(value: str) -> int:
    """1 to 9; 0 for the text's own level, which is written as 9."""
    return int(value) + 1 if value in set("012345678") else 0


@dataclass(slots=True)
class _Paragraph:
    text: list[str] = field(default_factory=list)
    level: int = 0
    is_item: bool = False

    def line(self) -> str:
        lines = (" ".join(seen(line).split()) for line in "".join(self.text).split("\n"))
        words = "\n".join(filter(None, lines))
        if not words:
            return ""
        if self.level:
            return f"{'#' * min(self.level, DEEPEST_HEADING)} {words.replace(chr(10), ' ')}"
        return f"- {words}" if self.is_item else words


class _Body(Visitor):
    skipped = frozenset({"del", "moveFrom", "instrText", "Fallback", "rt", *CHANGES})

    def __init__(self, styles: _Styles, paragraphs: Paragraphs) -> None:
        self._styles = styles
        self._paragraphs = paragraphs
        self._open: list[_Paragraph] = []  # a text box is inside a paragraph
        self._runs = 0  # open ones, for the same reason
        self._is_hidden = self._is_text = False
        self._tables = 0
        self._row: list[str] = []  # of the outermost table
        self._cell: list[str] = []

    def start(self, name: str, attributes: Attributes, /) -> None:
        match name:
            case "p":
                self._open.append(_Paragraph())
            case "r":
                self._runs += 1
                self._is_hidden = False
            case "t":
                self._is_text = not self._is_hidden
            case "tbl":
                self._tables += 1
            case _ if self._runs:
                self._start_in_run(name, attributes)
            case _ if self._open:
                self._start_in_paragraph(name, attributes)
            case _:
                pass

    def _start_in_run(self, name: str, attributes: Attributes) -> None:
        value = attribute(attributes, "val")
        match name:
            case "tab":
                self._write(" ")
            case "br" | "cr":
                self._write("\n")
            case "noBreakHyphen":
                self._write("-")
            case "rStyle":
                self._is_hidden = self._styles.is_hidden(value)
            case "vanish":
                self._is_hidden = is_on(attributes)
            case "sz" if value.isdecimal() and len(value) < 5 and int(value) <= SMALLEST:
                self._is_hidden = True
            case _:
                pass

    def _start_in_paragraph(self, name: str, attributes: Attributes) -> None:
        value = attribute(attributes, "val")
        match name:
            case "pStyle":
                self._open[-1].level = self._styles.level(value)
            case "outlineLvl":
                self._open[-1].level = _outline_level(value)
            case "numId":
                self._open[-1].is_item = value != "0"
            case _:
                pass

    def end(self, name: str, /) -> None:
        match name:
            case "t":
                self._is_text = False
            case "r":
                self._runs -= 1
                self._is_hidden = False
            case "p" if self._open:
                self._end_paragraph(self._open.pop().line())
            case "tc" if self._tables == 1:
                self._row.append(" ".join(self._cell))
                self._cell = []
            case "tr" if self._tables == 1:
                self._add(" | ".join(self._row) if any(self._row) else "")
                self._row = []
            case "tbl":
                self._tables -= 1
            case _:
                pass

    def text(self, words: str, /) -> None:
        if self._is_text:
            self._write(words)

    def _write(self, words: str) -> None:
        if self._open and not self._is_hidden:
            self._open[-1].text.append(words)

    def _end_paragraph(self, line: str) -> None:
        if not self._tables:
            self._add(line)
        elif line:
            self._cell.append(line.replace("\n", " "))

    def _add(self, line: str) -> None:
        self._paragraphs.add(line)
        if self._paragraphs.is_full:
            raise Enough


def read_word(archive: Archive, main: str) -> Document:
    """The text of a Word document whose main entry this is. Raises MediaError if it has none."""
    parts = {one.kind: one.target for one in relationships(archive, main).values()}
    styles, paragraphs = _Styles(), Paragraphs()
    if (name := parts.get("styles", "")) in archive:
        walk(archive.chunks(name), styles)
    is_whole = walk(archive.chunks(main), _Body(styles, paragraphs))
    for kind, heading in NOTES.items():
        notes = Paragraphs()
        if is_whole and (name := parts.get(kind, "")) in archive:
            is_whole = walk(archive.chunks(name), _Body(styles, notes))
        for line in [heading, *notes.kept] if notes.kept else ():
            paragraphs.add(line)
    if not paragraphs.kept:
        raise MediaError("it has no text", Lack.EMPTY)
    about = read_properties(archive)
    return Document(
        kind=f"Word document{with_macros(archive)}",
        title=about.title,
        author=about.author,
        date=about.date,
        paragraphs=tuple(paragraphs.kept),
        is_cut=not is_whole or paragraphs.is_full,
    )
