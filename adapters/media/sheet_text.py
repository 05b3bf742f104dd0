"""xlsx -> sheets as lines of cells, as people see them: values of formulas, days for dates, no
hidden sheets, rows and columns. Used only in the reader's process.
"""

from __future__ import annotations

import re
from datetime import datetime, timedelta
from typing import Final, Literal, TypeAlias

from adapters.media.archive import Archive, Enough
from adapters.media.document_text import Paragraphs, one_line
from adapters.media.office_package import read_properties, relationships, with_macros
from adapters.media.xml_events import Attributes, Visitor, is_on, relation_id, walk
from bot.core.documents import Document
from frostagent.types.errors import Lack, MediaError

MOST_SHEETS: Final = 200
MOST_COLUMNS: Final = 100
LONGEST_CELL: Final = 2000  # characters
MOST_SHARED: Final = 8_000_000  # characters of all shared strings
REFERENCE: Final = re.compile(r"([A-Za-z]{1,3})\d{1,7}")
EPOCH, EPOCH_1904 = datetime(1899, 12, 30), datetime(1904, 1, 1)  # noqa: DTZ001  # without a zone
LAST_DAY: Final = 2_958_465  # 9999-12-31
DATES: Final = frozenset({*range(14, 23), *range(27, 37), 45, 47, *range(50, 59)})
DURATIONS: Final = frozenset({46})
PERCENTS: Final = frozenset({9, 10})
"""Built-in formats of numbers (ECMA-376 part 1, 18.8.30; 27 to 58 in Chinese, Japanese, Korean)."""
LITERAL: Final = re.compile(r"\"[^\"]*\"|\\.|\[[^\]]*\]|_.|\*.")
"""Parts of a format that are no placeholders."""
IS_DURATION: Final = re.compile(r"\[(?:h+|m+|s+)\]", re.IGNORECASE)
IS_DATE: Final = re.compile(r"[ymdhs]", re.IGNORECASE)

Look: TypeAlias = Literal["", "date", "duration", "percent"]


class _Workbook(Visitor):
    """The visible sheets as (name, relationship), and how many are hidden."""

    def __init__(self) -> None:
        self.sheets: list[tuple[str, str]] = []
        self.hidden = 0
        self.epoch = EPOCH

    def start(self, name: str, attributes: Attributes, /) -> None:
        if name == "workbookPr" and "date1904" in attributes and is_on(attributes, "date1904"):
            self.epoch = EPOCH_1904
        elif name == "sheet":
            if attributes.get("state", "visible") == "visible":
                self.sheets.append((one_line(attributes.get("name")), relation_id(attributes)))
            else:
                self.hidden += 1


class _Styles(Visitor):
    """How the numbers of each style look."""

    def __init__(self) -> None:
        self._codes: dict[str, str] = {}
        self._formats: list[str] = []
        self._is_in_cells = False

    def start(self, name: str, attributes: Attributes, /) -> None:
        match name:
            case "numFmt":
                self._codes[attributes.get("numFmtId", "")] = attributes.get("formatCode", "")
            case "cellXfs":
                self._is_in_cells = True
            case "xf" if self._is_in_cells:
                self._formats.append(attributes.get("numFmtId", ""))
            case _:
                pass

    def end(self, name: str, /) -> None:
        self._is_in_cells = self._is_in_cells and name != "cellXfs"

    def look(self, style: str) -> Look:
        number = int(style) if style.isdecimal() and len(style) < 6 else 0
        format_id = self._formats[number] if number < len(self._formats) else ""
        written = self._codes.get(format_id, "")
        code = LITERAL.sub("", written)
        known = int(format_id) if format_id.isdecimal() and len(format_id) < 6 else 0
        if known in DURATIONS or IS_DURATION.search(written):
            return "duration"
        if known in DATES or IS_DATE.search(code):
            return "date"
        return "percent" if known in PERCENTS or "%" in code else ""


class _Shared(Visitor):
    """The strings that cells share, by their place."""

    skipped = frozenset({"rPh"})  # how to pronounce it

    def __init__(self) -> None:
        self.strings: list[str] = []
        self._pieces: list[str] = []
        self._is_text = False
        self._room = MOST_SHARED

    def start(self, name: str, _: Attributes, /) -> None:
        self._is_text = name == "t"

    def end(self, name: str, /) -> None:
        self._is_text = False
        if name == "si":
            string = one_line("".join(self._pieces), LONGEST_CELL)
            self._pieces = []
            self._room -= len(string) + 10
            if self._room < 0:
                raise Enough
            self.strings.append(string)

    def text(self, words: str, /) -> None:
        if self._is_text:
            self._pieces.append(words)

    def at(self, place: str) -> str:
        number = int(place) if place.isdecimal() and len(place) < 10 else len(self.strings)
        return self.strings[number] if number < len(self.strings) else "…"


class _Sheet(Visitor):
    skipped = frozenset({"rPh"})

    def __init__(
        self, paragraphs: Paragraphs, *, shared: _Shared, styles: _Styles, epoch: datetime
    ) -> None:
        self.is_cut = False
        self._paragraphs = paragraphs
        self._shared = shared
        self._styles = styles
        self._epoch = epoch
        self._hidden_columns: set[int] = set()
        self._is_hidden = False  # the row
        self._row: dict[int, str] = {}
        self._column = -1
        self._kind = self._style = ""
        self._within = ""  # v, t or f: what the text is of
        self._pieces: dict[str, list[str]] = {}

    def start(self, name: str, attributes: Attributes, /) -> None:
        match name:
            case "col" if is_on(attributes, "hidden") and "hidden" in attributes:
                self._hide(attributes.get("min", ""), attributes.get("max", ""))
            case "row":
                self._is_hidden = "hidden" in attributes and is_on(attributes, "hidden")
                self._row, self._column = {}, -1
            case "c":
                self._column = _column(attributes.get("r", ""), self._column + 1)
                self._kind, self._style = attributes.get("t", "n"), attributes.get("s", "")
                self._pieces = {"v": [], "t": [], "f": []}
            case "v" | "t" | "f" if self._pieces:
                self._within = name
            case _:
                pass

    def end(self, name: str, /) -> None:
        self._within = ""
        match name:
            case "c":
                self._end_cell()
            case "row":
                self._end_row()
            case _:
                pass

    def text(self, words: str, /) -> None:
        if self._within:
            self._pieces[self._within].append(words)

    def _hide(self, first: str, last: str) -> None:
        if first.isdecimal() and last.isdecimal() and len(first + last) < 12:
            self._hidden_columns.update(range(int(first) - 1, min(int(last), MOST_COLUMNS)))

    def _end_cell(self) -> None:
        value, string, formula = ("".join(self._pieces.get(of, ())) for of in "vtf")
        self._pieces = {}
        if self._is_hidden or self._column in self._hidden_columns:
            return
        words = self._shown(value, string) or (f"={formula}" if formula and not value else "")
        if words and self._column >= MOST_COLUMNS:
            self.is_cut = True
        elif words:
            self._row[self._column] = words

    def _shown(self, value: str, string: str) -> str:
        match self._kind:
            case "s":
                return self._shared.at(value)
            case "b":
                return "TRUE" if value == "1" else "FALSE"
            case "inlineStr":
                return one_line(string, LONGEST_CELL)
            case "n":
                return _number(value, self._styles.look(self._style), self._epoch)
            case _:  # a formula's text, an error, a date in ISO 8601
                return one_line(value, LONGEST_CELL)

    def _end_row(self) -> None:
        if self._row:
            cells = (self._row.get(place, "") for place in range(max(self._row) + 1))
            self._paragraphs.add(" | ".join(cells))
            self._row = {}
        if self._paragraphs.is_full:
            raise Enough


def _column(reference: str, otherwise: int) -> int:
    """The place of the column in a reference such as AB12."""
    found = REFERENCE.fullmatch(reference)
    if not found:
        return otherwise
    place = 0
    for letter in found[1].upper():
        place = place * 26 + ord(letter) - ord("A") + 1
    return place - 1


def _number(value: str, look: Look, epoch: datetime) -> str:
    """A number with the 15 digits that Excel shows, a date, a duration, or a percentage."""
    try:
        number = float(value)
    except ValueError:
        return one_line(value, LONGEST_CELL)
    if look == "date" and 0 <= number <= LAST_DAY:
        return _date(number, epoch)
    if look == "duration" and 0 <= number <= LAST_DAY:
        minutes, seconds = divmod(round(number * 86400), 60)
        return f"{minutes // 60}:{minutes % 60:02}" + (f":{seconds:02}" if seconds else "")
    return f"{number * 100:.10g}%" if look == "percent" else f"{number:.15g}"


def _date(number: float, epoch: datetime) -> str:
    try:
        moment = epoch + timedelta(seconds=round(number * 86400))
    except OverflowError:
        return f"{number:.15g}"
    time = f"{moment:%H:%M:%S}".removesuffix(":00")
    if number < 1:
        return time
    return f"{moment:%Y-%m-%d}" if number.is_integer() else f"{moment:%Y-%m-%d} {time}"


def read_sheets(archive: Archive, main: str) -> Document:
    """The cells of an Excel workbook whose main entry this is. Raises MediaError if it has none."""
    parts = relationships(archive, main)
    named = {one.kind: one.target for one in parts.values()}
    book, styles, shared, paragraphs = _Workbook(), _Styles(), _Shared(), Paragraphs()
    is_whole = walk(archive.chunks(main), book)
    if (name := named.get("styles", "")) in archive:
        walk(archive.chunks(name), styles)
    if (name := named.get("sharedStrings", "")) in archive:
        is_whole &= walk(archive.chunks(name), shared)
    cells = False
    for title, relation in book.sheets[:MOST_SHEETS]:
        part = parts.get(relation)
        if part is None or part.target not in archive or part.kind != "worksheet":
            continue
        before = len(paragraphs.kept) + 1
        paragraphs.add(f"# {title}")
        sheet = _Sheet(paragraphs, shared=shared, styles=styles, epoch=book.epoch)
        is_whole &= walk(archive.chunks(part.target), sheet) and not sheet.is_cut
        cells |= len(paragraphs.kept) > before
        if paragraphs.is_full or archive.is_cut:
            break
    if not cells:
        raise MediaError("no cell of its sheets has text", Lack.EMPTY)
    hidden = f", {book.hidden} hidden ones are not read" if book.hidden else ""
    about = read_properties(archive)
    return Document(
        kind=f"Excel workbook, {len(book.sheets)} sheets{hidden}{with_macros(archive)}",
        title=about.title,
        author=about.author,
        date=about.date,
        paragraphs=tuple(paragraphs.kept),
        is_cut=not is_whole or paragraphs.is_full or len(book.sheets) > MOST_SHEETS,
    )
